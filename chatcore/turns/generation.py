"""Generate the answer of a turn: fit the request, stream, run tools, store and announce."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.conf import settings
from django.db import transaction
from structlog.contextvars import bind_contextvars

from chatcore.accounts.rights import require_model
from chatcore.accounts.spending import (
    CallRefused,
    Purpose,
    Reservation,
    end_call,
    expect_use,
    reserve_call,
)
from chatcore.base.metrics import counts
from chatcore.base.threads import PREPARATION, TOOLS, finish, keep_trying, run_until_stored
from chatcore.base.tracing import Attributes, get_traces
from chatcore.context.compactor import FittedRequest
from chatcore.events import log as event_log
from chatcore.events.types import EventType
from chatcore.models import Message, Session, Turn
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import Connection, Request, StreamEnd, ToolCall
from chatcore.providers.errors import (
    ContextOverflow,
    ImagesRefused,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    ToolsRefused,
)
from chatcore.sessions.tool_calls import find_calling_message, find_pending_calls
from chatcore.tools import output as tool_output
from chatcore.tools import registry as tool_registry
from chatcore.tools.mcp import catalog as mcp_catalog
from chatcore.tools.mcp import turn_servers
from chatcore.tools.output import ToolOutput
from chatcore.tools.registry import ToolOutcome
from chatcore.turns import client_tools, lifecycle, refused_calls, waiting
from chatcore.turns.announcements import announce_halt, announce_response
from chatcore.turns.leases import (
    TurnCancelled,
    TurnLost,
    WatchedTurn,
    get_turn_watcher,
    lock_running_turn,
)
from chatcore.turns.prepared_calls import PreparedCall, prepare_call
from chatcore.turns.recorder import AnswerRecorder, ReadingTeller
from chatcore.turns.refused_calls import (
    OverflowTries,
    explain_silence,
    is_refusal_for_length,
    make_smaller_call,
)
from chatcore.turns.waiting import REFUSAL

logger = logging.getLogger(__name__)


CALLS_AT_ONCE = 8  # calls of one round of a model; the rest waits for them


class TooManyToolRounds(ProviderError):
    """The model kept calling tools instead of answering."""

    type = "tool_rounds_exceeded"


@dataclass
class TurnWork:
    """A turn that is being executed, and the recorder of its newest answer.

    `status` is what this part of the turn was stored with at its end, `answer` its last answer.
    """

    turn_id: UUID
    watched: WatchedTurn
    status: str = ""
    answer: Message | None = None
    recorder: AnswerRecorder | None = None
    overflow_tries: OverflowTries = field(default_factory=OverflowTries)
    has_begun: bool = False  # from then on nothing refuses what belongs to this turn
    began_at: float = field(default_factory=time.monotonic)
    is_first_token_counted: bool = False

    def note_end(self, status: str, answer: Message | None = None) -> None:
        """Note an end that is committed: from now on nothing can take the turn from this task."""
        self.status, self.answer = status, answer
        self.watched.is_over = True

    def count_first_token(self) -> None:
        """Count how long the turn took to its first token, once it is there."""
        first_delta_at = self.recorder.first_delta_at if self.recorder else None
        if self.recorder and first_delta_at is not None and not self.is_first_token_counted:
            self.is_first_token_counted = True
            counts.count_first_token(self.recorder.model, first_delta_at - self.began_at)


async def generate_answer(turn_id: UUID, *, turn: Turn) -> None:
    """Answer a turn, which is handed on as it was committed."""
    with get_traces().open_span("turn", {"chatcore.turn.id": str(turn_id)}):
        await _work_on_turn(turn_id, _run_rounds, turn)


async def resume_answer(turn_id: UUID) -> None:
    """Continue with a turn that has waited."""
    attributes: Attributes = {"chatcore.turn.id": str(turn_id), "chatcore.turn.resumed": True}
    with get_traces().open_span("turn", attributes):
        await _work_on_turn(turn_id, _resume_rounds)


async def _work_on_turn(
    turn_id: UUID,
    run_rounds: Callable[[TurnWork, Turn], Awaitable[None]],
    turn: Turn | None = None,
) -> None:
    """Run the rounds of a turn to its end, or until it waits.

    This is the edge of the program for a turn, so it catches every exception: whatever happens, the
    turn is closed, or waits, and its events say why.
    """
    bind_contextvars(turn=str(turn_id))  # for log lines, in this task's own context
    with get_turn_watcher().watch(turn_id) as watched:
        work = TurnWork(turn_id, watched)
        try:
            if turn is None:
                turn = await run_until_stored(_load_turn, turn_id)
            if turn.model and turn.model.is_active and turn.model.provider.is_active:
                turn.session.model = turn.model  # for this turn only; the row keeps its own
            bind_contextvars(session=str(turn.session_id))
            await turn_servers.ask_new_servers(turn)
            await run_rounds(work, turn)
        except (asyncio.CancelledError, TurnCancelled):
            await _close(work, lifecycle.close_cancelled_turn)
        except (TurnLost, Turn.DoesNotExist, Session.DoesNotExist):
            _log_loss(work)
        except (CallRefused, ProviderError) as error:
            if isinstance(error, CallRefused):
                detail = f"{error.reason} Your message is kept."
            else:
                detail = error.detail
            problem = lifecycle.build_problem(
                error.type, detail, status=error.status, retry_after=error.retry_after
            )
            await _close(work, lifecycle.close_failed_turn, problem)
        except Exception as error:
            logger.exception("turn %s failed", turn_id)
            problem = lifecycle.build_unexpected_problem(error)
            await _close(work, lifecycle.close_failed_turn, problem)
    if turn is not None:
        _announce_end(work, turn)


async def _close(work: TurnWork, close_turn: Callable[..., str], *args: object) -> None:
    """Store the end of a turn with the rest of its answer, unless an end is stored already."""
    if work.status:
        return
    closing = await finish(run_until_stored(close_turn, work.turn_id, work.recorder, *args))
    if error := closing.exception():
        # Nobody renews the lease any more, so recovery closes the turn when it ends.
        logger.error("turn %s could not be closed", work.turn_id, exc_info=error)
    elif status := closing.result():
        work.note_end(status)
    elif not work.status:  # else a thread has stored the end after the task was cancelled
        _log_loss(work)


def _log_loss(work: TurnWork) -> None:
    logger.warning("turn %s was closed elsewhere, or deleted with its session", work.turn_id)


def _announce_end(work: TurnWork, turn: Turn) -> None:
    if work.answer is not None:
        announce_response(turn, work.answer)
    elif work.status:
        announce_halt(turn.pk, session_id=turn.session_id, status=work.status)


def _load_turn(turn_id: UUID) -> Turn:
    related = ("session__model__provider", "model__provider")
    return Turn.objects.select_related(*related).get(pk=turn_id)


async def _run_rounds(work: TurnWork, turn: Turn) -> None:
    """Call the model until it answers without calling tools, or until calls wait.

    Only rounds of tools that run here are bounded: a client decides itself when it has enough.
    """
    limit = settings.CHATCORE["TOOL_ROUNDS"]
    for _ in range(limit):
        answer = await _request_answer(work, turn)
        if not answer.tool_calls:
            if turn.exchange:
                turn.exchange.answer = answer
            return
        turn.exchange = None
        if await _run_tools(work, turn, answer, [ToolCall(**call) for call in answer.tool_calls]):
            return
    raise TooManyToolRounds(f"The model called tools {limit} times in a row without answering.")


async def _resume_rounds(work: TurnWork, turn: Turn) -> None:
    """Run the calls that a person has decided on meanwhile, then continue."""
    work.has_begun = True
    assert turn.session.model is not None
    await run_until_stored(require_model, turn.session.owner_id, turn.session.model)
    answer = await run_until_stored(find_calling_message, turn)
    if answer is not None:
        pending_calls = await run_until_stored(find_pending_calls, turn, answer)
        if await _run_tools(work, turn, answer, pending_calls):
            return
    await _run_rounds(work, turn)


async def _request_answer(work: TurnWork, turn: Turn) -> Message:
    """Call the model; send a smaller request where it was refused as too long."""
    assert turn.session.model is not None
    call = await _prepare_call(turn)
    learned_from: ImagesRefused | ToolsRefused | None = None
    while True:
        try:
            answer = await _stream_answer(work, turn, call)
        except (ImagesRefused, ToolsRefused) as error:
            await run_until_stored(refused_calls.learn, turn, error)
            learned_from = error
            call = await _prepare_call(turn)
        except ProviderError as error:
            if isinstance(error, ProviderRejected) and not _has_text(work):
                smaller_answer = await _answer_without_refused(work, turn, call)
                if smaller_answer is not None:
                    return smaller_answer
            if not is_refusal_for_length(error) or _has_text(work):
                if learned_from and isinstance(error, ProviderRejected):
                    await run_until_stored(refused_calls.unlearn, turn, learned_from)
                raise
            # Once only: it may have paid a model before the database failed.
            call = await PREPARATION.run_for(
                turn.session.owner_id, make_smaller_call, turn, call, error, work.overflow_tries
            )
        else:
            if work.overflow_tries.sizes:
                request = call.fitted_request.request
                await run_until_stored(work.overflow_tries.keep_window, turn.session.model, request)
                work.overflow_tries.settle()
            return answer


def _has_text(work: TurnWork) -> bool:
    return work.recorder is not None and work.recorder.has_text


async def _answer_without_refused(work: TurnWork, turn: Turn, call: PreparedCall) -> Message | None:
    """Answer without earlier messages that were refused too; None if that is no help.

    Then they stay out of later requests.
    """
    smaller_call = await run_until_stored(refused_calls.leave_out_refused, turn, call)
    if smaller_call is None:
        return None
    try:
        answer = await _stream_answer(work, turn, smaller_call)
    except ProviderRejected:
        await run_until_stored(refused_calls.take_back_notices, turn)
        return None
    await run_until_stored(refused_calls.hide_refused, turn, call, smaller_call)
    return answer


async def _prepare_call(turn: Turn) -> PreparedCall:
    """Prepare the next call, which may wait for a summary, in threads that are there for that."""
    owner_id = turn.session.owner_id
    return await keep_trying(lambda: PREPARATION.run_for(owner_id, prepare_call, turn))


async def _stream_answer(work: TurnWork, turn: Turn, call: PreparedCall) -> Message:
    paid_call = await run_until_stored(
        _reserve_call, turn, call.fitted_request, may_refuse=not work.has_begun
    )
    work.has_begun = True
    recorder = work.recorder = AnswerRecorder(
        turn,
        model=str(turn.session.model),
        context_version=call.fitted_request.context_version,
        request=call.fitted_request.request,
        left_out=call.left_out,
        left_out_count=call.left_out_count,
        sent_tokens=call.fitted_request.tokens,
        measure_answer=call.fitted_request.measure_answer,
        call=paid_call,
    )
    try:
        return await _record_answer(work, recorder, call.connection)
    except BaseException as error:
        await finish(run_until_stored(end_call, paid_call, error))
        raise


def _reserve_call(turn: Turn, fitted_request: FittedRequest, *, may_refuse: bool) -> Reservation:
    model = turn.session.model
    assert model is not None
    return reserve_call(
        turn.session.owner_id,
        model,
        Purpose.ANSWER,
        expect_use(model, fitted_request.request, tokens=fitted_request.tokens),
        session_id=turn.session_id,
        may_refuse=may_refuse,
    )


async def _record_answer(
    work: TurnWork, recorder: AnswerRecorder, connection: Connection
) -> Message:
    connection = replace(connection, tell_reading=ReadingTeller(recorder.turn).tell)
    try:
        completion = await _record_stream(recorder, connection, recorder.request)
    except ContextOverflow as error:
        # The request is sent again after an overflow, and then the text that users have seen would
        # come twice. So an overflow in the middle of an answer is an ordinary failure.
        if recorder.has_text:
            raise ProviderUnavailable(error.detail) from error
        raise
    finally:
        work.count_first_token()
    return await run_until_stored(_store_answer, work, recorder, completion)


async def _record_stream(
    recorder: AnswerRecorder, connection: Connection, request: Request
) -> StreamEnd:
    """Read the provider's stream to its end.

    Raises ProviderUnavailable if it breaks off, or grows past CHATCORE's ANSWER_CHARS or lasts
    longer than ANSWER_SECONDS. What has arrived by then is kept.
    """
    completion = None
    try:
        async with (
            asyncio.timeout(settings.CHATCORE["ANSWER_SECONDS"]) as time_limit,
            aclosing(provider_registry.stream(connection, request)) as parts,
        ):
            async for part in parts:
                recorder.call.note_part(part)
                if isinstance(part, StreamEnd):
                    completion = part
                else:
                    recorder.record_delta(part)
                    _refuse_endless_answer(recorder)
    except TimeoutError:
        if not time_limit.expired():
            raise
        raise ProviderUnavailable(
            f"The answer took longer than {settings.CHATCORE['ANSWER_SECONDS']} seconds,"
            " and was stopped."
        ) from None
    if completion is None:
        raise ProviderUnavailable("The provider's answer broke off.")
    if not recorder.texts[EventType.MESSAGE_DELTA].has_words() and not completion.tool_calls:
        error = explain_silence(request, completion)
        error.may_be_overflow = error.may_be_overflow and not recorder.has_text
        raise error
    return completion


def _refuse_endless_answer(recorder: AnswerRecorder) -> None:
    limit = settings.CHATCORE["ANSWER_CHARS"]
    if recorder.char_count > limit:
        raise ProviderUnavailable(
            f"The answer grew longer than {limit} characters, and was stopped."
        )


def _store_answer(work: TurnWork, recorder: AnswerRecorder, completion: StreamEnd) -> Message:
    """Store answer and usage in one transaction, with the turn's end if no tools are called."""
    turn = recorder.turn
    with recorder.open_transaction() as locked_turn:
        # Whoever asked was told that the turn is cancelled, so it may not complete any more.
        if locked_turn.is_cancel_requested:
            raise TurnCancelled(str(turn.pk))
        refused_calls.note_left_out(turn, completion)
        completion = client_tools.drop_calls_over_limit(turn, completion)
        message, events = recorder.complete_message(completion)
        if message.tool_calls:
            event_log.append_events(turn.session_id, *events)
        else:
            transaction.on_commit(lambda: work.note_end(Turn.Status.COMPLETED, message))
            lifecycle.end_turn(
                turn,
                Turn.Status.COMPLETED,
                answer=message,
                earlier_events=events,
                later_events=recorder.list_usage_events(message, locked_turn),
            )
        transaction.on_commit(lambda: _count_answer(turn, message))
    return message


def _count_answer(turn: Turn, message: Message) -> None:
    counts.count_tokens(
        message.model,
        input=message.token_count_input,
        output=message.token_count_output,
        cache_read=message.token_count_cache_read,
        cache_write=message.token_count_cache_write,
    )
    if not message.tool_calls:
        lifecycle.count_end(turn, message.model)


async def _run_tools(
    work: TurnWork, turn: Turn, answer: Message, calls: Sequence[ToolCall]
) -> bool:
    """Run calls of one round at the same time; return True if the turn waits for others now.

    Each result is stored as soon as it is there.
    """
    client_calls, own_calls = waiting.split_calls(turn, calls)
    sorted_calls = waiting.SortedCalls(allowed_calls=own_calls)
    if any(mcp_catalog.is_tool_name(call.name) for call in own_calls):
        sorted_calls = await run_until_stored(waiting.sort_calls, turn, answer, own_calls)
    places = asyncio.Semaphore(CALLS_AT_ONCE)
    await asyncio.gather(
        *(_run_tool(turn, answer, call, places) for call in sorted_calls.allowed_calls),
        *(_store_outcome(turn, answer, call, REFUSAL) for call in sorted_calls.refused_calls),
    )
    open_calls = waiting.OpenCalls(client_calls, sorted_calls.undecided_calls)
    if open_calls:
        await run_until_stored(_wait, turn, open_calls, work.note_end)
    return bool(open_calls)


async def _run_tool(turn: Turn, answer: Message, call: ToolCall, places: asyncio.Semaphore) -> None:
    """Run a tool once, when one of the round's places is free, and store its result."""
    async with places:
        outcome = await TOOLS.run_for(
            turn.session.owner_id, tool_registry.run_allowed_tool, call, turn
        )
    await _store_outcome(turn, answer, call, outcome)


async def _store_outcome(turn: Turn, answer: Message, call: ToolCall, outcome: ToolOutcome) -> None:
    # The store of files may be a bucket somewhere else, so this is no work for STORING.
    owner_id = turn.session.owner_id
    output = await keep_trying(
        lambda: TOOLS.run_for(owner_id, _put_output_away, turn, call, outcome)
    )
    await run_until_stored(_store_result, turn, answer, call, output, outcome.is_error)


def _put_output_away(turn: Turn, call: ToolCall, outcome: ToolOutcome) -> ToolOutput:
    output = tool_output.build_tool_output(turn.session, call.name, outcome.content)
    return output.put_away(turn.session)


def _store_result(
    turn: Turn, answer: Message, call: ToolCall, output: ToolOutput, is_error: bool
) -> None:
    with transaction.atomic():
        lock_running_turn(turn.pk)
        # An earlier attempt may have stored it although its commit was not confirmed.
        if not client_tools.has_result(turn, answer, call):
            client_tools.store_result(turn, call, output, is_error=is_error)


def _wait(
    turn: Turn,
    open_calls: waiting.OpenCalls,
    note_end: Callable[[str], object] = lambda status: None,
) -> None:
    """Let the turn wait, without a lease, for results of the client or for a user's approval.

    `note_end` is called with the turn's status once that is committed.
    """
    with transaction.atomic():
        # A user who cancels now only sets a flag, because the turn is still running. Nobody would
        # look at the flag of a waiting turn.
        is_cancel_requested = lock_running_turn(turn.pk).is_cancel_requested
        transaction.on_commit(lambda: note_end(turn.status))
        if is_cancel_requested:
            return lifecycle.end_turn(turn, Turn.Status.CANCELLED)
        turn.status = Turn.Status.WAITING
        turn.save(update_fields=["status"])
        event_log.append_events(turn.session_id, waiting.build_waiting_event(turn, open_calls))
