"""Answers that are not stored: with `store: false` nothing of a response stays."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.base.threads import PREPARATION, TOOLS
from chatcore.context import builder
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.stateless import (
    StatelessExchange,
    build_provider_request,
)
from chatcore.contrib.compat.client_messages import convert_messages
from chatcore.contrib.compat.responses import beside, ids, origins, resource, resuming
from chatcore.contrib.compat.responses.mcp import items as mcp_items
from chatcore.contrib.compat.responses.mcp.items import ServerCall
from chatcore.contrib.compat.responses.mcp.stateless_tools import StatelessTools
from chatcore.contrib.compat.responses.output_items import (
    Answer,
    Item,
    ItemStatus,
    build_answer_items,
    list_forms,
)
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.contrib.compat.responses.stream_events import Event, EventWriter
from chatcore.contrib.compat.stored_context import replace_long_history
from chatcore.providers.base import (
    ChatMessage,
    ReasoningDelta,
    StreamEnd,
    TextDelta,
    ToolCall,
    Usage,
)
from chatcore.turns.client_tools import keep_first_calls
from chatcore.turns.generation import CALLS_AT_ONCE, TooManyToolRounds

MESSAGE_BYTES = 1_000  # that even the shortest message takes


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A conversation up to the end of an answer that is not stored."""

    messages: list[ChatMessage]
    system_texts: list[str]

    def weigh(self) -> int:
        """Return about how many bytes it takes."""
        texts = [*self.system_texts]
        size = 0
        for message in self.messages:
            texts += [message.content, *(call.arguments for call in message.tool_calls)]
            texts += [file.text for file in message.files]
            size += MESSAGE_BYTES + sum(image.size for image in message.images)
            size += len(str(message.provider_data))
        return size + sum(map(sys.getsizeof, texts))


class UnstoredResponse:
    """A response of which nothing is stored, and its answer.

    `memory` is what came before its input on the same connection, under the id `previous_id`.
    Raises ContextOverflow if the newest message alone is too large.
    """

    def __init__(
        self,
        user: User,
        request: ResponseRequest,
        memory: Memory | None = None,
        previous_id: str = "",
    ) -> None:
        self.id = ids.format_response_id(uuid4())
        self.created_at = int(time.time())
        self.request = request
        self.previous_id = previous_id or request.previous_response_id or None
        input_messages = _load_messages(user, request)
        if memory:
            _refuse_unknown_results(memory, input_messages)
            input_messages = [*memory.messages, *input_messages]
            request.input.system_texts[:0] = memory.system_texts
        chosen = [request.search_tool] if request.search_tool else []
        self.tools = StatelessTools(user.pk, request.servers, chosen)
        self.output: list[Item] = self.tools.build_list_items()
        allowed_items, self.messages = self.tools.run_allowed_calls(
            input_messages, resuming.list_open_approvals(request)
        )
        self.output += allowed_items
        self._user, self._owner_id = user, user.pk
        self.exchange = self._build_exchange()
        self._was_trimmed = False
        if request.echo["truncation"] == "disabled" and self.exchange.is_shortened:
            detail = "The input is longer than the context window, and truncation is disabled."
            raise OpenAIProblem(400, "context_length_exceeded", detail, param="input")
        self._end = StreamEnd(reason="stop")
        self._usage: Usage | None = None
        self._call_count = 0

    async def follow(self) -> AsyncGenerator[Event]:
        """Yield the events of the response."""
        writer = EventWriter(self.request.reasoning_form)
        for event in writer.begin(self.build_resource("in_progress")):
            yield event
        for item in self.output:
            for event in writer.add_server_item(item):
                yield event
        limit = settings.CHATCORE["TOOL_ROUNDS"]
        for _ in range(limit):
            async with aclosing(self._follow_round(writer)) as round_events:
                async for round_event in round_events:
                    yield round_event
            if self.messages[-1].role != "tool":
                break
            self._was_trimmed |= self.exchange.is_shortened
            self.exchange = await PREPARATION.run_for(self._owner_id, self._build_exchange)
            self.exchange.has_begun = True
        else:
            raise TooManyToolRounds(
                f"The model called tools {limit} times in a row without answering."
            )
        for event in writer.finish(self.build_final_resource()):
            yield event

    async def collect(self) -> None:
        """Wait for the whole answer."""
        async with aclosing(self.follow()) as events:
            async for _ in events:
                pass

    def build_resource(self, status: str, **members: Any) -> dict[str, object]:
        """Return the response in this status."""
        is_trimmed = self._was_trimmed or self.exchange.is_shortened
        return resource.build_resource(
            resource.add_trimming(self.request.echo, is_trimmed=is_trimmed),
            id=self.id,
            created_at=self.created_at,
            status=status,
            previous_id=self.previous_id,
            **members,
        )

    def build_final_resource(self) -> dict[str, object]:
        """Return the response after its end."""
        return self.build_resource(
            _get_status(self._end),
            cut_by=self._end.reason,
            completed_at=int(time.time()),
            output=self.output,
            usage=resource.format_usage(self._usage),
        )

    def build_headers(self) -> dict[str, str]:
        """Return headers about what was sent, as far as it is known."""
        return self.exchange.build_headers() | self.request.ignored_header

    def build_memory(self) -> Memory:
        """Return the conversation up to the end of this answer."""
        return Memory(messages=self.messages, system_texts=self.request.input.system_texts)

    async def _follow_round(self, writer: EventWriter) -> AsyncGenerator[Event]:
        """Yield the events of one call of the model, and of the calls that servers answer."""
        stem = ids.build_random_stem()
        writer.begin_message(stem)
        texts: dict[type, list[str]] = {TextDelta: [], ReasoningDelta: []}
        answer_parts = self.exchange.stream_parts()
        async with aclosing(
            beside.remember_summary(self._user, self.request, answer_parts)
        ) as parts:
            async for part in parts:
                if isinstance(part, StreamEnd):
                    self._end = self._note_end(part)
                else:
                    texts[type(part)].append(part.text)
                    is_text = isinstance(part, TextDelta)
                    add = writer.add_text if is_text else writer.add_reasoning
                    for event in add(part.text):
                        yield event
        answer = self._build_answer(stem, "".join(texts[TextDelta]), "".join(texts[ReasoningDelta]))
        calls = self.tools.build_calls(stem, self._end.tool_calls)
        open_answer = replace(answer, server_items=mcp_items.build_items(calls))
        for event in writer.end_message(self._build_items(open_answer)):
            yield event
        running_calls = [call for call in calls if not call.is_asked]
        places = asyncio.Semaphore(CALLS_AT_ONCE)
        results = await asyncio.gather(
            *(self._run_call(call.call, places) for call in running_calls)
        )
        outcomes = {result.tool_call_id: result for result in results}
        final_calls = [call.add_result(outcomes.get(call.call.id)) for call in calls]
        final_answer = replace(answer, server_items=mcp_items.build_items(final_calls))
        for item in final_answer.server_items:
            for event in writer.close_server_item(item):
                yield event
        self.output += self._build_items(final_answer)
        self._remember(answer, final_calls, results)

    def _note_end(self, end: StreamEnd) -> StreamEnd:
        """Count what a call of the model took; return its end with the calls that it may make."""
        limit = self.request.echo["max_tool_calls"]
        left = None if limit is None else max(0, limit - self._call_count)
        end = keep_first_calls(end, left)
        self._call_count += len(end.tool_calls)
        if end.usage:
            self._usage = end.usage.add(self._usage) if self._usage else end.usage
        return end

    def _build_answer(self, stem: str, content: str, reasoning: str) -> Answer:
        """Return what the model said, with the calls that the client runs."""
        server_ids = {call.call.id for call in self.tools.build_calls(stem, self._end.tool_calls)}
        return Answer(
            stem=stem,
            content=content,
            reasoning=reasoning,
            calls=[call for call in self._end.tool_calls if call.id not in server_ids],
            forms=list_forms(self.request.tools),
            status=_get_status(self._end),
            provider_data=self._end.provider_data,
        )

    def _build_items(self, answer: Answer) -> list[Item]:
        return build_answer_items(answer, self.request.reasoning_form)

    def _remember(
        self, answer: Answer, calls: Sequence[ServerCall], results: Sequence[ChatMessage]
    ) -> None:
        """Append the answer and its results; the last message is a result if the model goes on.

        A call that waits for a person's word has the id of the question, which the word names.
        """
        asked_ids = {
            call.call.id: ids.build_approval_id(call.stem, call.index)
            for call in calls
            if call.is_asked
        }
        tool_calls = tuple(
            replace(call, id=asked_ids.get(call.id, call.id)) for call in self._end.tool_calls
        )
        message = ChatMessage(
            role="assistant",
            content=answer.content,
            tool_calls=tool_calls,
            provider_data=self._end.provider_data,
        )
        is_open = bool(answer.calls or asked_ids)
        self.messages += [*results, message] if is_open else [message, *results]

    async def _run_call(self, call: ToolCall, places: asyncio.Semaphore) -> ChatMessage:
        """Run a call when one of the round's places is free."""
        async with places:
            return await TOOLS.run_for(self._owner_id, self.tools.run_call, call)

    def _build_exchange(self) -> StatelessExchange:
        request = self.request
        if not self.messages:
            raise OpenAIProblem(400, "missing_input", "There is nothing to answer.", param="input")
        texts = (request.instructions, *request.input.system_texts)
        provider_request = build_provider_request(
            request.model, texts, self.messages, request.tools, request.params
        )
        tools = [*provider_request.tools, *self.tools.definitions]
        provider_request = replace_long_history(
            request.model,
            replace(provider_request, tools=tools),
            lambda: beside.find_asked_session(self._user, request),
        )
        return StatelessExchange(request.model, provider_request, owner_id=self._owner_id)


def _get_status(end: StreamEnd) -> ItemStatus:
    return "completed" if end.reason in ("stop", "tool_calls") else "incomplete"


def _load_messages(user: User, request: ResponseRequest) -> list[ChatMessage]:
    """Return the stored messages that the request continues, and those of its input."""
    if not (request.previous_response_id or request.input.compaction):
        return convert_messages(request.input.messages, request.model)
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
    return [*messages, *convert_messages(origin.messages, request.model)]


def _refuse_unknown_results(memory: Memory, messages: Sequence[ChatMessage]) -> None:
    """Raise the 400 problem for an output of a tool that was not called."""
    call_ids = {call.id for message in (*memory.messages, *messages) for call in message.tool_calls}
    for message in messages:
        if message.role == "tool" and message.tool_call_id not in call_ids:
            detail = f"No tool call found for function call output {message.tool_call_id}."
            raise InvalidFieldError("input", detail)
