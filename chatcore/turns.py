"""One turn: store what the user said, ask the guard, stream, run tools, store the answer, announce it."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from textwrap import shorten
from typing import Any
from uuid import UUID

from django.db import DatabaseError, close_old_connections, transaction
from django.utils import timezone

from chatcore import context, events, providers, tools
from chatcore.connections import connection_to
from chatcore.generator import generator
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import Connection, Finished, Request, Tool, ToolCall
from chatcore.providers.errors import ContextOverflow, ProviderError, ProviderUnavailable
from chatcore.recorder import LEASE, Recorder, TurnLost, completed, hold, next_message
from chatcore.signals import response_completed
from chatcore.threads import in_thread

logger = logging.getLogger(__name__)

MAX_TOOL_ROUNDS = 10
WATCH_SECONDS = 1.0  # how soon a cancel in another process is seen
RECOVER_SECONDS = 10.0  # with the lease: a dead process's turn is closed within 45 seconds
TITLE_CHARS = 60


class TurnRunning(Exception):
    """The session is still answering."""

    def __init__(self, turn_id: UUID) -> None:
        super().__init__(f"Turn {turn_id} is still running.")
        self.turn_id = turn_id


class IdempotencyConflict(Exception):
    """The idempotency key was used with another payload."""


class NoModel(Exception):
    """The session has no language model that can be used."""


class TooManyToolRounds(ProviderError):
    """The model went on calling tools instead of answering."""

    type = "tool_rounds_exceeded"


def start(session: Session, *, content: str, idempotency_key: str | None = None, payload_hash: str = "") -> Turn:
    """Commit the user's message and start answering it, detached from the caller.

    The same idempotency key gives the turn it gave before. Raises TurnRunning, IdempotencyConflict, NoModel; then nothing is stored.
    """
    recover(session.pk)  # before the session is locked: whoever writes for a turn locks that first
    with transaction.atomic():
        locked = Session.objects.select_for_update(of=("self",)).select_related("model__provider").get(pk=session.pk)
        again = _turn_of_key(locked, idempotency_key, payload_hash)
        if again:
            return again
        _refuse_second_turn(locked)
        if locked.model is None or not locked.model.is_active or not locked.model.provider.is_active:
            raise NoModel("The session has no usable language model.")
        turn = _opened_turn(locked, content, idempotency_key, payload_hash)
        transaction.on_commit(lambda: generator.launch(turn.pk, generate))
    return turn


def wait(turn_id: UUID, timeout: float | None = None) -> Turn:
    """Block until the turn has ended, wherever it is generated, `timeout` seconds at most; the turn as it then is."""
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
    """Stop answering; what was said is kept as `interrupted`. False when nothing was being answered."""
    turn = Turn.objects.filter(session_id=session_id, status=Turn.Status.RUNNING).first()
    if turn is None:
        return False
    Turn.objects.filter(pk=turn.pk).update(cancel_requested=True)
    generator.cancel(turn.pk)
    return True


def recover(session_id: UUID | None = None) -> int:
    """Close the turns whose process died, all or a session's: what they had said is kept as `interrupted`. Returns how many."""
    dead = Turn.objects.filter(status=Turn.Status.RUNNING, lease_until__lt=timezone.now())
    return sum(_close_dead(turn) for turn in (dead.filter(session_id=session_id) if session_id else dead))


def _close_dead(turn: Turn) -> bool:
    with transaction.atomic():
        mine = Turn.objects.filter(pk=turn.pk, status=Turn.Status.RUNNING, lease_until__lt=timezone.now())
        if not mine.update(status=Turn.Status.INTERRUPTED, finished_at=timezone.now()):
            return False
        for message in turn.messages.filter(status=Message.Status.STREAMING):
            message.content, message.reasoning = events.spoken_so_far(message.pk)
            message.status = Message.Status.INTERRUPTED
            message.save()
            events.append(turn.session_id, ("message.completed", completed(message)))
        _end(turn, Turn.Status.INTERRUPTED, _problem("interrupted", "The server stopped while answering; what was said is kept."))
    logger.warning("recovered turn %s of session %s", turn.pk, turn.session_id)
    return True


def start_recovering() -> None:
    """Look for dead turns for as long as this process lives."""
    generator.every(RECOVER_SECONDS, lambda: in_thread(recover))


def _turn_of_key(session: Session, key: str | None, payload_hash: str) -> Turn | None:
    turn = session.turns.filter(idempotency_key=key).first() if key else None
    if turn and turn.payload_hash != payload_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another payload.")
    if turn and turn.status == Turn.Status.RUNNING:
        raise TurnRunning(turn.pk)
    return turn


def _refuse_second_turn(session: Session) -> None:
    running = session.turns.filter(status=Turn.Status.RUNNING).first()
    if running:
        raise TurnRunning(running.pk)


def _opened_turn(session: Session, content: str, idempotency_key: str | None, payload_hash: str) -> Turn:
    turn = Turn.objects.create(
        session=session, lease_until=timezone.now() + LEASE, idempotency_key=idempotency_key, payload_hash=payload_hash
    )
    message = next_message(session.pk, turn, role=Message.Role.USER, content=content)
    touched: dict[str, Any] = {"updated_at": timezone.now()}
    if not session.title:
        touched["title"] = _title(message.content)
    Session.objects.filter(pk=session.pk).update(**touched)
    created = {"message": message.pk, "role": "user", "message_seq": message.seq, "turn": str(turn.pk)}
    turn.first_event_seq = events.append(session.pk, ("turn.started", {"turn": str(turn.pk)}), ("message.created", created)) - 1
    turn.save(update_fields=["first_event_seq"])
    return turn


def _title(words: str) -> str:
    """The first words, whole ones if they fit."""
    flat = " ".join(words.split())
    return shorten(flat, TITLE_CHARS, placeholder="…").lstrip("…") or flat[:TITLE_CHARS]


async def generate(turn_id: UUID) -> None:
    """Answer a turn that `start` committed. The edge: whatever happens, the turn ends and says how."""
    watch = asyncio.create_task(_keep_lease(turn_id, asyncio.current_task()))
    try:
        await _converse(await in_thread(Turn.objects.select_related("session__model__provider").get, pk=turn_id))
    except asyncio.CancelledError:
        await _settle(in_thread(_cancelled, turn_id))
    except (TurnLost, Turn.DoesNotExist):
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)
    except ProviderError as error:
        problem = _problem(error.type, error.detail, status=error.status, retry_after=error.retry_after)
        await _settle(in_thread(_failed, turn_id, problem))
    except Exception:
        logger.exception("turn %s failed", turn_id)
        problem = _problem("internal_error", "Something went wrong on our side; your message is kept.", status=500)
        await _settle(in_thread(_failed, turn_id, problem))
    finally:
        watch.cancel()


async def _settle(last_words: Coroutine[Any, Any, None]) -> None:
    """Wait until the end of a turn is written, however often it is cancelled meanwhile."""
    writing = asyncio.ensure_future(last_words)
    while not writing.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(writing)
    writing.result()


async def _keep_lease(turn_id: UUID, task: asyncio.Task[Any] | None) -> None:
    """Renew the lease and look for a cancel, until the turn is another's; a database that is away is asked again."""
    renewed = time.monotonic()
    while task:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            if await in_thread(Turn.objects.filter(pk=turn_id, cancel_requested=True).exists):
                break
            if time.monotonic() - renewed > LEASE.total_seconds() / 4:
                await in_thread(hold, turn_id)
                renewed = time.monotonic()
        except TurnLost:
            break
        except DatabaseError:
            logger.warning("the lease of turn %s was not renewed", turn_id, exc_info=True)
    if task:
        task.cancel()


async def _converse(turn: Turn) -> None:
    session = turn.session
    offered = tools.definitions(session.tools) if session.model and session.model.supports_tools else []
    for _ in range(MAX_TOOL_ROUNDS):
        answer = await _answer(turn, offered)
        if not answer.tool_calls:
            return
        await _run_tools(turn, answer)
    raise TooManyToolRounds(f"The model called tools {MAX_TOOL_ROUNDS} times in a row without answering.")


async def _answer(turn: Turn, offered: Sequence[Tool]) -> Message:
    """One call of the model, sent once more if the provider found it too long and the guard made room."""
    assert turn.session.model is not None
    connection = await in_thread(connection_to, turn.session.model.provider)
    fit = await in_thread(_fitted, turn, offered)
    try:
        return await _stream(turn, connection, fit)
    except ContextOverflow as error:
        guard = context.guard()
        if guard is None or not await in_thread(guard.after_overflow, turn.session, error):
            raise
    return await _stream(turn, connection, await in_thread(_fitted, turn, offered))


def _fitted(turn: Turn, offered: Sequence[Tool]) -> context.Fit:
    session = turn.session
    request = context.build_request(session, tools=offered)
    guard = context.guard()
    fit = guard.before_request(session, request) if guard else context.Fit(request=request, context_version=session.context_version)
    new = [notice for notice in fit.notices if notice not in turn.notices]
    if new:
        turn.notices = [*turn.notices, *new]
        turn.save(update_fields=["notices"])
    return fit


async def _stream(turn: Turn, connection: Connection, fit: context.Fit) -> Message:
    recorder = Recorder(turn, model=str(turn.session.model), context_version=fit.context_version)
    try:
        finished = await _listen(recorder, connection, fit.request)
        return await in_thread(_store_answer, turn, recorder, finished)
    except BaseException as error:
        if not isinstance(error, TurnLost):
            await _settle(in_thread(_keep_partial, recorder))
        if isinstance(error, ContextOverflow) and recorder.said_something:
            raise ProviderUnavailable(error.detail) from error
        raise


async def _listen(recorder: Recorder, connection: Connection, request: Request) -> Finished:
    finished = None
    async with recorder.flushing(), aclosing(providers.stream(connection, request)) as parts:
        async for part in parts:
            if isinstance(part, Finished):
                finished = part
            else:
                recorder.take(part)
    if finished is None:
        raise ProviderUnavailable("The provider's answer broke off.")
    if not recorder.said["message.delta"].strip() and not finished.tool_calls:
        raise ProviderUnavailable(_why_silent(finished.reason))
    return finished


def _why_silent(reason: str) -> str:
    return {
        "length": "The model reached its output limit before it began to answer.",
        "refusal": "The model declined to answer.",
    }.get(reason, "The model answered nothing.")


def _store_answer(turn: Turn, recorder: Recorder, finished: Finished) -> Message:
    """Answer and usage in one transaction; the turn's end too, when no tools are called."""
    with recorder.writing():
        message = recorder.complete(finished)
        if not message.tool_calls:
            _end(turn, Turn.Status.COMPLETED, None, message=message.pk)
            transaction.on_commit(lambda: _announce(turn, message))
    return message


def _keep_partial(recorder: Recorder) -> None:
    with recorder.writing():
        recorder.interrupt()


def _announce(turn: Turn, message: Message) -> None:
    response_completed.send_robust(Turn, session_id=turn.session_id, turn_id=turn.pk, message_id=message.pk, model=message.model)


async def _run_tools(turn: Turn, answer: Message) -> None:
    """Run the calls of one round side by side; each result is stored when it is there."""
    await in_thread(_say_what_runs, turn, answer)
    await asyncio.gather(*(in_thread(_run_tool, turn, ToolCall(**call)) for call in answer.tool_calls))


def _say_what_runs(turn: Turn, answer: Message) -> None:
    with transaction.atomic():
        hold(turn.pk)
        events.append(turn.session_id, *(("tool_call.started", {"message": answer.pk, **call}) for call in answer.tool_calls))


def _run_tool(turn: Turn, call: ToolCall) -> None:
    outcome = tools.run(call, session_id=turn.session_id)
    with transaction.atomic():
        hold(turn.pk)
        message = next_message(
            turn.session_id,
            turn,
            role=Message.Role.TOOL,
            content=outcome.content,
            tool_call_id=call.id,
            tool_name=call.name,
            is_error=outcome.is_error,
        )
        created = {"message": message.pk, "role": "tool", "message_seq": message.seq, "turn": str(turn.pk)}
        done = {"message": message.pk, "id": call.id, "name": call.name, "is_error": outcome.is_error}
        events.append(turn.session_id, ("message.created", created), ("tool_call.completed", done))


def _cancelled(turn_id: UUID) -> None:
    by_user = Turn.objects.filter(pk=turn_id, cancel_requested=True).exists()
    if by_user:
        _finish(turn_id, Turn.Status.CANCELLED, None)
    else:
        _finish(turn_id, Turn.Status.INTERRUPTED, _problem("interrupted", "The server stopped while answering; what was said is kept."))


def _failed(turn_id: UUID, problem: dict[str, Any]) -> None:
    logger.warning("turn %s failed: %s: %s", turn_id, problem["type"], problem["detail"])
    _finish(turn_id, Turn.Status.FAILED, problem)


def _finish(turn_id: UUID, status: str, problem: dict[str, Any] | None) -> None:
    try:
        with transaction.atomic():
            hold(turn_id)
            _end(Turn.objects.get(pk=turn_id), status, problem)
    except TurnLost:
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)


ENDINGS = {
    Turn.Status.COMPLETED: "turn.completed",
    Turn.Status.CANCELLED: "turn.cancelled",
    Turn.Status.FAILED: "turn.failed",
    Turn.Status.INTERRUPTED: "turn.failed",
}


def _end(turn: Turn, status: str, problem: dict[str, Any] | None, **data: Any) -> None:
    """Close the turn and say so, inside a transaction that holds it."""
    turn.status, turn.error, turn.finished_at = status, problem, timezone.now()
    turn.save(update_fields=["status", "error", "finished_at"])
    said = {key: problem[key] for key in ("type", "detail")} if problem else {}
    events.append(turn.session_id, (ENDINGS[Turn.Status(status)], {"turn": str(turn.pk), **said, **data}))


def _problem(kind: str, detail: str, *, status: int = 502, retry_after: float | None = None) -> dict[str, Any]:
    return {"type": kind, "detail": detail, "status": status, "retry_after": retry_after}
