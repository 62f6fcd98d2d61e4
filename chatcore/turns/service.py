"""Turns: begin one, answer anew, go on with a client's results, wait for the end, cancel. `answering.py` does the answering."""

import time
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any
from uuid import UUID

from django.db import close_old_connections, transaction
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.files import intake
from chatcore.models import Message, Session, Turn
from chatcore.turns import client_tools, lifecycle, versions
from chatcore.turns.generation import generate
from chatcore.turns.leases import LEASE, TurnRunning, locked, refuse_open_turn
from chatcore.turns.lifecycle import recover
from chatcore.turns.recorder import created, next_message
from chatcore.turns.runner import generator
from models_registry.models import AiModel

TITLE_CHARS = 60


class IdempotencyConflict(Exception):
    """The idempotency key was used with another payload."""


class NoModel(Exception):
    """The session has no language model that can be used."""


class NothingWaits(Exception):
    """No turn of the session waits for results."""


def start(
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
    recover(session.pk)  # before the session is locked: whoever writes for a turn locks that first
    with transaction.atomic():
        now = locked(session.pk)
        again = _turn_of_key(now, idempotency_key, payload_hash)
        if again:
            return again
        _refuse(now, now.model)
        offered = client_tools.check(now, tools)
        if replaces:
            offered = offered or _tools_of(replaces)
            versions.supersede(now, since=versions.current(now, replaces))
        turn = _new_turn(
            now, idempotency_key=idempotency_key, payload_hash=payload_hash, tools=offered
        )
        turn.question = next_message(
            now.pk, turn, role=Message.Role.USER, content=content, replaces=replaces
        )
        intake.bind(turn.question, attachments or (), before=replaces)
        if replaces and attachments is None:
            intake.carry_over(replaces, turn.question)
        touched: dict[str, Any] = {"updated_at": timezone.now()}
        if not now.title:
            touched["title"] = title_of(turn.question)
        Session.objects.filter(pk=now.pk).update(**touched)
        _begin(turn, ("message.created", created(turn.question)))
    return turn


def regenerate(
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
    recover(message.session_id)
    with transaction.atomic():
        now = locked(message.session_id)
        again = _turn_of_key(now, idempotency_key, payload_hash)
        if again:
            return again
        _refuse(now, model or now.model)
        asked = versions.current(now, message)
        question = versions.question_of(now, asked)
        replaced = (
            asked if asked.role == Message.Role.ASSISTANT else versions.answer_to(now, question)
        )
        versions.supersede(now, after=question)
        offered = _tools_of(question) if tools is None else client_tools.check(now, tools)
        turn = _new_turn(
            now,
            idempotency_key=idempotency_key,
            payload_hash=payload_hash,
            tools=offered,
            model=model,
        )
        turn.question, turn.replaces = question, replaced
        _begin(turn)
    return turn


def go_on(result: Message, *, tools: Sequence[Mapping[str, Any]] = ()) -> Turn:
    """Answer what was said up to a tool's result that no turn waits for, as in a history that was imported; what followed is superseded.

    Raises what `start` raises, and versions.NothingToAnswer.
    """
    recover(result.session_id)
    with transaction.atomic():
        now = locked(result.session_id)
        _refuse(now, now.model)
        last = versions.current(now, result)
        offered = client_tools.check(now, tools)
        versions.supersede(now, after=last)
        turn = _new_turn(now, tools=offered)
        turn.question = versions.question_of(now, last)
        _begin(turn)
    return turn


def submit_tool_results(
    session: Session, results: Sequence[client_tools.Result]
) -> tuple[Turn, int]:
    """Store results of calls that wait for the client; when all are in, the turn goes on. A result given twice is stored once.

    Returns the turn, and the `seq` of an event before all that follows. Raises NothingWaits, TurnRunning and
    client_tools.ResultRefused; then nothing is stored.
    """
    with transaction.atomic():
        turn = session.turns.select_for_update().filter(status=Turn.Status.WAITING).first()
        if turn is None:
            return _went_on_already(session, results)
        before = Session.objects.values_list("last_event_seq", flat=True).get(pk=session.pk)
        client_tools.take(turn, results)
        left = client_tools.pending(turn)
        if left:
            event_log.append(session.pk, client_tools.waiting(turn, left))
        else:
            turn.status, turn.lease_until = Turn.Status.RUNNING, timezone.now() + LEASE
            turn.save(update_fields=["status", "lease_until"])
            transaction.on_commit(lambda: generator.launch(turn.pk, generate))
    return turn, before


def wait(turn_id: UUID, timeout: float | None = None) -> Turn:
    """Block until the turn has ended or waits for its client, wherever it is generated, `timeout` seconds at most; the turn as it is."""
    deadline = None if timeout is None else time.monotonic() + timeout
    close_old_connections()  # an answer takes minutes, and whoever gives it needs a connection out of the same pool
    generator.wait(turn_id, timeout)
    while True:
        turn = Turn.objects.get(pk=turn_id)
        if turn.status != Turn.Status.RUNNING or (deadline and time.monotonic() >= deadline):
            return turn
        close_old_connections()
        time.sleep(0.1)


def cancel(session_id: UUID) -> bool:
    """Stop answering, or waiting; what was said is kept, as `interrupted`. False when nothing was being answered."""
    turn = Turn.objects.filter(session_id=session_id, status__in=Turn.OPEN).first()
    if turn is None:
        return False
    if Turn.objects.filter(pk=turn.pk, status=Turn.Status.RUNNING).update(cancel_requested=True):
        generator.cancel(turn.pk)
        return True
    return _cancel_waiting(turn.pk) or cancel(session_id)


def title_of(said: Message) -> str:
    """What a session is called after its first message: its first words, whole ones if they fit; without words, the names of its files."""
    flat = " ".join(
        (said.content.strip() or ", ".join(said.attachments.values_list("name", flat=True))).split()
    )
    return shorten(flat, TITLE_CHARS, placeholder="…").lstrip("…") or flat[:TITLE_CHARS]


def _cancel_waiting(turn_id: UUID) -> bool:
    """Calls without a result stay so; the model is told that they were interrupted."""
    with transaction.atomic():
        turn = (
            Turn.objects.select_for_update().filter(pk=turn_id, status=Turn.Status.WAITING).first()
        )
        if turn:
            lifecycle.end(turn, Turn.Status.CANCELLED)
        return turn is not None


def _turn_of_key(session: Session, key: str | None, payload_hash: str) -> Turn | None:
    turn = session.turns.filter(idempotency_key=key).first() if key else None
    if turn and turn.payload_hash != payload_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another payload.")
    if turn and turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk, repeated=True)
    return turn


def _refuse(session: Session, model: AiModel | None) -> None:
    refuse_open_turn(session)
    if model is None or not model.is_active or not model.provider.is_active:
        raise NoModel("The session has no usable language model.")


def _new_turn(session: Session, **fields: Any) -> Turn:
    return Turn.objects.create(session=session, lease_until=timezone.now() + LEASE, **fields)


def _begin(turn: Turn, *told: tuple[str, dict[str, Any]]) -> None:
    """Say that the turn begins, and answer it as soon as all of it is committed."""
    started = {"turn": str(turn.pk), "question": turn.question_id}
    turn.first_event_seq = event_log.append(
        turn.session_id, ("turn.started", started), *told
    ) - len(told)
    turn.save(update_fields=["first_event_seq", "question", "replaces"])
    transaction.on_commit(lambda: generator.launch(turn.pk, generate))


def _tools_of(message: Message) -> list[dict[str, Any]]:
    """The client's tools that were offered when this message was answered."""
    return message.turn.tools if message.turn else []


def _went_on_already(session: Session, results: Sequence[client_tools.Result]) -> tuple[Turn, int]:
    """The newest turn, when it is these very results with which it went on: their sender has missed the answer."""
    turn = session.turns.order_by("-started_at").first()
    if turn and turn.tools and results and client_tools.taken(turn, results):
        waited = (
            session.events.filter(name="turn.waiting", seq__gte=turn.first_event_seq)
            .order_by("-seq")
            .first()
        )
        return turn, waited.seq if waited else turn.first_event_seq - 1
    if turn and turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk)
    raise NothingWaits("No turn waits for results of tools.")
