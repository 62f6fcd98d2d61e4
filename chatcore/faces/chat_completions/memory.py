"""Answers with a memory: recognize what the session knows, store what is new, start a turn."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal
from uuid import UUID

from django.db import transaction

from chatcore.api.errors import build_turn_problem
from chatcore.context.compactor import get_compactor
from chatcore.events import log as event_log
from chatcore.events.types import TURN_END_EVENTS, EventType
from chatcore.faces.chat_completions import matching
from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.messages import ClientMessage, get_trailing_results
from chatcore.faces.chat_completions.request import CompletionRequest
from chatcore.files import intake
from chatcore.models import Attachment, Message, Session, Turn
from chatcore.providers.base import ReasoningDelta, StreamEnd, StreamPart, TextDelta, Usage
from chatcore.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import record_session_change
from chatcore.threads import run_in_thread
from chatcore.transfer import importer
from chatcore.turns import client_tools, leases, lifecycle, service

# OpenAI's own words, which some clients compare.
MISSING_RESULTS_DETAIL = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'; missing: "
)
PAUSE_EVENTS = TURN_END_EVENTS | {EventType.TURN_WAITING}  # after which a turn says nothing more


def get_or_create_session(user: Any, completion_request: CompletionRequest) -> Session:
    """Return the user's session that the request names, by its id or by the client's own name.

    A session with a new name is created; it has no tools except the client's.
    """
    name = completion_request.session_name
    try:
        session = Session.objects.owned_by(user).filter(pk=UUID(name)).first()
    except ValueError:  # the name is no UUID
        session = None
    if session:
        return session
    defaults = {"model": completion_request.model, "tools": []}
    session, is_new = Session.objects.get_or_create(owner=user, external_id=name, defaults=defaults)
    if is_new:
        archive_surplus_sessions(session)
    return session


def start_or_resume_turn(
    session: Session, completion_request: CompletionRequest
) -> tuple[Turn, int]:
    """Store what is new to the session, and return the turn that answers.

    Also returns the `seq` of an event before all events of the answer. Raises the 409 problem
    `history_diverged`, and what `turns.service` raises.
    """
    lifecycle.recover_dead_turns(session.pk)
    if completion_request.messages[-1].role == "tool":
        resumed_turn = _resume_turn(session, completion_request)
        if resumed_turn:
            return resumed_turn
    if session.turns.filter(status=Turn.Status.WAITING).exists():
        # The client sent another message instead of the results that the turn waits for.
        service.cancel_turn(session.pk)
    # The lock keeps two requests from matching their histories with the same stored one, and then
    # both storing what is new.
    with transaction.atomic():
        locked_session = Session.objects.lock(session.pk)
        leases.refuse_open_turn(locked_session)
        history_match = matching.match_history(locked_session, completion_request.messages)
        turn = _start_turn(locked_session, completion_request, history_match)
    return turn, turn.first_event_seq - 1


async def stream_parts(turn: Turn, after_seq: int) -> AsyncGenerator[StreamPart | None]:
    """Yield the turn's answer in parts, from its events after `after_seq`; None is a heartbeat.

    Texts before and after calls of built-in tools are paragraphs of one answer. Raises the problem
    of a turn that fails.
    """
    if turn.status not in Turn.OPEN_STATUSES:
        text, reasoning, final_part = await run_in_thread(load_answer, turn)
        if reasoning:
            yield ReasoningDelta(reasoning)
        if text:
            yield TextDelta(text)
        yield final_part
        return
    has_text = False
    needs_gap = False
    message_ids: set[int] = set()
    async for event in event_log.follow_events(turn.session_id, after_seq):
        if event is None:
            yield None
        elif event.name == EventType.MESSAGE_CREATED and event.data["turn"] == str(turn.pk):
            message_ids.add(event.data["message"])
            needs_gap = has_text
        elif event.name == EventType.MESSAGE_DELTA and event.data["message"] in message_ids:
            yield TextDelta(("\n\n" if needs_gap else "") + event.data["text"])
            has_text = True
            needs_gap = False
        elif event.name == EventType.REASONING_DELTA and event.data["message"] in message_ids:
            yield ReasoningDelta(event.data["text"])
        elif event.name in PAUSE_EVENTS and event.data.get("turn") == str(turn.pk):
            _, _, final_part = await run_in_thread(_load_answer_by_id, turn.pk)
            yield final_part
            return
    raise OpenAIProblem(404, "session_deleted", "The session was deleted.")


def load_answer(turn: Turn) -> tuple[str, str, StreamEnd]:
    """Return text, reasoning and final part of a turn that has ended or waits.

    Raises the problem of a turn that failed.
    """
    if turn.status in (Turn.Status.FAILED, Turn.Status.INTERRUPTED):
        raise build_turn_problem(turn)
    rows = turn.messages.filter(branch=None).order_by("seq").values(*matching.MESSAGE_COLUMNS)
    answers = [
        message
        for message in matching.build_stored_messages(rows)
        if message.role == Message.Role.ASSISTANT
    ]
    is_waiting = turn.status == Turn.Status.WAITING
    if not answers or (answers[-1].calls and not is_waiting):
        return "", "", StreamEnd(reason="stop")
    answer = answers[-1]
    row = Message.objects.get(pk=answer.pk)
    usage = _build_usage(row)
    final_part = StreamEnd(
        reason=_get_end_reason(turn, answer, usage), tool_calls=answer.calls, usage=usage
    )
    return answer.content, row.reasoning, final_part


def build_context_headers(turn: Turn, token_count: int | None = None) -> dict[str, str]:
    """Return headers about the session's context: its tokens, and whether it is compacted.

    `token_count` is the provider's count; without it, the tokens are an estimate.
    """
    session = Session.objects.get(pk=turn.session_id)
    if token_count is None:
        token_count = get_compactor().estimate_tokens(session)
    has_notices = bool(Turn.objects.get(pk=turn.pk).notices)
    is_compacted = session.compact_boundary_seq is not None or has_notices
    return {
        "X-Context-Tokens": str(token_count),
        "X-Context-Compacted": "true" if is_compacted else "false",
    }


def _load_answer_by_id(turn_id: UUID) -> tuple[str, str, StreamEnd]:
    return load_answer(Turn.objects.select_related("session").get(pk=turn_id))


def _build_usage(message: Message) -> Usage | None:
    if message.token_count_input is None:
        return None
    return Usage(
        input=message.token_count_input,
        output=message.token_count_output or 0,
        cache_read=message.token_count_cache_read,
    )


def _get_end_reason(
    turn: Turn, answer: matching.StoredMessage, usage: Usage | None
) -> Literal["tool_calls", "length", "stop"]:
    if answer.calls:
        return "tool_calls"
    # The reason is not stored; an answer of `max_tokens` tokens was cut by that limit.
    max_tokens = turn.session.params.get("max_tokens")
    is_full = bool(usage and max_tokens and usage.output >= max_tokens)
    return "length" if is_full else "stop"


def _resume_turn(
    session: Session, completion_request: CompletionRequest
) -> tuple[Turn, int] | None:
    """Continue the turn that waits for these results, or return the one that they continued before.

    Returns None if there is no such turn.
    """
    history_match = matching.match_history(session, completion_request.messages)
    if any(message.role != "tool" for message in history_match.new_messages):
        return None
    results = get_trailing_results(completion_request.messages)
    _refuse_missing_results(session, results)
    _apply_request_settings(session, completion_request)
    client_results = [
        client_tools.ClientToolResult(tool_call_id=message.call_id, content=message.content)
        for message in results
    ]
    try:
        turn, after_seq = service.submit_tool_results(session, client_results)
    except service.NoWaitingTurn:
        return None
    is_usable = turn.status in (*Turn.OPEN_STATUSES, Turn.Status.COMPLETED)
    return (turn, after_seq) if is_usable else None


def _refuse_missing_results(session: Session, results: Sequence[ClientMessage]) -> None:
    """Raise the 400 problem if a call of the waiting turn has no result among these."""
    waiting_turn = session.turns.filter(status=Turn.Status.WAITING).first()
    if waiting_turn is None:
        return
    pending_ids = {call.id for call in client_tools.find_pending_calls(waiting_turn)}
    missing_ids = pending_ids - {message.call_id for message in results}
    if missing_ids:
        raise InvalidFieldError("messages", MISSING_RESULTS_DETAIL + ", ".join(sorted(missing_ids)))


def _start_turn(
    session: Session, completion_request: CompletionRequest, history_match: matching.HistoryMatch
) -> Turn:
    """Start the turn that answers. The caller has locked the session."""
    _apply_request_settings(session, completion_request)
    last_message = completion_request.messages[-1]
    if last_message.role == "assistant":
        raise InvalidFieldError(
            "messages", "The last message is from the assistant: there is nothing to answer."
        )
    tools = completion_request.tools
    repeated_pk = history_match.regenerate_pk
    if last_message.role == "user" and repeated_pk:
        return service.regenerate_answer(session.messages.get(pk=repeated_pk), tools=tools)
    if last_message.role == "user":
        _import_messages(session, history_match.new_messages[:-1])
        return service.start_turn(
            session,
            content=last_message.content,
            attachments=_store_images(session, last_message),
            tools=tools,
        )
    _import_messages(session, history_match.new_messages)
    if repeated_pk is None:
        result = session.messages.exclude_superseded().order_by("seq").last()
    else:
        result = session.messages.get(pk=repeated_pk)
    assert result
    return service.continue_from_tool_result(result, tools=tools)


def _apply_request_settings(session: Session, completion_request: CompletionRequest) -> None:
    """Store the request's model, parameters and system text in the session, if they are new."""
    settings: dict[str, Any] = {
        "model": completion_request.model,
        "params": completion_request.params,
    }
    if completion_request.system is not None:
        settings["system_prompt"] = completion_request.system
    changes = {name: value for name, value in settings.items() if getattr(session, name) != value}
    if changes:
        record_session_change(session.pk, changes)


def _import_messages(session: Session, messages: Sequence[ClientMessage]) -> None:
    """Store messages that the client has and the session has not."""
    if not messages:
        return
    records = [message.to_import_record() for message in messages]
    rows = importer.import_messages(session, records)
    for message, row in zip(messages, rows, strict=True):
        image_ids = _store_images(session, message)
        Attachment.objects.filter(pk__in=image_ids).update(message=row)
    session.refresh_from_db(fields=["last_seq"])


def _store_images(session: Session, message: ClientMessage) -> list[UUID]:
    if len(message.images) > intake.MAX_FILES:
        raise TooLargeProblem(f"A message has at most {intake.MAX_FILES} images.")
    attachment_ids = []
    for number, image in enumerate(message.images, start=1):
        try:
            attachment = intake.store_file(
                session, name=f"image-{number}", data=image.data, is_pending=False
            )
        except intake.FileRejected as error:
            raise InvalidFieldError("messages", str(error)) from None
        attachment_ids.append(attachment.pk)
    return attachment_ids
