"""Chat completions on the wire: requests into their form, and chunks out of it."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from chatcore.providers.base import (
    UNSAID,
    ChatMessage,
    Finished,
    Image,
    Part,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCall,
    Usage,
)
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.unicode import Joiner, mended

_REASONS: dict[str, Literal["stop", "length", "tool_calls", "refusal"]] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}
_OF_TOOLS = "(Images of the tool results above.)"


def messages(request: Request) -> list[dict[str, Any]]:
    """The system texts and the messages; those that say nothing are left out. Gemini refuses a request whose first message is a call."""
    system = [
        {"role": "system", "content": text}
        for text in (request.system, request.preface)
        if text.strip()
    ]
    said = _joined(
        _with_images_apart(
            [
                m
                for m in request.messages
                if m.content or m.tool_calls or m.images or m.role == "tool"
            ]
        )
    )
    if said and said[0].tool_calls:
        said.insert(0, ChatMessage(role="user", content=UNSAID, aside=True))
    asked = max((i for i, m in enumerate(said) if m.role == "user" and not m.aside), default=-1)
    return system + [_message(m, request.model, in_turn=i > asked) for i, m in enumerate(said)]


def tools(request: Request) -> list[dict[str, Any]]:
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


def usage(reported: Any) -> Usage | None:
    """Tokens as reported; `prompt_tokens` includes the cached ones here."""
    if reported is None or getattr(reported, "prompt_tokens", None) is None:
        return None
    details = getattr(reported, "prompt_tokens_details", None)
    return Usage(
        input=reported.prompt_tokens,
        output=getattr(reported, "completion_tokens", None) or 0,
        cache_read=getattr(details, "cached_tokens", None),
        cache_write=getattr(details, "cache_write_tokens", None),
    )


class Answer:
    """An answer while its chunks arrive. `model` is noted beside what only that model may be shown again."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._thoughts = ""
        self._calls: list[_Call] = []
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._refused = False
        self._text, self._reasoning = Joiner(), Joiner()

    def read(self, chunk: Any) -> Iterator[Part]:
        """The parts that one chunk brings."""
        self._usage = usage(getattr(chunk, "usage", None)) or self._usage
        for choice in chunk.choices or ():
            self._finish = choice.finish_reason or self._finish
            if choice.delta is not None:
                yield from self._delta(choice.delta)

    def finished(self) -> Finished:
        """The last part. Raises ProviderUnavailable when the model never said that it had finished."""
        if self._finish in (None, "error"):
            raise ProviderUnavailable("The provider's stream ended before the answer did.")
        calls = tuple(call.whole() for call in self._calls)
        reason = "refusal" if self._refused else _REASONS.get(self._finish or "", "stop")
        if reason in ("stop", "tool_calls"):  # not every server tells the two apart
            reason = "tool_calls" if calls else "stop"
            return Finished(
                reason=reason, tool_calls=calls, usage=self._usage, provider_data=self._kept()
            )
        return Finished(reason=reason, usage=self._usage)

    def _kept(self) -> dict[str, Any]:
        """What the protocol's dialects want back with the calls: DeepSeek the reasoning, Gemini a signature for each call."""
        extras = {call.id: call.extra for call in self._calls if call.extra}
        kept = {"model": self._model, "reasoning": self._thoughts, "extras": extras}
        return {"openai": kept} if self._calls and (self._thoughts or extras) else {}

    def _delta(self, delta: Any) -> Iterator[Part]:
        if reasoning := getattr(delta, "reasoning_content", None):
            self._thoughts += mended(reasoning)
        if reasoning := reasoning or getattr(delta, "reasoning", None):
            yield ReasoningDelta(self._reasoning.join(reasoning))
        if delta.content:
            yield from self._content(delta.content)
        if refusal := getattr(delta, "refusal", None):
            self._refused = True
            yield TextDelta(refusal)
        for fragment in delta.tool_calls or ():
            self._call_of(fragment).add(fragment)

    def _content(self, content: Any) -> Iterator[Part]:
        """Text; or, from Mistral's reasoning models, a list of typed pieces."""
        pieces: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
        for piece in pieces:
            if piece.get("type") == "thinking":
                yield ReasoningDelta(
                    self._reasoning.join(
                        "".join(thought.get("text", "") for thought in piece["thinking"])
                    )
                )
            elif piece.get("text"):
                yield TextDelta(self._text.join(piece["text"]))

    def _call_of(self, fragment: Any) -> "_Call":
        """The call a fragment belongs to. Some servers give every parallel call the index 0, or none: a new id is a new call."""
        index = fragment.index or 0
        for call in reversed(self._calls):
            if call.index == index and fragment.id in (None, "", call.id):
                return call
        self._calls.append(_Call(index, fragment.id or f"call_{uuid4().hex[:24]}"))
        return self._calls[-1]


class _Call:
    """A tool call while its fragments arrive."""

    def __init__(self, index: int, id: str) -> None:
        self.index, self.id, self.name, self.arguments = index, id, "", ""
        self.extra: dict[str, Any] = {}

    def add(self, fragment: Any) -> None:
        self.extra |= getattr(fragment, "extra_content", None) or {}
        if fragment.function is not None:
            self.name = self.name or fragment.function.name or ""
            self.arguments += fragment.function.arguments or ""

    def whole(self) -> ToolCall:
        if not self.name:
            raise ProviderUnavailable("The provider sent a tool call without a name.")
        return ToolCall(id=self.id, name=self.name, arguments=mended(self.arguments) or "{}")


def _with_images_apart(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The protocol's tool results hold text alone: their images follow them in a message of the user's role."""
    apart: list[ChatMessage] = []
    images: tuple[Image, ...] = ()
    for message in [*messages, None]:
        if images and (message is None or message.role != "tool"):
            apart.append(ChatMessage(role="user", content=_OF_TOOLS, images=images, aside=True))
            images = ()
        if message is not None:
            images += message.images if message.role == "tool" else ()
            apart.append(message)
    return apart


def _joined(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages, with each aside in one with a message of the user's beside it: some servers' templates refuse two in a row."""
    joined: list[ChatMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last and last.role == message.role == "user" and (last.aside or message.aside):
            content = "\n\n".join(text for text in (last.content, message.content) if text)
            aside = last.aside and message.aside
            joined[-1] = replace(
                last, content=content, images=(*last.images, *message.images), aside=aside
            )
        else:
            joined.append(message)
    return joined


def _message(message: ChatMessage, model: str, *, in_turn: bool) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.role == "assistant":
        return _answer(message, model, in_turn=in_turn)
    if not message.images:
        return {"role": "user", "content": message.content}
    text = [{"type": "text", "text": message.content}] if message.content else []
    return {"role": "user", "content": text + [_image(image) for image in message.images]}


def _answer(message: ChatMessage, model: str, *, in_turn: bool) -> dict[str, Any]:
    """An earlier answer; its reasoning goes back only while its turn still runs, and only to the model that gave it."""
    answer: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    if not message.tool_calls:
        return answer
    kept = message.provider_data.get("openai", {})
    kept = kept if kept.get("model") == model else {}
    answer["tool_calls"] = [
        _call(call, kept.get("extras", {}).get(call.id)) for call in message.tool_calls
    ]
    if in_turn and kept.get("reasoning"):
        answer["reasoning_content"] = kept["reasoning"]
    return answer


def _call(call: ToolCall, extra: dict[str, Any] | None) -> dict[str, Any]:
    # Servers that render templates fail on arguments that are no JSON object, whoever wrote them.
    function = {"name": call.name, "arguments": json.dumps(call.as_object())}
    return {"id": call.id, "type": "function", "function": function} | (
        {"extra_content": extra} if extra else {}
    )


def _image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}
