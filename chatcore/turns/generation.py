"""Answering a turn: ask the guard, stream, run tools, store the answer, announce it."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction

from chatcore.context import builder
from chatcore.events import log as event_log
from chatcore.models import Message, Turn
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Connection, Finished, Request, Tool, ToolCall
from chatcore.providers.connections import connection_to
from chatcore.providers.errors import ContextOverflow, ProviderError, ProviderUnavailable
from chatcore.signals import response_completed
from chatcore.threads import in_thread
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools, lifecycle
from chatcore.turns.leases import LEASE, TurnLost, hold
from chatcore.turns.recorder import Recorder

logger = logging.getLogger(__name__)

MAX_TOOL_ROUNDS = 10
WATCH_SECONDS = 1.0  # how soon a cancel in another process is seen


class TooManyToolRounds(ProviderError):
    """The model went on calling tools instead of answering."""

    type = "tool_rounds_exceeded"


async def generate(turn_id: UUID) -> None:
    """Answer a committed turn, or go on with it. The edge: whatever happens, the turn ends, or waits, and says how."""
    watch = asyncio.create_task(_keep_lease(turn_id, asyncio.current_task()))
    try:
        await _converse(await in_thread(_read, turn_id))
    except asyncio.CancelledError:
        await _settle(in_thread(lifecycle.cancelled, turn_id))
    except (TurnLost, Turn.DoesNotExist):
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)
    except ProviderError as error:
        problem = lifecycle.problem(
            error.type, error.detail, status=error.status, retry_after=error.retry_after
        )
        await _settle(in_thread(lifecycle.failed, turn_id, problem))
    except Exception:
        logger.exception("turn %s failed", turn_id)
        problem = lifecycle.problem(
            "internal_error", "Something went wrong on our side; your message is kept.", status=500
        )
        await _settle(in_thread(lifecycle.failed, turn_id, problem))
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


def _read(turn_id: UUID) -> Turn:
    turn = Turn.objects.select_related("session__model__provider", "model__provider").get(
        pk=turn_id
    )
    if turn.model and turn.model.is_active and turn.model.provider.is_active:
        turn.session.model = turn.model  # for this turn only; the stored session keeps its own
    return turn


async def _converse(turn: Turn) -> None:
    """Ask until there is an answer that calls no tools, or until calls wait for the client."""
    session = turn.session
    able = bool(session.model and session.model.supports_tools)
    for round_ in range(await in_thread(client_tools.rounds, turn), MAX_TOOL_ROUNDS):
        answer = await _answer(
            turn, await in_thread(client_tools.offered, session, turn) if able else []
        )
        if not answer.tool_calls:
            return
        theirs = await _run_tools(turn, answer)
        if theirs and round_ + 1 < MAX_TOOL_ROUNDS:
            await in_thread(_wait_for_client, turn, theirs)
            return
    raise TooManyToolRounds(
        f"The model called tools {MAX_TOOL_ROUNDS} times in a row without answering."
    )


async def _answer(turn: Turn, offered: Sequence[Tool]) -> Message:
    """One call of the model, sent once more if the provider found it too long and the guard made room."""
    assert turn.session.model is not None
    connection = await in_thread(connection_to, turn.session.model.provider)
    fit = await in_thread(_fitted, turn, offered)
    try:
        return await _stream(turn, connection, fit)
    except ContextOverflow as error:
        guard = builder.guard()
        if guard is None or not await in_thread(
            guard.after_overflow, turn.session, fit.request, error
        ):
            raise
    return await _stream(turn, connection, await in_thread(_fitted, turn, offered))


def _fitted(turn: Turn, offered: Sequence[Tool]) -> builder.Fit:
    session = turn.session
    request = builder.build_request(session, tools=offered)
    guard = builder.guard()
    fit = (
        guard.before_request(session, request)
        if guard
        else builder.Fit(request=request, context_version=session.context_version)
    )
    new = [notice for notice in fit.notices if notice not in turn.notices]
    if new:
        turn.notices = [*turn.notices, *new]
        turn.save(update_fields=["notices"])
    return fit


async def _stream(turn: Turn, connection: Connection, fit: builder.Fit) -> Message:
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
    async with (
        recorder.flushing(),
        aclosing(provider_registry.stream(connection, request)) as parts,
    ):
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
            lifecycle.end(turn, Turn.Status.COMPLETED, message=message.pk)
            transaction.on_commit(lambda: _announce(turn, message))
    return message


def _keep_partial(recorder: Recorder) -> None:
    with recorder.writing():
        recorder.interrupt()


def _announce(turn: Turn, message: Message) -> None:
    response_completed.send_robust(
        Turn,
        session_id=turn.session_id,
        turn_id=turn.pk,
        message_id=message.pk,
        model=message.model,
    )


async def _run_tools(turn: Turn, answer: Message) -> Sequence[ToolCall]:
    """Run the calls of one round side by side; each result is stored when it is there. Returns those that the client runs."""
    await in_thread(_say_what_runs, turn, answer)
    calls = [ToolCall(**call) for call in answer.tool_calls]
    theirs = [call for call in calls if call.name in client_tools.names(turn)]
    await asyncio.gather(
        *(in_thread(_run_tool, turn, call) for call in calls if call not in theirs)
    )
    return theirs


def _say_what_runs(turn: Turn, answer: Message) -> None:
    with transaction.atomic():
        hold(turn.pk)
        event_log.append(
            turn.session_id,
            *(("tool_call.started", {"message": answer.pk, **call}) for call in answer.tool_calls),
        )


def _run_tool(turn: Turn, call: ToolCall) -> None:
    outcome = tool_registry.run(call, session_id=turn.session_id)
    with transaction.atomic():
        hold(turn.pk)
        client_tools.store_result(turn, call, outcome.content, is_error=outcome.is_error)


def _wait_for_client(turn: Turn, calls: Sequence[ToolCall]) -> None:
    """Give up the lease until the client has run its tools, unless the turn was cancelled meanwhile."""
    with transaction.atomic():
        hold(turn.pk)
        turn.refresh_from_db(fields=["cancel_requested"])
        if turn.cancel_requested:
            return lifecycle.end(turn, Turn.Status.CANCELLED)
        turn.status = Turn.Status.WAITING
        turn.save(update_fields=["status"])
        event_log.append(turn.session_id, client_tools.waiting(turn, calls))
