"""Generate the answer of a turn: fit the request, stream, run tools, store and announce."""

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
from chatcore.context.compactor import FittedRequest, get_compactor
from chatcore.events import log as event_log
from chatcore.events.types import EventType, NewEvent, ToolCallStartedPayload
from chatcore.models import Message, Turn
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Connection, Request, StreamEnd, Tool, ToolCall
from chatcore.providers.connections import build_connection
from chatcore.providers.errors import ContextOverflow, ProviderError, ProviderUnavailable
from chatcore.signals import response_completed
from chatcore.threads import run_in_thread
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools, lifecycle
from chatcore.turns.leases import LEASE, TurnLost, renew_lease
from chatcore.turns.recorder import AnswerRecorder

logger = logging.getLogger(__name__)

MAX_TOOL_ROUNDS = 10
WATCH_SECONDS = 1.0  # how often a cancellation by another process is looked for


class TooManyToolRounds(ProviderError):
    """The model kept calling tools instead of answering."""

    type = "tool_rounds_exceeded"


async def generate_answer(turn_id: UUID) -> None:
    """Answer a committed turn, or continue with it.

    This is the edge of the program for a turn, so it catches every exception: whatever happens, the
    turn is closed, or waits for its client, and its events say why.
    """
    lease_task = asyncio.create_task(_keep_lease(turn_id, asyncio.current_task()))
    try:
        await _run_rounds(await run_in_thread(_load_turn, turn_id))
    except asyncio.CancelledError:
        await _await_uncancelled(run_in_thread(lifecycle.close_cancelled_turn, turn_id))
    except (TurnLost, Turn.DoesNotExist):
        logger.warning("turn %s was closed elsewhere, or deleted with its session", turn_id)
    except ProviderError as error:
        problem = lifecycle.build_problem(
            error.type, error.detail, status=error.status, retry_after=error.retry_after
        )
        await _await_uncancelled(run_in_thread(lifecycle.close_failed_turn, turn_id, problem))
    except Exception:
        logger.exception("turn %s failed", turn_id)
        problem = lifecycle.build_problem(
            "internal_error", "Something went wrong on our side; your message is kept.", status=500
        )
        await _await_uncancelled(run_in_thread(lifecycle.close_failed_turn, turn_id, problem))
    finally:
        lease_task.cancel()


async def _await_uncancelled(final_write: Coroutine[Any, Any, None]) -> None:
    """Wait until the end of a turn is stored, however often this task is cancelled meanwhile.

    A cancellation can come at any await: twice from a user, or from the user and then from the end
    of the process. Without this, the second one would cut off the write that closes the turn, and
    the turn would stay open until its lease ends. `shield` keeps the write running when the
    cancellation hits the wait for it; the loop then waits again. The cancellation is dropped on
    purpose: this write is the last step of the task, or leads to it.
    """
    task = asyncio.ensure_future(final_write)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


async def _keep_lease(turn_id: UUID, task: asyncio.Task[Any] | None) -> None:
    """Renew the lease and look for a cancellation; cancel the task when either says so.

    An error of the database is logged and tried again: the lease outlives several attempts.
    """
    renewed_at = time.monotonic()
    while task:
        await asyncio.sleep(WATCH_SECONDS)
        try:
            if await run_in_thread(Turn.objects.filter(pk=turn_id, cancel_requested=True).exists):
                break
            if time.monotonic() - renewed_at > LEASE.total_seconds() / 4:
                await run_in_thread(renew_lease, turn_id)
                renewed_at = time.monotonic()
        except TurnLost:
            break
        except DatabaseError:
            logger.warning("the lease of turn %s was not renewed", turn_id, exc_info=True)
    if task:
        task.cancel()


def _load_turn(turn_id: UUID) -> Turn:
    turn = Turn.objects.select_related("session__model__provider", "model__provider").get(
        pk=turn_id
    )
    if turn.model and turn.model.is_active and turn.model.provider.is_active:
        turn.session.model = turn.model  # for this turn only; the stored session keeps its own
    return turn


async def _run_rounds(turn: Turn) -> None:
    """Call the model until it answers without calling tools, or until calls wait for the client."""
    session = turn.session
    supports_tools = bool(session.model and session.model.supports_tools)
    first_round = await run_in_thread(client_tools.count_rounds, turn)
    for round_number in range(first_round, MAX_TOOL_ROUNDS):
        tools: Sequence[Tool] = []
        if supports_tools:
            tools = await run_in_thread(client_tools.list_offered_tools, session, turn)
        answer = await _request_answer(turn, tools)
        if not answer.tool_calls:
            return
        client_calls = await _run_tools(turn, answer)
        if client_calls and round_number + 1 < MAX_TOOL_ROUNDS:
            await run_in_thread(_wait_for_client, turn, client_calls)
            return
    raise TooManyToolRounds(
        f"The model called tools {MAX_TOOL_ROUNDS} times in a row without answering."
    )


async def _request_answer(turn: Turn, tool_definitions: Sequence[Tool]) -> Message:
    """Call the model; send the request once more if it was too long and there is room now."""
    assert turn.session.model is not None
    connection = await run_in_thread(build_connection, turn.session.model.provider)
    fitted_request = await run_in_thread(_build_fitted_request, turn, tool_definitions)
    try:
        return await _stream_answer(turn, connection, fitted_request)
    except ContextOverflow as error:
        has_made_room = await run_in_thread(
            get_compactor().after_overflow, turn.session, fitted_request.request, error
        )
        if not has_made_room:
            raise
    fitted_request = await run_in_thread(_build_fitted_request, turn, tool_definitions)
    return await _stream_answer(turn, connection, fitted_request)


def _build_fitted_request(turn: Turn, tool_definitions: Sequence[Tool]) -> FittedRequest:
    session = turn.session
    request = builder.build_request(session, tools=tool_definitions)
    fitted_request = get_compactor().before_request(session, request)
    new_notices = [notice for notice in fitted_request.notices if notice not in turn.notices]
    if new_notices:
        turn.notices = [*turn.notices, *new_notices]
        turn.save(update_fields=["notices"])
    return fitted_request


async def _stream_answer(
    turn: Turn, connection: Connection, fitted_request: FittedRequest
) -> Message:
    recorder = AnswerRecorder(
        turn, model=str(turn.session.model), context_version=fitted_request.context_version
    )
    try:
        completion = await _record_stream(recorder, connection, fitted_request.request)
        return await run_in_thread(_store_answer, turn, recorder, completion)
    except BaseException as error:
        if not isinstance(error, TurnLost):
            await _await_uncancelled(run_in_thread(_store_partial_answer, recorder))
        # The request is sent again after an overflow, and then the text that users have seen would
        # come twice. So an overflow in the middle of an answer is an ordinary failure.
        if isinstance(error, ContextOverflow) and recorder.has_text:
            raise ProviderUnavailable(error.detail) from error
        raise


async def _record_stream(
    recorder: AnswerRecorder, connection: Connection, request: Request
) -> StreamEnd:
    completion = None
    async with (
        recorder.flush_in_background(),
        aclosing(provider_registry.stream(connection, request)) as parts,
    ):
        async for part in parts:
            if isinstance(part, StreamEnd):
                completion = part
            else:
                recorder.record_delta(part)
    if completion is None:
        raise ProviderUnavailable("The provider's answer broke off.")
    if not recorder.texts[EventType.MESSAGE_DELTA].strip() and not completion.tool_calls:
        raise ProviderUnavailable(_explain_silence(completion.reason))
    return completion


def _explain_silence(reason: str) -> str:
    return {
        "length": "The model reached its output limit before it began to answer.",
        "refusal": "The model declined to answer.",
    }.get(reason, "The model answered nothing.")


def _store_answer(turn: Turn, recorder: AnswerRecorder, completion: StreamEnd) -> Message:
    """Store answer and usage in one transaction, with the turn's end if no tools are called."""
    with recorder.open_transaction():
        message = recorder.complete_message(completion)
        if not message.tool_calls:
            lifecycle.end_turn(turn, Turn.Status.COMPLETED, message_id=message.pk)
            transaction.on_commit(lambda: _announce_response(turn, message))
    return message


def _store_partial_answer(recorder: AnswerRecorder) -> None:
    with recorder.open_transaction():
        recorder.interrupt_message()


def _announce_response(turn: Turn, message: Message) -> None:
    response_completed.send_robust(
        Turn,
        session_id=turn.session_id,
        turn_id=turn.pk,
        message_id=message.pk,
        model=message.model,
    )


async def _run_tools(turn: Turn, answer: Message) -> Sequence[ToolCall]:
    """Run the calls of one round at the same time, and return those that the client runs.

    Each result is stored as soon as it is there.
    """
    await run_in_thread(_append_call_events, turn, answer)
    calls = [ToolCall(**call) for call in answer.tool_calls]
    client_calls = [call for call in calls if call.name in client_tools.get_tool_names(turn)]
    await asyncio.gather(
        *(run_in_thread(_run_tool, turn, call) for call in calls if call not in client_calls)
    )
    return client_calls


def _append_call_events(turn: Turn, answer: Message) -> None:
    payloads = [
        ToolCallStartedPayload(
            message=answer.pk, id=call["id"], name=call["name"], arguments=call["arguments"]
        )
        for call in answer.tool_calls
    ]
    events: list[NewEvent] = [(EventType.TOOL_CALL_STARTED, payload) for payload in payloads]
    with transaction.atomic():
        renew_lease(turn.pk)
        event_log.append_events(turn.session_id, *events)


def _run_tool(turn: Turn, call: ToolCall) -> None:
    result = tool_registry.run_tool(call, session_id=turn.session_id)
    with transaction.atomic():
        renew_lease(turn.pk)
        client_tools.store_result(turn, call, result.content, is_error=result.is_error)


def _wait_for_client(turn: Turn, calls: Sequence[ToolCall]) -> None:
    """Let the turn wait, without a lease, until the client has run its tools."""
    with transaction.atomic():
        renew_lease(turn.pk)
        # A user who cancels now only sets a flag, because the turn is still running. Nobody would
        # look at the flag of a waiting turn, so it is read again while the turn's row is locked.
        turn.refresh_from_db(fields=["cancel_requested"])
        if turn.cancel_requested:
            return lifecycle.end_turn(turn, Turn.Status.CANCELLED)
        turn.status = Turn.Status.WAITING
        turn.save(update_fields=["status"])
        event_log.append_events(turn.session_id, client_tools.build_waiting_event(turn, calls))
