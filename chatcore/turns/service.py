"""Turns: begin one, answer anew, go on with a client's results, wait for the end, cancel. `answering.py` does the answering."""

import time
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any
from uuid import UUID

from django.db import close_old_connections, transaction
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent, TurnStartedPayload
from chatcore.files import intake
from chatcore.models import Message, Session, Turn
from chatcore.turns import client_tools, lifecycle, versions
from chatcore.turns.generation import generate_answer
from chatcore.turns.leases import LEASE, TurnRunning, refuse_open_turn
from chatcore.turns.lifecycle import recover_dead_turns
from chatcore.turns.recorder import append_message, build_created_payload
from chatcore.turns.runner import turn_runner
from models_registry.models import AiModel

TITLE_CHARS = 60
POLL_SECONDS = 0.1  # how often a turn of another process is looked at


class IdempotencyConflict(Exception):
    """The idempotency key was used with another payload."""


class NoModel(Exception):
    """The session has no language model that can be used."""


class NoWaitingTurn(Exception):
    """No turn of the session waits for results."""


def start_turn(
    session: Session,
    *,
    content: str,
    attachments: Sequence[UUID] | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    replaces: Message | None = None,
    idempotency_key: str | None = None,
    payload_hash: str = "",
) -> Turn:
    """Commit the user's message and start answering it, detached from the caller.

    `attachments` were uploaded to the session before. `tools` are offered beside the built-in ones and run by the client. With
    `replaces`, it is another version of that user's message, which is superseded with all that followed; its files come along, or those
    of them that `attachments` names. The same idempotency key gives the turn it gave before. Raises TurnRunning, IdempotencyConflict,
    NoModel, versions.Superseded, client_tools.ToolsRefused, files.Unavailable; then nothing is stored.
    """
    recover_dead_turns(
        session.pk
    )  # before the session is locked: whoever writes for a turn locks that first
    with transaction.atomic():
        locked_session = Session.objects.lock(session.pk)
        repeated_turn = _find_repeated_turn(locked_session, idempotency_key, payload_hash)
        if repeated_turn:
            return repeated_turn
        _require_answerable(locked_session, locked_session.model)
        tool_definitions = client_tools.validate_tools(locked_session, tools)
        if replaces:
            tool_definitions = tool_definitions or _get_client_tools(replaces)
            versions.supersede_messages(
                locked_session, from_message=versions.get_current_message(locked_session, replaces)
            )
        turn = _create_turn(
            locked_session,
            idempotency_key=idempotency_key,
            payload_hash=payload_hash,
            tools=tool_definitions,
        )
        turn.question = append_message(
            locked_session.pk, turn, role=Message.Role.USER, content=content, replaces=replaces
        )
        intake.bind_files(turn.question, attachments or (), previous_version=replaces)
        if replaces and attachments is None:
            intake.copy_files(replaces, turn.question)
        session_fields: dict[str, Any] = {"updated_at": timezone.now()}
        if not locked_session.title:
            session_fields["title"] = build_title(turn.question)
        Session.objects.filter(pk=locked_session.pk).update(**session_fields)
        _begin_turn(turn, (EventType.MESSAGE_CREATED, build_created_payload(turn.question)))
    return turn


def regenerate_answer(
    message: Message,
    *,
    model: AiModel | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    idempotency_key: str | None = None,
    payload_hash: str = "",
) -> Turn:
    """Answer the same user's message anew: of an answer, another version; of a user's message, the answer to it.

    What followed the user's message is superseded. `model` is for this turn only; tools of the client's are offered again, or those given.
    Raises what `start` raises, and versions.NothingToAnswer.
    """
    recover_dead_turns(message.session_id)
    with transaction.atomic():
        session = Session.objects.lock(message.session_id)
        repeated_turn = _find_repeated_turn(session, idempotency_key, payload_hash)
        if repeated_turn:
            return repeated_turn
        _require_answerable(session, model or session.model)
        current_message = versions.get_current_message(session, message)
        question = versions.find_question(session, current_message)
        old_answer = (
            current_message
            if current_message.role == Message.Role.ASSISTANT
            else versions.find_answer(session, question)
        )
        versions.supersede_messages(session, after_message=question)
        tool_definitions = (
            _get_client_tools(question)
            if tools is None
            else client_tools.validate_tools(session, tools)
        )
        turn = _create_turn(
            session,
            idempotency_key=idempotency_key,
            payload_hash=payload_hash,
            tools=tool_definitions,
            model=model,
        )
        turn.question, turn.replaces = question, old_answer
        _begin_turn(turn)
    return turn


def continue_from_tool_result(result: Message, *, tools: Sequence[Mapping[str, Any]] = ()) -> Turn:
    """Answer what was said up to a tool's result that no turn waits for, as in a history that was imported; what followed is superseded.

    Raises what `start` raises, and versions.NothingToAnswer.
    """
    recover_dead_turns(result.session_id)
    with transaction.atomic():
        session = Session.objects.lock(result.session_id)
        _require_answerable(session, session.model)
        last_message = versions.get_current_message(session, result)
        tool_definitions = client_tools.validate_tools(session, tools)
        versions.supersede_messages(session, after_message=last_message)
        turn = _create_turn(session, tools=tool_definitions)
        turn.question = versions.find_question(session, last_message)
        _begin_turn(turn)
    return turn


def submit_tool_results(
    session: Session, results: Sequence[client_tools.ClientToolResult]
) -> tuple[Turn, int]:
    """Store results of calls that wait for the client; when all are in, the turn goes on. A result given twice is stored once.

    Returns the turn, and the `seq` of an event before all that follows. Raises NothingWaits, TurnRunning and
    client_tools.ResultRefused; then nothing is stored.
    """
    with transaction.atomic():
        turn = session.turns.select_for_update().filter(status=Turn.Status.WAITING).first()
        if turn is None:
            return _find_resumed_turn(session, results)
        last_event_seq = Session.objects.values_list("last_event_seq", flat=True).get(pk=session.pk)
        client_tools.accept_results(turn, results)
        pending_calls = client_tools.find_pending_calls(turn)
        if pending_calls:
            event_log.append_events(
                session.pk, client_tools.build_waiting_event(turn, pending_calls)
            )
        else:
            turn.status, turn.lease_until = Turn.Status.RUNNING, timezone.now() + LEASE
            turn.save(update_fields=["status", "lease_until"])
            transaction.on_commit(lambda: turn_runner.launch(turn.pk, generate_answer))
    return turn, last_event_seq


def wait_for_turn(turn_id: UUID, timeout: float | None = None) -> Turn:
    """Block until the turn has ended or waits for its client, whichever process runs it.

    Raises TimeoutError after `timeout` seconds.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    # An answer takes minutes. Whoever generates it needs a connection from the same pool, so this
    # thread gives its own back while it waits.
    close_old_connections()
    turn_runner.wait(turn_id, timeout)
    while True:
        turn = Turn.objects.get(pk=turn_id)
        if turn.status != Turn.Status.RUNNING:
            return turn
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError(f"Turn {turn_id} is still running after {timeout} seconds.")
        close_old_connections()
        time.sleep(POLL_SECONDS)


def cancel_turn(session_id: UUID) -> bool:
    """Stop answering, or waiting; what was said is kept, as `interrupted`. False when nothing was being answered."""
    turn = Turn.objects.filter(session_id=session_id, status__in=Turn.OPEN_STATUSES).first()
    if turn is None:
        return False
    if Turn.objects.filter(pk=turn.pk, status=Turn.Status.RUNNING).update(cancel_requested=True):
        turn_runner.cancel(turn.pk)
        return True
    return _cancel_waiting_turn(turn.pk) or cancel_turn(session_id)


def build_title(message: Message) -> str:
    """What a session is called after its first message: its first words, whole ones if they fit; without words, the names of its files."""
    text = " ".join(
        (
            message.content.strip() or ", ".join(message.attachments.values_list("name", flat=True))
        ).split()
    )
    return shorten(text, TITLE_CHARS, placeholder="…").lstrip("…") or text[:TITLE_CHARS]


def _cancel_waiting_turn(turn_id: UUID) -> bool:
    """Calls without a result stay so; the model is told that they were interrupted."""
    with transaction.atomic():
        turn = (
            Turn.objects.select_for_update().filter(pk=turn_id, status=Turn.Status.WAITING).first()
        )
        if turn:
            lifecycle.end_turn(turn, Turn.Status.CANCELLED)
        return turn is not None


def _find_repeated_turn(session: Session, key: str | None, payload_hash: str) -> Turn | None:
    turn = session.turns.filter(idempotency_key=key).first() if key else None
    if turn and turn.payload_hash != payload_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another payload.")
    if turn and turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk, is_repeat=True)
    return turn


def _require_answerable(session: Session, model: AiModel | None) -> None:
    refuse_open_turn(session)
    if model is None or not model.is_active or not model.provider.is_active:
        raise NoModel("The session has no usable language model.")


def _create_turn(session: Session, **fields: Any) -> Turn:
    return Turn.objects.create(session=session, lease_until=timezone.now() + LEASE, **fields)


def _begin_turn(turn: Turn, *more_events: NewEvent) -> None:
    """Say that the turn begins, and answer it as soon as all of it is committed."""
    payload = TurnStartedPayload(turn=str(turn.pk), question=turn.question_id)
    turn.first_event_seq = event_log.append_events(
        turn.session_id, (EventType.TURN_STARTED, payload), *more_events
    ) - len(more_events)
    turn.save(update_fields=["first_event_seq", "question", "replaces"])
    transaction.on_commit(lambda: turn_runner.launch(turn.pk, generate_answer))


def _get_client_tools(message: Message) -> list[dict[str, Any]]:
    """The client's tools that were offered when this message was answered."""
    return message.turn.tools if message.turn else []


def _find_resumed_turn(
    session: Session, results: Sequence[client_tools.ClientToolResult]
) -> tuple[Turn, int]:
    """The newest turn, when it is these very results with which it went on: their sender has missed the answer."""
    turn = session.turns.order_by("-started_at").first()
    if turn and turn.tools and results and client_tools.has_results(turn, results):
        waiting_event = (
            session.events.filter(name=EventType.TURN_WAITING, seq__gte=turn.first_event_seq)
            .order_by("-seq")
            .first()
        )
        return turn, waiting_event.seq if waiting_event else turn.first_event_seq - 1
    if turn and turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk)
    raise NoWaitingTurn("No turn waits for results of tools.")
