"""Chat completions on the wire: requests into their form, and chunks out of it."""

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
    """The system texts and the messages; those that say nothing are left out. Gemini refuses a request whose first message is a call."""
    system_messages = [
        {"role": "system", "content": text}
        for text in (request.system, request.preface)
        if text.strip()
    ]
    chat_messages = _merge_asides(
        _separate_tool_images(
            [
                message
                for message in request.messages
                if message.content or message.tool_calls or message.images or message.role == "tool"
            ]
        )
    )
    if chat_messages and chat_messages[0].tool_calls:
        chat_messages.insert(
            0, ChatMessage(role="user", content=EARLIER_MESSAGES_NOTICE, aside=True)
        )
    last_user_index = max(
        (
            index
            for index, message in enumerate(chat_messages)
            if message.role == "user" and not message.aside
        ),
        default=-1,
    )
    return system_messages + [
        _build_message(message, request.model, in_turn=index > last_user_index)
        for index, message in enumerate(chat_messages)
    ]


def build_tools(request: Request) -> list[dict[str, Any]]:
    """Tool definitions."""
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
    """Tokens as reported; `prompt_tokens` includes the cached ones here."""
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
    """An answer while its chunks arrive. `model` is noted beside what only that model may be shown again."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._thoughts = ""
        self._calls: list[_PartialCall] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._is_refusal = False
        self._text_joiner, self._reasoning_joiner = SurrogateJoiner(), SurrogateJoiner()

    def read_chunk(self, chunk: Any) -> Iterator[StreamPart]:
        """The parts that one chunk brings."""
        self._usage = parse_usage(getattr(chunk, "usage", None)) or self._usage
        for choice in chunk.choices or ():
            self._finish_reason = choice.finish_reason or self._finish_reason
            if choice.delta is not None:
                yield from self._read_delta(choice.delta)

    def build_stream_end(self) -> StreamEnd:
        """The last part. Raises ProviderUnavailable when the model never said that it had finished."""
        if self._finish_reason in (None, "error"):
            raise ProviderUnavailable("The provider's stream ended before the answer did.")
        tool_calls = tuple(call.to_tool_call() for call in self._calls)
        reason = (
            "refusal"
            if self._is_refusal
            else _FINISH_REASONS.get(self._finish_reason or "", "stop")
        )
        if reason in ("stop", "tool_calls"):  # not every server tells the two apart
            reason = "tool_calls" if tool_calls else "stop"
            return StreamEnd(
                reason=reason,
                tool_calls=tool_calls,
                usage=self._usage,
                provider_data=self._build_provider_data(),
            )
        return StreamEnd(reason=reason, usage=self._usage)

    def _build_provider_data(self) -> dict[str, Any]:
        """What the protocol's dialects want back with the calls: DeepSeek the reasoning, Gemini a signature for each call."""
        extras = {call.id: call.extra for call in self._calls if call.extra}
        openai_data = {"model": self._model, "reasoning": self._thoughts, "extras": extras}
        return {"openai": openai_data} if self._calls and (self._thoughts or extras) else {}

    def _read_delta(self, delta: Any) -> Iterator[StreamPart]:
        if reasoning := getattr(delta, "reasoning_content", None):
            self._thoughts += mend_surrogates(reasoning)
        if reasoning := reasoning or getattr(delta, "reasoning", None):
            yield ReasoningDelta(self._reasoning_joiner.join(reasoning))
        if delta.content:
            yield from self._read_content(delta.content)
        if refusal := getattr(delta, "refusal", None):
            self._is_refusal = True
            yield TextDelta(refusal)
        for fragment in delta.tool_calls or ():
            self._find_call(fragment).add_fragment(fragment)

    def _read_content(self, content: Any) -> Iterator[StreamPart]:
        """Text; or, from Mistral's reasoning models, a list of typed pieces."""
        pieces: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
        for piece in pieces:
            if piece.get("type") == "thinking":
                yield ReasoningDelta(
                    self._reasoning_joiner.join(
                        "".join(thought.get("text", "") for thought in piece["thinking"])
                    )
                )
            elif piece.get("text"):
                yield TextDelta(self._text_joiner.join(piece["text"]))

    def _find_call(self, fragment: Any) -> "_PartialCall":
        """The call a fragment belongs to. Some servers give every parallel call the index 0, or none: a new id is a new call."""
        index = fragment.index or 0
        for call in reversed(self._calls):
            if call.index == index and fragment.id in (None, "", call.id):
                return call
        self._calls.append(_PartialCall(index, fragment.id or f"call_{uuid4().hex[:24]}"))
        return self._calls[-1]


class _PartialCall:
    """A tool call while its fragments arrive."""

    def __init__(self, index: int, id: str) -> None:
        self.index, self.id, self.name, self.arguments = index, id, "", ""
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
    """The protocol's tool results hold text alone: their images follow them in a message of the user's role."""
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
    """The messages, with each aside in one with a message of the user's beside it: some servers' templates refuse two in a row."""
    output_messages: list[ChatMessage] = []
    for message in messages:
        last_message = output_messages[-1] if output_messages else None
        if (
            last_message
            and last_message.role == message.role == "user"
            and (last_message.aside or message.aside)
        ):
            content = "\n\n".join(text for text in (last_message.content, message.content) if text)
            aside = last_message.aside and message.aside
            output_messages[-1] = replace(
                last_message,
                content=content,
                images=(*last_message.images, *message.images),
                aside=aside,
            )
        else:
            output_messages.append(message)
    return output_messages


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
    """An earlier answer; its reasoning goes back only while its turn still runs, and only to the model that gave it."""
    answer: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    if not message.tool_calls:
        return answer
    openai_data = message.provider_data.get("openai", {})
    openai_data = openai_data if openai_data.get("model") == model else {}
    answer["tool_calls"] = [
        _build_call(call, openai_data.get("extras", {}).get(call.id)) for call in message.tool_calls
    ]
    if in_turn and openai_data.get("reasoning"):
        answer["reasoning_content"] = openai_data["reasoning"]
    return answer


def _build_call(call: ToolCall, extra: dict[str, Any] | None) -> dict[str, Any]:
    # Servers that render templates fail on arguments that are no JSON object, whoever wrote them.
    function = {"name": call.name, "arguments": json.dumps(call.parse_arguments())}
    return {"id": call.id, "type": "function", "function": function} | (
        {"extra_content": extra} if extra else {}
    )


def _build_image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}
