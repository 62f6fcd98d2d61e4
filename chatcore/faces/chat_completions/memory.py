"""Answers with a memory: what a session knows of the client's history is recognized, what is new is said to it, and a turn answers."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from uuid import UUID

from django.db import transaction

from chatcore.api import turn_responses
from chatcore.api.sessions import update_session
from chatcore.context import builder
from chatcore.events import log as event_log
from chatcore.faces.chat_completions import matching
from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.messages import ClientMessage, get_trailing_results
from chatcore.faces.chat_completions.request import CompletionRequest
from chatcore.files import intake
from chatcore.models import Attachment, Message, Session, Turn
from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta, Usage
from chatcore.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.threads import run_in_thread
from chatcore.transfer import reader, sessions
from chatcore.turns import client_tools, leases, lifecycle, service

_MISSING_RESULTS_DETAIL = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'; missing: "


def get_or_create_session(user: Any, completion_request: CompletionRequest) -> Session:
    """The user's session of that id, else the one that clients call so; made on first use, with no tools but the client's."""
    try:
        session = (
            Session.objects.owned_by(user).filter(pk=UUID(completion_request.session_name)).first()
        )
    except ValueError:
        session = None
    defaults = {"model": completion_request.model, "tools": []}
    return (
        session
        or Session.objects.get_or_create(
            owner=user, external_id=completion_request.session_name, defaults=defaults
        )[0]
    )


def start_or_resume_turn(
    session: Session, completion_request: CompletionRequest
) -> tuple[Turn, int]:
    """Say what is new to the session. Returns the turn that answers, and the `seq` of an event before all that it says.

    Raises 409 history_diverged, and what the turns refuse.
    """
    with _translate_errors():
        lifecycle.recover_dead_turns(session.pk)
        resumed_turn = (
            _resume_turn(session, completion_request)
            if completion_request.messages[-1].role == "tool"
            else None
        )
        if resumed_turn:
            return resumed_turn
        if session.turns.filter(status=Turn.Status.WAITING).exists():
            service.cancel_turn(session.pk)  # its client has gone on without the results
        with transaction.atomic():
            locked_session = leases.lock_session(session.pk)
            leases.refuse_open_turn(locked_session)
            turn = _start_turn(
                locked_session,
                completion_request,
                matching.match_history(locked_session, completion_request.messages),
            )
        return turn, turn.first_event_seq - 1


async def stream_parts(turn: Turn, after_seq: int) -> AsyncGenerator[StreamPart | None]:
    """What the turn says after an event, as it is said; None is a heartbeat. Raises the problem with which it fails.

    Texts around calls of built-in tools are paragraphs of one answer.
    """
    if turn.status not in Turn.OPEN_STATUSES:
        text, reasoning, final_part = await run_in_thread(load_answer, turn)
        for part in (ReasoningDelta(reasoning), TextDelta(text)):
            if part.text:
                yield part
        yield final_part
        return
    has_text = needs_gap = False
    message_ids: set[int] = set()
    async for event in event_log.follow_events(turn.session_id, after_seq):
        if event is None:
            yield None
        elif event.name == "message.created" and event.data["turn"] == str(turn.pk):
            message_ids.add(event.data["message"])
            needs_gap = has_text
        elif event.name == "message.delta" and event.data["message"] in message_ids:
            yield TextDelta(("\n\n" if needs_gap else "") + event.data["text"])
            has_text, needs_gap = True, False
        elif event.name == "reasoning.delta" and event.data["message"] in message_ids:
            yield ReasoningDelta(event.data["text"])
        elif event.name in _END_EVENTS and event.data.get("turn") == str(turn.pk):
            yield (await run_in_thread(_load_answer_of_turn, turn.pk))[2]
            return
    raise OpenAIProblem(404, "session_deleted", "The session was deleted.")


def load_answer(turn: Turn) -> tuple[str, str, StreamEnd]:
    """Text, reasoning and end of what a turn that has ended, or waits, came to. Raises the problem with which it failed."""
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        turn_responses.build_turn_response(turn)
    rows = list(turn.messages.filter(branch=None).order_by("seq").values(*matching.MESSAGE_COLUMNS))
    assistant_messages = [
        entry
        for entry in matching.build_stored_messages(rows)
        if entry.role == Message.Role.ASSISTANT
    ]
    if not assistant_messages or (
        assistant_messages[-1].calls and turn.status != Turn.Status.WAITING
    ):
        return "", "", StreamEnd(reason="stop")
    message = Message.objects.get(pk=assistant_messages[-1].pk)
    usage = None
    if message.token_count_input is not None:
        token_counts = message.token_count_input, message.token_count_output or 0
        usage = Usage(
            input=token_counts[0], output=token_counts[1], cache_read=message.token_count_cache_read
        )
    max_tokens = turn.session.params.get("max_tokens")
    is_full = bool(usage and max_tokens and usage.output >= max_tokens)
    reason: Literal["tool_calls", "length", "stop"] = (
        "tool_calls" if assistant_messages[-1].calls else "length" if is_full else "stop"
    )
    return (
        assistant_messages[-1].content,
        message.reasoning,
        StreamEnd(reason=reason, tool_calls=assistant_messages[-1].calls, usage=usage),
    )


def build_context_headers(turn: Turn, token_count: int | None = None) -> dict[str, str]:
    """What the client may know of the session's context: tokens as the provider `counted` them, or about."""
    session = Session.objects.get(pk=turn.session_id)
    guard = builder.load_guard()
    tokens = (
        token_count if token_count is not None else guard.estimate_tokens(session) if guard else 0
    )
    is_compacted = session.compact_boundary_seq is not None or bool(
        Turn.objects.get(pk=turn.pk).notices
    )
    return {
        "X-Context-Tokens": str(tokens),
        "X-Context-Compacted": "true" if is_compacted else "false",
    }


_END_EVENTS = event_log.TURN_END_EVENTS | {"turn.waiting"}


def _load_answer_of_turn(turn_id: UUID) -> tuple[str, str, StreamEnd]:
    return load_answer(Turn.objects.select_related("session").get(pk=turn_id))


def _resume_turn(
    session: Session, completion_request: CompletionRequest
) -> tuple[Turn, int] | None:
    """The turn that goes on with these results, or went on with them before; None where none waits for them."""
    history_match = matching.match_history(session, completion_request.messages)
    if any(message.role != "tool" for message in history_match.new_messages):
        return None
    results = get_trailing_results(completion_request.messages)
    waiting_turn = session.turns.filter(status=Turn.Status.WAITING).first()
    missing_ids = (
        {call.id for call in client_tools.find_pending_calls(waiting_turn)}
        - {message.call_id for message in results}
        if waiting_turn
        else set()
    )
    if missing_ids:
        raise InvalidFieldError(
            "messages", _MISSING_RESULTS_DETAIL + ", ".join(sorted(missing_ids))
        )
    _apply_request_settings(session, completion_request)
    try:
        client_results = [
            client_tools.ClientToolResult(tool_call_id=message.call_id, content=message.content)
            for message in results
        ]
        turn, after_seq = service.submit_tool_results(session, client_results)
    except service.NoWaitingTurn:
        return None
    return (
        (turn, after_seq) if turn.status in (*Turn.OPEN_STATUSES, Turn.Status.COMPLETED) else None
    )


def _start_turn(
    session: Session, completion_request: CompletionRequest, history_match: matching.HistoryMatch
) -> Turn:
    """The turn that answers, the session's row being locked."""
    _apply_request_settings(session, completion_request)
    last_message = completion_request.messages[-1]
    if last_message.role == "assistant":
        raise InvalidFieldError(
            "messages", "The last message is the assistant's: there is nothing to answer."
        )
    if last_message.role == "user" and history_match.regenerate_pk:
        return service.regenerate_answer(
            session.messages.get(pk=history_match.regenerate_pk), tools=completion_request.tools
        )
    if last_message.role == "user":
        _import_messages(session, history_match.new_messages[:-1])
        return service.start_turn(
            session,
            content=last_message.content,
            attachments=_store_images(session, last_message),
            tools=completion_request.tools,
        )
    _import_messages(session, history_match.new_messages)
    newest_message = (
        session.messages.exclude_superseded().order_by("seq").last()
        if history_match.regenerate_pk is None
        else session.messages.get(pk=history_match.regenerate_pk)
    )
    assert newest_message
    return service.continue_from_tool_result(newest_message, tools=completion_request.tools)


def _apply_request_settings(session: Session, completion_request: CompletionRequest) -> None:
    """Model, parameters and system text of the request are the session's from now on."""
    settings = {"model": completion_request.model, "params": completion_request.params}
    if completion_request.system is not None:
        settings["system_prompt"] = completion_request.system
    changes = {name: value for name, value in settings.items() if getattr(session, name) != value}
    if changes:
        update_session(session, changes)


def _import_messages(session: Session, messages: Sequence[ClientMessage]) -> None:
    """Store messages of a history that was not told here."""
    if not messages:
        return
    for message, row in zip(
        messages,
        sessions.import_messages(session, [message.to_import_record() for message in messages]),
        strict=True,
    ):
        Attachment.objects.filter(pk__in=_store_images(session, message)).update(message=row)
    session.refresh_from_db(fields=["last_seq"])


def _store_images(session: Session, message: ClientMessage) -> list[UUID]:
    if len(message.images) > intake.MAX_FILES:
        raise TooLargeProblem(f"A message has at most {intake.MAX_FILES} images.")
    try:
        named_images = (
            (f"image-{number}", image.data) for number, image in enumerate(message.images, start=1)
        )
        return [
            intake.store_file(session, name=name, data=data, is_pending=False).pk
            for name, data in named_images
        ]
    except intake.FileRejected as error:
        raise InvalidFieldError("messages", str(error)) from None


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Inside, whatever turns and imports refuse is a problem by its name."""
    try:
        with turn_responses.translate_turn_errors():
            yield
    except reader.MessageTooLong as error:
        raise TooLargeProblem(str(error)) from None
    except reader.InvalidImport as error:
        raise InvalidFieldError("messages", str(error)) from None
