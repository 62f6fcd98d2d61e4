"""Answers that are not stored: with `store: false` nothing of a response stays."""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from chatcore.context import builder, tool_pairs
from chatcore.events.log import HEARTBEAT_SECONDS
from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.stateless import StatelessExchange
from chatcore.faces.chat_completions.streams import add_heartbeats
from chatcore.faces.client_messages import ClientMessage
from chatcore.faces.responses import ids, origins, resource
from chatcore.faces.responses.output_items import Answer, Item, build_answer_items
from chatcore.faces.responses.request import ResponseRequest
from chatcore.faces.responses.stream_events import Event, EventWriter
from chatcore.providers.base import (
    ChatMessage,
    ReasoningDelta,
    Request,
    StreamEnd,
    StreamPart,
    TextDelta,
    Tool,
)
from chatcore.rest.problems import InvalidFieldError
from chatcore.turns.tool_limits import keep_first_calls


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A conversation up to the end of an answer that is not stored."""

    messages: list[ChatMessage]
    system_texts: list[str]


class UnstoredResponse:
    """A response of which nothing is stored, and its answer.

    `memory` is what came before its input on the same connection, under the id `previous_id`.
    Raises ContextOverflow if the newest message alone is too large.
    """

    def __init__(
        self,
        user: Any,
        request: ResponseRequest,
        memory: Memory | None = None,
        previous_id: str = "",
    ) -> None:
        self.id = ids.format_response_id(uuid4())
        self.created_at = int(time.time())
        self.request = request
        self.stem = ids.build_random_stem()
        self.previous_id = previous_id or request.previous_response_id or None
        self.messages = _load_messages(user, request)
        if memory:
            _refuse_unknown_results(memory, self.messages)
            self.messages = [*memory.messages, *self.messages]
            request.input.system_texts[:0] = memory.system_texts
        self.exchange = StatelessExchange(
            request.model, _build_provider_request(self), owner_id=user.pk
        )
        if request.body.get("truncation") == "disabled" and self.exchange.is_shortened:
            detail = "The input is longer than the context window, and truncation is disabled."
            raise OpenAIProblem(400, "context_length_exceeded", detail, param="input")
        self._texts: dict[type, list[str]] = {TextDelta: [], ReasoningDelta: []}
        self._end = StreamEnd(reason="stop")

    async def follow(self) -> AsyncGenerator[Event | None]:
        """Yield the events of the response; None is a heartbeat."""
        writer = EventWriter(self.request.reasoning_form)
        for event in writer.begin(self.build_resource("in_progress")):
            yield event
        writer.begin_message(self.stem)
        parts = add_heartbeats(self.exchange.stream_parts(), HEARTBEAT_SECONDS)
        async with aclosing(parts):
            async for part in parts:
                if part is None:
                    yield None
                    continue
                for event in self._add_part(writer, part):
                    yield event
        for event in writer.end_message(self.build_items()):
            yield event
        for event in writer.finish(self.build_final_resource()):
            yield event

    async def collect(self) -> None:
        """Wait for the whole answer."""
        async with aclosing(self.exchange.stream_parts()) as parts:
            async for part in parts:
                self._add_part(None, part)

    def build_resource(self, status: str, **members: Any) -> dict[str, Any]:
        """Return the response in this status."""
        return resource.build_resource(
            self.request.echo,
            id=self.id,
            created_at=self.created_at,
            status=status,
            previous_id=self.previous_id,
            **members,
        )

    def build_final_resource(self) -> dict[str, Any]:
        """Return the response after its end."""
        return self.build_resource(
            "incomplete" if self._end.reason == "length" else "completed",
            completed_at=int(time.time()),
            output=self.build_items(),
            usage=resource.format_usage(self._end.usage),
        )

    def build_items(self) -> list[Item]:
        """Return the items of the answer so far."""
        answer = Answer(
            stem=self.stem,
            content="".join(self._texts[TextDelta]),
            reasoning="".join(self._texts[ReasoningDelta]),
            calls=self._end.tool_calls,
            status="incomplete" if self._end.reason == "length" else "completed",
            provider_data=self._end.provider_data,
        )
        return build_answer_items(answer, self.request.reasoning_form)

    def build_memory(self) -> Memory:
        """Return the conversation up to the end of this answer."""
        answer = ChatMessage(
            role="assistant",
            content="".join(self._texts[TextDelta]),
            tool_calls=self._end.tool_calls,
            provider_data=self._end.provider_data,
        )
        return Memory(
            messages=[*self.messages, answer], system_texts=self.request.input.system_texts
        )

    def _add_part(self, writer: EventWriter | None, part: StreamPart) -> list[Event]:
        if isinstance(part, StreamEnd):
            self._end = keep_first_calls(part, self.request.echo["max_tool_calls"])
            return []
        self._texts[type(part)].append(part.text)
        if writer is None:
            return []
        if isinstance(part, TextDelta):
            return list(writer.add_text(part.text))
        return list(writer.add_reasoning(part.text))


def _load_messages(user: Any, request: ResponseRequest) -> list[ChatMessage]:
    """Return the stored messages that the request continues, and those of its input."""
    accepts_images = request.model.supports_images
    if not (request.previous_response_id or request.input.compaction):
        return _convert(request.input.messages, supports_images=accepts_images)
    origin = origins.find_origin(user, request)
    request.input.system_texts[:0] = origin.system_texts
    messages: list[ChatMessage] = []
    if origin.summary:
        request.input.system_texts.append(origin.summary)
    if origin.session:
        built_request = builder.build_request(origin.session)
        last_seq = origin.head_seq or 0
        if not origin.session.messages.filter(seq=last_seq, branch=None).exists():
            detail = "Only the current version of a conversation can be continued without storing."
            raise OpenAIProblem(409, "superseded", detail, param="previous_response_id")
        if built_request.system_summary or built_request.preface:
            request.input.system_texts.append(built_request.system_summary or built_request.preface)
        messages = [
            message
            for message in built_request.messages
            if message.seq is None or message.seq <= last_seq
        ]
    return [*messages, *_convert(origin.messages, supports_images=accepts_images)]


def _refuse_unknown_results(memory: Memory, messages: Sequence[ChatMessage]) -> None:
    """Raise the 400 problem for an output of a tool that was not called."""
    call_ids = {call.id for message in (*memory.messages, *messages) for call in message.tool_calls}
    for message in messages:
        if message.role == "tool" and message.tool_call_id not in call_ids:
            detail = f"No tool call found for function call output {message.tool_call_id}."
            raise InvalidFieldError("input", detail)


def _convert(messages: Sequence[ClientMessage], *, supports_images: bool) -> list[ChatMessage]:
    return [message.to_chat_message(supports_images=supports_images) for message in messages]


def _build_provider_request(response: UnstoredResponse) -> Request:
    """Build the request for the provider, before it is made to fit."""
    request = response.request
    params = dict(request.params)
    max_tokens = params.pop("max_tokens", None)
    texts = (request.instructions, *request.input.system_texts)
    if not response.messages:
        raise OpenAIProblem(400, "missing_input", "There is nothing to answer.", param="input")
    return Request(
        model=request.model.name,
        system="\n\n".join(text for text in texts if text),
        messages=tool_pairs.pair_tool_calls(response.messages),
        tools=[Tool(**tool) for tool in request.tools],
        max_tokens=max_tokens,
        params=params,
    )
