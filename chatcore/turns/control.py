"""Begin turns, continue them with results of client tools, wait for their end, cancel them.

The answers themselves are generated in generation.py.
"""

import contextlib
import copy
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from textwrap import shorten
from typing import ParamSpec
from uuid import UUID

from django.db import close_old_connections, transaction
from django.utils import timezone

from chatcore.accounts.rights import (
    EVERYTHING,
    Kind,
    find_default_model,
    list_allowed,
    require_model,
)
from chatcore.base.runner import turn_runner
from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent, TurnStartedPayload
from chatcore.files import intake
from chatcore.models import Exchange, Message, Session, Turn
from chatcore.sessions.changes import record_session_change
from chatcore.sessions.wrapping import find_words
from chatcore.tools.mcp import catalog
from chatcore.turns import capacity, client_tools, lifecycle, versions, waiting
from chatcore.turns.announcements import announce_halt
from chatcore.turns.generation import generate_answer, resume_answer
from chatcore.turns.leases import (
    TurnRunning,
    compute_lease_end,
    find_open_turn,
    find_own_process,
    refuse_open_turn,
)
from chatcore.turns.lifecycle import close_dead_turn, recover_dead_turns
from chatcore.turns.messages import build_created_event, store_message
from chatcore.turns.waiting import Approval
from models_registry.models import AiModel

P = ParamSpec("P")

TITLE_CHARS = 60  # the length of a title that is made from a message
POLL_SECONDS = 0.1  # how often a turn of another process is looked at

MISSING_MODEL = (
    "The session has no usable language model. Choose one that GET /api/v1/models lists. Where it"
    " lists none, staff connect a provider in the settings, or the operator does so by `chatcore"
    " add_provider` and `chatcore add_model`, or by the file of CHATCORE_SETUP_FILE."
)


class IdempotencyConflict(Exception):
    """The idempotency key was used with another payload."""


class NoModel(Exception):
    """The session has no language model that can be used."""


class NoWaitingTurn(Exception):
    """No turn of the session waits for results."""


def _after_dead_turn(begin: Callable[P, Turn]) -> Callable[P, Turn]:
    """Let a turn begin after the session's open one, if the process of that has died.

    The dead turn is closed before the session is locked, because this locks turns
    (SessionQuerySet.lock). It is rare, so nobody looks for it before a turn is refused.
    """

    @functools.wraps(begin)
    def begin_again(*args: P.args, **kwargs: P.kwargs) -> Turn:
        try:
            return begin(*args, **kwargs)
        except TurnRunning as refusal:
            if not recover_dead_turns(refusal.session_id):
                raise
        return begin(*args, **kwargs)

    return begin_again


@_after_dead_turn
def start_turn(
    session: Session,
    *,
    content: str,
    attachments: Sequence[UUID] | None = None,
    tools: Sequence[Mapping[str, object]] = (),
    replaces: Message | None = None,
    idempotency_key: str | None = None,
    payload_hash: str = "",
) -> Turn:
    """Store the user's message and start to answer it, independently of the caller.

    `attachments` were uploaded to the session before. `tools` are offered besides the built-in
    tools, and the client runs them. With `replaces`, the message is another version of that user
    message, which is superseded with everything after it; its files are copied, or those of them
    that `attachments` names. A repeated idempotency key returns the turn that it began. Raises
    TurnRunning, IdempotencyConflict, NoModel, ModelNotAllowed, versions.MessageSuperseded,
    client_tools.InvalidClientTools and the errors of files.intake; then nothing is stored.
    """
    with transaction.atomic():
        locked_session = Session.objects.lock(session.pk)
        repeated_turn = _find_repeated_turn(locked_session, idempotency_key, payload_hash)
        if repeated_turn:
            return repeated_turn
        _require_answerable(locked_session, ensure_model(locked_session))
        tool_definitions = client_tools.validate_tools(locked_session, tools)
        if replaces:
            tool_definitions = tool_definitions or _get_client_tools(replaces)
            versions.supersede_messages(
                locked_session, from_message=versions.get_current_message(locked_session, replaces)
            )
        turn = _build_turn(
            locked_session,
            idempotency_key=idempotency_key,
            payload_hash=payload_hash,
            tools=tool_definitions,
        )
        question, last_event_seq = store_message(
            locked_session.pk,
            turn,
            _build_started_event,
            build_created_event,
            used_at=timezone.now(),
            role=Message.Role.USER,
            content=content,
            replaces=replaces,
        )
        intake.bind_files(question, attachments or (), previous_version=replaces)
        if replaces and attachments is None:
            intake.copy_files(replaces, question)
        _ensure_title(locked_session, question)
        turn.question = question
        is_plain = not attachments and replaces is None
        _begin_turn(
            turn, first_event_seq=last_event_seq - 1, question=question if is_plain else None
        )
    return turn


@_after_dead_turn
def regenerate_answer(
    message: Message,
    *,
    model: AiModel | None = None,
    tools: Sequence[Mapping[str, object]] | None = None,
    idempotency_key: str | None = None,
    payload_hash: str = "",
) -> Turn:
    """Answer the same user message again. `message` is that message or an answer to it.

    Everything after the user message is superseded. `model` is for this turn only. The client's
    tools of the earlier turn are offered again, unless `tools` names others. Raises what
    `start_turn` raises, and versions.NoQuestionToAnswer.
    """
    with transaction.atomic():
        session = Session.objects.lock(message.session_id)
        repeated_turn = _find_repeated_turn(session, idempotency_key, payload_hash)
        if repeated_turn:
            return repeated_turn
        _require_answerable(session, model or ensure_model(session))
        current_message = versions.get_current_message(session, message)
        question = versions.find_question(session, current_message)
        if current_message.role == Message.Role.ASSISTANT:
            old_answer: Message | None = current_message
        else:
            old_answer = versions.find_answer(session, question)
        versions.supersede_messages(session, after_message=question)
        if tools is None:
            tool_definitions = _get_client_tools(question)
        else:
            tool_definitions = client_tools.validate_tools(session, tools)
        turn = _build_turn(
            session,
            idempotency_key=idempotency_key,
            payload_hash=payload_hash,
            tools=tool_definitions,
            model=model,
            question=question,
            replaces=old_answer,
        )
        _announce_and_begin_turn(turn)
    return turn


@_after_dead_turn
def continue_from_tool_result(
    result: Message, *, tools: Sequence[Mapping[str, object]] = ()
) -> Turn:
    """Continue a conversation behind a tool result that no turn waits for, as after an import.

    Everything after the result is superseded. Raises what `start_turn` raises, and
    versions.NoQuestionToAnswer.
    """
    with transaction.atomic():
        session = Session.objects.lock(result.session_id)
        _require_answerable(session, ensure_model(session))
        last_message = versions.get_current_message(session, result)
        tool_definitions = client_tools.validate_tools(session, tools)
        versions.supersede_messages(session, after_message=last_message)
        question = versions.find_question(session, last_message)
        _ensure_title(session, question)
        turn = _build_turn(session, tools=tool_definitions, question=question)
        _announce_and_begin_turn(turn)
    return turn


def submit_tool_results(
    session: Session, results: Sequence[client_tools.ClientToolResult]
) -> tuple[Turn, int]:
    """Store results of calls that wait for the client; with the last one, the turn continues.

    A result that is sent twice is stored once. Returns the turn, and the number of an event before
    everything that follows. Raises NoWaitingTurn, TurnRunning, client_tools.InvalidToolResult and
    capacity.OverCapacity; then nothing is stored.
    """
    with client_tools.put_outputs_away(session, results) as outputs:
        return _submit(
            session,
            lambda turn: client_tools.accept_results(turn, results, outputs),
            is_repeat=lambda turn: (
                bool(turn.tools and results) and client_tools.has_results(turn, results)
            ),
            awaited="results of tools",
        )


def submit_approvals(session: Session, decisions: Sequence[Approval]) -> tuple[Turn, int]:
    """Store what a person decided about calls that wait; with the last one, the turn continues.

    A decision that is sent twice is stored once. Returns the turn, and the number of an event
    before everything that follows. Raises NoWaitingTurn, TurnRunning, approvals.InvalidApproval and
    capacity.OverCapacity; then nothing is stored.
    """
    return _submit(
        session,
        lambda turn: waiting.record_decisions(turn, decisions),
        is_repeat=lambda turn: bool(decisions) and waiting.has_decisions(turn, decisions),
        awaited="an approval",
    )


def _submit(
    session: Session,
    store: Callable[[Turn], object],
    *,
    is_repeat: Callable[[Turn], bool],
    awaited: str,
) -> tuple[Turn, int]:
    """Store what the session's turn waits for, and continue the turn with the last of it.

    Where no turn waits, the newest one is returned if it continued with the same: then the sender
    has missed the response and sends it again.
    """
    with contextlib.ExitStack() as reservation, transaction.atomic():
        turn = session.turns.select_for_update().filter(status=Turn.Status.WAITING).first()
        if turn is not None:
            sessions = Session.objects.values_list("last_event_seq", flat=True)
            last_event_seq = sessions.get(pk=session.pk)
            store(turn)
            _continue_turn(turn, reservation)
            return turn, last_event_seq
    turn = session.turns.order_by("-started_at").first()
    if turn and is_repeat(turn):
        return turn, _find_last_wait(session, turn)
    if turn and turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk, session.pk)
    raise NoWaitingTurn(f"No turn waits for {awaited}.")


def wait_for_turn(turn_id: UUID, timeout: float | None = None) -> Turn:
    """Block until the turn has ended or waits for its client, whichever process runs it.

    Raises TimeoutError after `timeout` seconds, and Turn.DoesNotExist if the session was deleted.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    # An answer takes minutes. Whoever generates it needs a connection from the same pool, so this
    # thread gives its own back while it waits.
    close_old_connections()
    turn_runner.wait(turn_id, timeout)
    while True:
        turn = Turn.objects.get(pk=turn_id, session__discard_at=None)
        if turn.status != Turn.Status.RUNNING:
            return turn
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError(f"Turn {turn_id} is still running after {timeout} seconds.")
        close_old_connections()
        time.sleep(POLL_SECONDS)


def wait_for_reply(turn: Turn) -> Turn:
    """Block until the turn that was just begun has ended or waits for its client.

    Where this process has stored its only answer, nothing is read. Raises as `wait_for_turn` does.
    """
    close_old_connections()  # as in `wait_for_turn`
    turn_runner.wait(turn.pk)
    if turn.exchange and turn.exchange.answer:
        return turn.exchange.turn
    return wait_for_turn(turn.pk)


def cancel_turn(session_id: UUID) -> bool:
    """Cancel the session's open turn; return False if there is none.

    The text that has arrived is stored as interrupted. A turn whose process has died is closed at
    once, or when its lease ends; one that is about to end well ends as cancelled.
    """
    while turn := find_open_turn(session_id):
        if stop_answer(turn.id) or _cancel_waiting_turn(turn.id):
            return True
        # It has ended, or its client has resumed it in this moment: look again.
    return False


def cancel_waiting_turn(session: Session) -> None:
    """Cancel the session's turn if it waits: its client has sent something else."""
    if session.turns.filter(status=Turn.Status.WAITING).exists():
        cancel_turn(session.pk)


def stop_answer(turn_id: UUID) -> bool:
    """Cancel a turn while its answer is written; return False if it is not."""
    running_turn = Turn.objects.filter(pk=turn_id, status=Turn.Status.RUNNING)
    if not running_turn.update(cancel_requested=True):
        return False
    if not turn_runner.cancel(turn_id):
        close_dead_turn(turn_id)
    return True


def build_title(message: Message) -> str:
    """Return a title for a session: the first words of the message, or the names of its files.

    What a program put around the words does not count. The title ends between two words, unless the
    first word alone is too long.
    """
    text = " ".join((find_words(message.content) or message.content).split())
    if not text:
        text = " ".join(", ".join(message.attachments.values_list("name", flat=True)).split())
    return shorten(text, TITLE_CHARS, placeholder="…").lstrip("…") or text[:TITLE_CHARS]


def _ensure_title(session: Session, question: Message) -> None:
    if not session.title:
        Session.objects.filter(pk=session.pk).update(title=build_title(question))


def _cancel_waiting_turn(turn_id: UUID) -> bool:
    """Close the turn if it still waits. Its calls without results count as interrupted."""
    with transaction.atomic():
        turn = (
            Turn.objects.select_for_update().filter(pk=turn_id, status=Turn.Status.WAITING).first()
        )
        if turn:
            lifecycle.end_turn(turn, Turn.Status.CANCELLED)
            announcement = functools.partial(
                announce_halt, turn_id, session_id=turn.session_id, status=Turn.Status.CANCELLED
            )
            transaction.on_commit(announcement)
        return turn is not None


def _find_repeated_turn(session: Session, key: str | None, payload_hash: str) -> Turn | None:
    if not key:
        return None
    turn = Turn.objects.filter(session=session, idempotency_key=key).first()
    if turn is None:
        return None
    if turn.payload_hash != payload_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another payload.")
    if turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk, session.pk, is_repeat=True)
    turn.is_repeat = True
    return turn


def _require_answerable(session: Session, model: AiModel | None) -> None:
    refuse_open_turn(session)
    if model is None or not model.is_active or not model.provider.is_active:
        raise NoModel(MISSING_MODEL)
    require_model(session.owner_id, model)


def _build_turn(session: Session, **fields: object) -> Turn:
    notices = apply_losses(session)
    lease = {"lease_until": compute_lease_end(), "process": find_own_process()}
    return Turn(session=session, notices=notices, **lease, **fields)


def _build_started_event(question: Message) -> NewEvent:
    return _describe_start(str(question.turn_id), question.pk)


def _describe_start(turn_id: str, question_id: int | None) -> NewEvent:
    return EventType.TURN_STARTED, TurnStartedPayload(turn=turn_id, question=question_id)


def _announce_and_begin_turn(turn: Turn) -> None:
    """Append the first event of a turn that answers a stored message, and begin the turn."""
    started_event = _describe_start(str(turn.pk), turn.question_id)
    _begin_turn(turn, first_event_seq=event_log.append_events(turn.session_id, started_event))


def _begin_turn(turn: Turn, *, first_event_seq: int, question: Message | None = None) -> None:
    """Store a turn, and launch it after the commit.

    `question` is its message if that has neither files nor other versions.
    """
    turn.first_event_seq = first_event_seq
    turn.save(force_insert=True)
    transaction.on_commit(lambda: _launch(turn, question))


def _launch(turn: Turn, question: Message | None) -> None:
    """Have a turn answered as it was committed. The caller keeps objects of its own."""
    own_turn = copy.copy(turn)
    own_turn.session = copy.copy(turn.session)
    if question is not None:
        turn.exchange = own_turn.exchange = Exchange(own_turn, question)
    turn_runner.launch(turn.pk, functools.partial(generate_answer, turn=own_turn))


def _get_client_tools(message: Message) -> list[dict[str, object]]:
    """Return the client's tools that were offered in the turn of this message."""
    return message.turn.tools if message.turn else []


def _continue_turn(turn: Turn, reservation: contextlib.ExitStack) -> None:
    """Continue a turn whose row is locked, or announce what it still waits for."""
    open_calls = waiting.find_open_calls(turn)
    if open_calls:
        event_log.append_events(turn.session_id, waiting.build_waiting_event(turn, open_calls))
        return
    reservation.enter_context(capacity.reserve_turn(turn.session.owner_id))
    turn.status = Turn.Status.RUNNING
    turn.lease_until = compute_lease_end()
    turn.process = find_own_process()
    turn.save(update_fields=["status", "lease_until", "process"])
    transaction.on_commit(lambda: turn_runner.launch(turn.pk, resume_answer))


def _find_last_wait(session: Session, turn: Turn) -> int:
    """Return the number of the event at which the turn waited last."""
    waits = session.events.filter(name=EventType.TURN_WAITING, seq__gte=turn.first_event_seq)
    event = waits.order_by("-seq").first()
    return event.seq if event else turn.first_event_seq - 1


def ensure_model(session: Session) -> AiModel | None:
    """Return the locked session's model. One without a model gets the default one for good."""
    if session.model is None:
        session.model = find_default_model(session.owner_id)
        if session.model:
            record_session_change(session.pk, {"model": session.model}, is_user_act=False)
    return session.model


def apply_losses(session: Session) -> list[str]:
    """Take a policy that the owner may not use any more from a session, whose row is locked.

    Returns sentences for the owner, also about chosen tools; those are left out of each request. A
    session that chose no policy and no tools takes no query.
    """
    sentences = []
    if session.tools:
        sentences += _describe_lost_tools(session, session.tools)
    if session.policy and session.policy not in list_allowed(session.owner_id, Kind.POLICY):
        sentences.append(
            f"You may not use the compaction policy {session.policy} any more. The default one is"
            " used."
        )
        session.policy = ""
        session.save(update_fields=["policy"])
    return sentences


def _describe_lost_tools(session: Session, names: list[str]) -> list[str]:
    allowed_names = list_allowed(session.owner_id, Kind.TOOL)
    if allowed_names == EVERYTHING:
        return []
    built_in_names = [name for name in names if not catalog.is_tool_name(name)]
    lost_names = [name for name in built_in_names if name not in allowed_names]
    lost_names += [
        tool.definition.name
        for tool in catalog.list_chosen_tools(names, session.pk, EVERYTHING)
        if tool.name_in_rights not in allowed_names
    ]
    if not lost_names:
        return []
    return [f"You may not use these tools any more: {', '.join(sorted(lost_names))}."]
