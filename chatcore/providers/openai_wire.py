"""Convert requests to OpenAI's chat completions, and chunks of a stream to parts of an answer."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from chatcore.providers.base import (
    EARLIER_MESSAGES_NOTICE,
    ChatMessage,
    Image,
    ReasoningDelta,
    Request,
    StreamEnd,
    StreamPart,
    TextDelta,
    ToolCall,
    Usage,
)
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.unicode import SurrogateJoiner, mend_surrogates

_FINISH_REASONS: dict[str, Literal["stop", "length", "tool_calls", "refusal"]] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}
_TOOL_IMAGES_NOTICE = "(Images of the tool results above.)"


def build_messages(request: Request) -> list[dict[str, Any]]:
    """Return the system texts and the messages of a request, without empty ones."""
    api_messages: list[dict[str, Any]] = [
        {"role": "system", "content": text}
        for text in (request.system, request.preface)
        if text.strip()
    ]
    filled_messages = [message for message in request.messages if _has_content(message)]
    messages = _merge_asides(_separate_tool_images(filled_messages))
    if messages and messages[0].tool_calls:
        # Gemini refuses a request whose first message is a tool call.
        notice = ChatMessage(role="user", content=EARLIER_MESSAGES_NOTICE, aside=True)
        messages.insert(0, notice)
    user_indices = [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and not message.aside
    ]
    last_user_index = user_indices[-1] if user_indices else -1
    for index, message in enumerate(messages):
        in_turn = index > last_user_index
        api_messages.append(_build_message(message, request.model, in_turn=in_turn))
    return api_messages


def build_tools(request: Request) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in request.tools
    ]


def parse_usage(api_usage: Any) -> Usage | None:
    """Return the reported tokens, or None. Here `prompt_tokens` includes the cached ones."""
    if api_usage is None or getattr(api_usage, "prompt_tokens", None) is None:
        return None
    details = getattr(api_usage, "prompt_tokens_details", None)
    return Usage(
        input=api_usage.prompt_tokens,
        output=getattr(api_usage, "completion_tokens", None) or 0,
        cache_read=getattr(details, "cached_tokens", None),
        cache_write=getattr(details, "cache_write_tokens", None),
    )


class OpenAIStreamReader:
    """Collects an answer while its chunks arrive.

    `model` is stored with the data that only this model may receive again.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._thoughts = ""
        self._calls: list[_PartialCall] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._is_refusal = False
        self._text_joiner = SurrogateJoiner()
        self._reasoning_joiner = SurrogateJoiner()

    def read_chunk(self, chunk: Any) -> Iterator[StreamPart]:
        """Yield the parts of one chunk."""
        self._usage = parse_usage(getattr(chunk, "usage", None)) or self._usage
        for choice in chunk.choices or ():
            self._finish_reason = choice.finish_reason or self._finish_reason
            if choice.delta is not None:
                yield from self._read_delta(choice.delta)

    def build_stream_end(self) -> StreamEnd:
        """Return the last part. Raises ProviderUnavailable if no chunk ended the answer."""
        if self._finish_reason in (None, "error"):
            raise ProviderUnavailable("The provider's stream ended before the answer did.")
        tool_calls = tuple(call.to_tool_call() for call in self._calls)
        reason = _FINISH_REASONS.get(self._finish_reason or "", "stop")
        if self._is_refusal:
            reason = "refusal"
        if reason not in ("stop", "tool_calls"):
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            return StreamEnd(reason=reason, usage=self._usage)
        return StreamEnd(
            # Not every server distinguishes the two, so the calls decide.
            reason="tool_calls" if tool_calls else "stop",
            tool_calls=tool_calls,
            usage=self._usage,
            provider_data=self._build_provider_data(),
        )

    def _build_provider_data(self) -> dict[str, Any]:
        """Return what some servers require back with the calls.

        DeepSeek requires the reasoning, Gemini a signature for each call.
        """
        extras = {call.id: call.extra for call in self._calls if call.extra}
        if not self._calls or not (self._thoughts or extras):
            return {}
        openai_data = {"model": self._model, "reasoning": self._thoughts, "extras": extras}
        return {"openai": openai_data}

    def _read_delta(self, delta: Any) -> Iterator[StreamPart]:
        reasoning = getattr(delta, "reasoning_content", None)
        if reasoning:
            self._thoughts += mend_surrogates(reasoning)
        else:
            # The field of OpenRouter and others, which do not require it back.
            reasoning = getattr(delta, "reasoning", None)
        if reasoning:
            yield ReasoningDelta(self._reasoning_joiner.join(reasoning))
        if delta.content:
            yield from self._read_content(delta.content)
        refusal = getattr(delta, "refusal", None)
        if refusal:
            self._is_refusal = True
            yield TextDelta(refusal)
        for fragment in delta.tool_calls or ():
            self._find_call(fragment).add_fragment(fragment)

    def _read_content(self, content: Any) -> Iterator[StreamPart]:
        """Yield text; Mistral's reasoning models send a list of typed pieces instead."""
        pieces: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
        for piece in pieces:
            if piece.get("type") == "thinking":
                reasoning = "".join(thought.get("text", "") for thought in piece["thinking"])
                yield ReasoningDelta(self._reasoning_joiner.join(reasoning))
            elif piece.get("text"):
                yield TextDelta(self._text_joiner.join(piece["text"]))

    def _find_call(self, fragment: Any) -> "_PartialCall":
        """Return the call to which a fragment belongs, perhaps a new one.

        Some servers give every parallel call the index 0, or none, so a new id begins a new call.
        """
        index = fragment.index or 0
        for call in reversed(self._calls):
            if call.index == index and fragment.id in (None, "", call.id):
                return call
        self._calls.append(_PartialCall(index, fragment.id or f"call_{uuid4().hex[:24]}"))
        return self._calls[-1]


class _PartialCall:
    """Collects a tool call while its fragments arrive."""

    def __init__(self, index: int, id: str) -> None:
        self.index = index
        self.id = id
        self.name = ""
        self.arguments = ""
        self.extra: dict[str, Any] = {}

    def add_fragment(self, fragment: Any) -> None:
        self.extra |= getattr(fragment, "extra_content", None) or {}
        if fragment.function is not None:
            self.name = self.name or fragment.function.name or ""
            self.arguments += fragment.function.arguments or ""

    def to_tool_call(self) -> ToolCall:
        if not self.name:
            raise ProviderUnavailable("The provider sent a tool call without a name.")
        return ToolCall(
            id=self.id, name=self.name, arguments=mend_surrogates(self.arguments) or "{}"
        )


def _separate_tool_images(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Move the images of tool results to a user message after them.

    The protocol's tool results hold only text.
    """
    output_messages: list[ChatMessage] = []
    images: tuple[Image, ...] = ()
    for message in [*messages, None]:
        if images and (message is None or message.role != "tool"):
            output_messages.append(
                ChatMessage(role="user", content=_TOOL_IMAGES_NOTICE, images=images, aside=True)
            )
            images = ()
        if message is not None:
            images += message.images if message.role == "tool" else ()
            output_messages.append(message)
    return output_messages


def _merge_asides(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Merge each aside with a user message next to it.

    The chat templates of some servers refuse two user messages in a row.
    """
    output_messages: list[ChatMessage] = []
    for message in messages:
        last_message = output_messages[-1] if output_messages else None
        if last_message is None or not _can_merge(last_message, message):
            output_messages.append(message)
            continue
        texts = (last_message.content, message.content)
        output_messages[-1] = replace(
            last_message,
            content="\n\n".join(text for text in texts if text),
            images=(*last_message.images, *message.images),
            aside=last_message.aside and message.aside,
        )
    return output_messages


def _can_merge(first: ChatMessage, second: ChatMessage) -> bool:
    return first.role == second.role == "user" and (first.aside or second.aside)


def _has_content(message: ChatMessage) -> bool:
    if message.role == "tool":
        return True
    return bool(message.content or message.tool_calls or message.images)


def _build_message(message: ChatMessage, model: str, *, in_turn: bool) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.role == "assistant":
        return _build_answer(message, model, in_turn=in_turn)
    if not message.images:
        return {"role": "user", "content": message.content}
    text = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": "user", "content": text + [_build_image(image) for image in message.images]}


def _build_answer(message: ChatMessage, model: str, *, in_turn: bool) -> dict[str, Any]:
    """Return an earlier answer.

    Its reasoning is sent back only while its turn runs, and only to the model that wrote it.
    """
    answer: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    if not message.tool_calls:
        return answer
    openai_data = message.provider_data.get("openai", {})
    if openai_data.get("model") != model:
        openai_data = {}
    extras = openai_data.get("extras", {})
    answer["tool_calls"] = [_build_call(call, extras.get(call.id)) for call in message.tool_calls]
    if in_turn and openai_data.get("reasoning"):
        answer["reasoning_content"] = openai_data["reasoning"]
    return answer


def _build_call(call: ToolCall, extra: dict[str, Any] | None) -> dict[str, Any]:
    # Servers that render chat templates fail on arguments that are not a JSON object, so broken
    # ones are not sent back as the model wrote them.
    function = {"name": call.name, "arguments": json.dumps(call.parse_arguments())}
    api_call: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if extra:
        api_call["extra_content"] = extra
    return api_call


def _build_image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}
