"""Answer a request of an API in the form of another product's, with a memory or without one."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import Protocol
from uuid import uuid4

from django.db import close_old_connections
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from chatcore.api.long_responses import call_at_end, run_for_client
from chatcore.api.turn_requests import wait_for_end
from chatcore.base.rest import turn_rate
from chatcore.base.rest.auth import SignedInRequest
from chatcore.context.compactor import get_compactor
from chatcore.contrib.compat import histories, summary_notes, web_search
from chatcore.contrib.compat.chat_completions import memory, streams
from chatcore.contrib.compat.chat_completions.request import (
    CompletionRequest,
    build_ignored_header,
)
from chatcore.contrib.compat.chat_completions.side_calls import (
    is_side_call,
    is_summary_call,
    may_ask_by_system,
)
from chatcore.contrib.compat.chat_completions.stateless import StatelessExchange
from chatcore.contrib.compat.chat_completions.streams import BegunStream, ClientWatch
from chatcore.contrib.compat.client_messages import has_new_results
from chatcore.contrib.compat.programs import Keeping, get_keeping
from chatcore.contrib.compat.stored_context import replace_long_history
from chatcore.models import Session, Turn
from chatcore.providers.base import Request as ProviderRequest
from chatcore.providers.base import StreamEnd, StreamPart
from chatcore.turns import capacity


class AnswerForm(Protocol):
    """How one API shows an answer."""

    def build_provider_request(self) -> ProviderRequest:
        """Return the request without a memory, before it is made to fit."""
        ...

    def name_answer(self, turn: Turn, after_seq: int) -> None:
        """Note which turn of a session answers, from the event after `after_seq` on."""
        ...

    def stream(
        self, parts: AsyncGenerator[StreamPart | None], count_input: Callable[[], int]
    ) -> AsyncGenerator[bytes]:
        """Yield the answer as events; a part that is None becomes a heartbeat.

        Closing this generator closes `parts`. `count_input` estimates the tokens of what was sent,
        and may query the database.
        """
        ...

    def format_failure(self, error: Exception) -> bytes:
        """Return the event that ends a stream with an error."""
        ...

    def format_answer(self, text: str, reasoning: str, final_part: StreamEnd) -> dict[str, object]:
        """Return the whole answer."""
        ...


def answer(
    request: SignedInRequest, completion_request: CompletionRequest, form: AnswerForm
) -> HttpResponseBase:
    """Answer the last message, with a memory if the request belongs to a conversation.

    Its session is the one that it names, or else the one that its whole history continues.
    """
    answer = _continue_history(request, completion_request, form) or begin_answer(
        request, completion_request, form
    )
    if isinstance(answer, Response):
        return answer
    return streams.hand_over(
        request,
        answer.chunks,
        answer.build_headers,
        on_end=answer.on_end,
        format_failure=form.format_failure,
    )


def _continue_history(
    request: SignedInRequest, completion_request: CompletionRequest, form: AnswerForm
) -> Response | BegunStream | None:
    """Answer a request without a name in the session that its history continues, if there is one.

    That session begins here if nothing of the conversation is stored yet.
    """
    keeping = get_keeping(request.auth)
    thread = completion_request.thread
    if thread.name or not keeping.is_on or is_side_call(completion_request, lambda: None):
        return None
    if _asks_by_system(request, completion_request, keeping):
        return None
    history = histories.find_known_history(request.user, keeping, completion_request.messages)
    if history is None:
        return None
    thread = replace(thread, name=f"history_{uuid4().hex}", summary_length=history.summary_length)
    completion_request = completion_request.put_in(thread)
    with histories.begin_answer(history):
        session = history.session
        if session is None:
            session = history.session = memory.create_session(request.user, completion_request)
        return _answer_with_memory(request, completion_request, form, session)


def _asks_by_system(
    request: SignedInRequest, completion_request: CompletionRequest, keeping: Keeping
) -> bool:
    """Return True if a system text other than the conversation's asks for a summary of it."""
    if not may_ask_by_system(completion_request):
        return False
    messages = completion_request.messages
    sessions = histories.find_summarized_sessions(request.user, keeping, messages)
    return bool(sessions) and sessions[0].system_prompt != completion_request.system


def begin_answer(
    request: SignedInRequest, completion_request: CompletionRequest, form: AnswerForm
) -> Response | BegunStream:
    """Return the whole answer, or the stream of one that has begun."""
    session = None
    if completion_request.thread.name:
        session = memory.find_session(request.user, completion_request.thread.name)
        if not is_side_call(completion_request, lambda: session):
            return _answer_with_memory(request, completion_request, form, session)
    with ExitStack() as held:
        held.enter_context(capacity.take_slot(request.user.pk))
        _count_turn(request, completion_request)
        return _answer_without_memory(request, completion_request, form, held, session)


def _answer_with_memory(
    request: SignedInRequest,
    completion_request: CompletionRequest,
    form: AnswerForm,
    session: Session | None,
) -> Response | BegunStream:
    """Answer in a session; None stands for one that does not exist yet."""
    with _reserve_turn(request, completion_request):
        _count_turn(request, completion_request)
        session = session or memory.create_session(request.user, completion_request)
        turn, after_seq = memory.start_or_resume_turn(session, completion_request)
    form.name_answer(turn, after_seq)
    watch = ClientWatch(turn)
    call_at_end(request, watch.stop_unless_over)
    ignored_header = build_ignored_header(completion_request.ignored_fields)
    if completion_request.stream:
        parts = streams.add_heartbeats(watch.watch_parts(memory.stream_parts(turn, after_seq)))
        return BegunStream(
            chunks=form.stream(parts, lambda: get_compactor().estimate_tokens(session)),
            build_headers=lambda: memory.build_context_headers(turn) | ignored_header,
            on_end=watch.stop_unless_over,
        )
    with watch:
        turn = wait_for_end(turn)
    text, reasoning, final_part = memory.load_answer(turn)
    token_count = final_part.usage.input if final_part.usage else None
    return Response(
        form.format_answer(text, reasoning, final_part),
        headers=memory.build_context_headers(turn, token_count) | ignored_header,
    )


def _answer_without_memory(
    request: SignedInRequest,
    completion_request: CompletionRequest,
    form: AnswerForm,
    held: ExitStack,
    session: Session | None,
) -> Response | BegunStream:
    """Answer the request, which may ask for something beside the conversation of a session.

    A stream takes over what is held until the end of the answer.
    """
    keeping = get_keeping(request.auth)

    def find_session() -> Session | None:
        if session or completion_request.thread.name or not keeping.is_on:
            return session
        return histories.find_asked_session(request.user, keeping, completion_request.messages)

    model, search_tool = completion_request.model, completion_request.search_tool
    provider_request = form.build_provider_request()
    if search_tool:
        tools = [*provider_request.tools, search_tool.definition]
        provider_request = replace(provider_request, tools=tools)
    provider_request = replace_long_history(model, provider_request, find_session)
    exchange = StatelessExchange(model, provider_request, owner_id=request.user.pk)
    ignored_header = build_ignored_header(completion_request.ignored_fields)
    answer_parts = web_search.stream_parts(request.user, exchange, search_tool)
    may_note = keeping.is_on and not completion_request.thread.name
    if may_note and (
        is_summary_call(completion_request) or _asks_by_system(request, completion_request, keeping)
    ):
        answer_parts = summary_notes.remember_summary(
            summary_notes.hash_client(request.user.pk, keeping),
            answer_parts,
            partial(
                histories.find_summarized_sessions,
                request.user,
                keeping,
                completion_request.messages,
            ),
        )
    if completion_request.stream:
        parts = streams.add_heartbeats(answer_parts)
        return BegunStream(
            chunks=form.stream(parts, lambda: int(exchange.build_headers()["X-Context-Tokens"])),
            build_headers=lambda: exchange.build_headers() | ignored_header,
            on_end=held.pop_all().close,
        )
    # The model may take minutes, and other requests need this thread's connection meanwhile.
    close_old_connections()
    parts_of_answer = streams.collect_parts(answer_parts)
    text, reasoning, final_part = run_for_client(request, parts_of_answer)
    return Response(
        form.format_answer(text, reasoning, final_part),
        headers=exchange.build_headers() | ignored_header,
    )


def _count_turn(request: SignedInRequest, completion_request: CompletionRequest) -> None:
    turn_rate.count_turn(request, has_results=has_new_results(completion_request.messages))


def _reserve_turn(
    request: SignedInRequest, completion_request: CompletionRequest
) -> AbstractContextManager[None]:
    """Reserve a place before anything is stored, also the session.

    Results of tools may be repeated ones, which need no place; what they start takes its own.
    """
    if completion_request.messages[-1].role == "tool":
        return nullcontext()
    return capacity.reserve_turn(request.user.pk)
