"""Format answers as OpenAI does: a whole completion, or the chunks of a streamed one."""

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from chatcore.contrib.compat.chat_completions import streams
from chatcore.contrib.compat.chat_completions.request import CompletionRequest
from chatcore.contrib.compat.chat_completions.stateless import build_provider_request
from chatcore.contrib.compat.chat_completions.streams import (
    DONE_EVENT,
    HEARTBEAT_COMMENT,
    format_event,
)
from chatcore.contrib.compat.client_messages import convert_messages
from chatcore.contrib.compat.custom_tools import read_text
from chatcore.contrib.compat.sealed_data import SEAL_NAME, seal
from chatcore.models import Turn
from chatcore.providers.base import Request, StreamEnd, StreamPart, TextDelta, Usage
from chatcore.providers.provider_data import select_extras, select_reasoning
from chatcore.turns.client_tools import CLIENT_FORM

# Clients know no word for an end that nobody knows; what they know is that such an answer is cut.
FINISH_REASONS = {"refusal": "content_filter", "unknown": "length"}


class CompletionForm:
    """The form of one completion (the protocol AnswerForm)."""

    def __init__(self, request: CompletionRequest) -> None:
        self._request = request
        self._id = f"chatcmpl-{uuid4().hex}"
        self._created = int(time.time())

    def build_provider_request(self) -> Request:
        """Return the request without a memory, before it is made to fit."""
        request = self._request
        messages = convert_messages(request.messages, request.model)
        return build_provider_request(
            request.model, [request.system], messages, request.tools, request.params
        )

    def name_answer(self, turn: Turn, after_seq: int) -> None:
        """Do nothing: the ids of completions lead nowhere."""

    async def stream(
        self, parts: AsyncGenerator[StreamPart | None], count_input: Callable[[], int]
    ) -> AsyncGenerator[bytes]:
        """Yield the completion in chunks."""
        has_role = False
        include_usage = self._request.include_usage
        # With `include_usage`, OpenAI sends null in every chunk but the last.
        usage_members: dict[str, object] = {"usage": None} if include_usage else {}
        async with aclosing(parts):
            async for part in parts:
                if part is None:
                    yield HEARTBEAT_COMMENT
                    continue
                if not has_role:
                    first_delta = {"role": "assistant", "content": "", "refusal": None}
                    yield self._format_chunk(format_choice(first_delta), **usage_members)
                    has_role = True
                for choice in iterate_choices(part, self._request.tools):
                    yield self._format_chunk(choice, **usage_members)
                if include_usage and isinstance(part, StreamEnd):
                    yield self._format_chunk(usage=format_usage(part.usage))
        yield DONE_EVENT

    def format_failure(self, error: Exception) -> bytes:
        """Return the event that ends a stream with an error; clients raise at it."""
        return streams.format_failure(error)

    def _format_chunk(self, *choices: dict[str, object], **members: object) -> bytes:
        """Return one chunk as an event of a stream."""
        head = self._build_head("chat.completion.chunk")
        return format_event(head | {"choices": choices} | members)

    def format_answer(self, text: str, reasoning: str, final_part: StreamEnd) -> dict[str, object]:
        """Return the whole completion."""
        # OpenAI sends null, not "", as the content of an answer that only calls tools.
        content = text if text or not final_part.tool_calls else None
        message: dict[str, object] = {"role": "assistant", "content": content, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if final_part.tool_calls:
            message |= _get_reasoning_details(final_part)
            message["tool_calls"] = _format_calls(final_part, self._request.tools)
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _get_finish_reason(final_part),
        }
        head = self._build_head("chat.completion")
        return head | {"choices": [choice], "usage": format_usage(final_part.usage)}

    def _build_head(self, object_type: str) -> dict[str, object]:
        return {
            "id": self._id,
            "object": object_type,
            "created": self._created,
            "model": self._request.model_name,
        }


def format_usage(usage: Usage | None) -> dict[str, object]:
    """Return the token counts under OpenAI's names; zeros if the provider gave none."""
    if usage is None:
        usage = Usage(input=0, output=0)
    body: dict[str, object] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cache_read is not None:
        body["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    return body


def format_choice(
    delta: Mapping[str, object], finish_reason: str | None = None
) -> dict[str, object]:
    """Return the choice of a chunk. There is only ever one, since `n` is 1."""
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def iterate_choices(
    part: StreamPart, tools: Sequence[Mapping[str, Any]] = ()
) -> Iterator[dict[str, object]]:
    """Yield the choice of each chunk that a part of the answer becomes."""
    if isinstance(part, StreamEnd):
        details = _get_reasoning_details(part)
        if details:
            yield format_choice(details)
        for index, call in enumerate(_format_calls(part, tools)):
            for delta in _build_call_deltas(index, call):
                yield format_choice({"tool_calls": [delta]})
        yield format_choice({}, _get_finish_reason(part))
    elif isinstance(part, TextDelta):
        yield format_choice({"content": part.text})
    else:
        yield format_choice({"reasoning_content": part.text})


def _build_call_deltas(
    index: int, call: dict[str, Any]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return two deltas, as OpenAI sends them: the name of the tool, then its arguments."""
    kind = call["type"]
    name = "input" if kind == "custom" else "arguments"
    tool = call[kind]
    name_delta = call | {"index": index, kind: tool | {name: ""}}
    return name_delta, {"index": index, kind: {name: tool[name]}}


def _format_calls(
    final_part: StreamEnd, tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, object]]:
    """Return the calls, with what the provider wants back of them.

    Gemini's clients know `extra_content`, and send it back. So the rest of what the provider wants
    back travels there too, sealed, with the first call.
    """
    extras = select_extras(final_part.provider_data)
    custom_names = {tool["name"] for tool in tools if CLIENT_FORM in tool}
    calls: list[dict[str, object]] = []
    for call in final_part.tool_calls:
        extra = {**extras.get(call.id, {})}
        if not calls and final_part.provider_data:
            extra[SEAL_NAME] = {"sealed": seal(final_part.provider_data)}
        formatted_call: dict[str, object]
        if call.name in custom_names:
            custom = {"name": call.name, "input": read_text(call)}
            formatted_call = {"id": call.id, "type": "custom", "custom": custom}
        else:
            function = {"name": call.name, "arguments": call.arguments}
            formatted_call = {"id": call.id, "type": "function", "function": function}
        calls.append(formatted_call | ({"extra_content": extra} if extra else {}))
    return calls


def _get_reasoning_details(final_part: StreamEnd) -> dict[str, object]:
    """Return OpenRouter's details of reasoning, which its clients know and send back."""
    details = select_reasoning(final_part.provider_data).details
    return {"reasoning_details": [*details]} if details else {}


def _get_finish_reason(final_part: StreamEnd) -> str:
    return FINISH_REASONS.get(final_part.reason, final_part.reason)
