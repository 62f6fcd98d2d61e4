"""What compaction does when a turn stops, or messages are deleted, superseded or forked."""

import logging
from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from chatcore.events.log import append_events
from chatcore.events.types import ContextUsagePayload, EventType
from chatcore.models import Session, SessionEvent
from compaction.models import FORGOTTEN_TEXT, OPEN_STATUSES, CompactionRun, ModelCall, SessionState
from compaction.runs import engine
from compaction.sessions import calibration, request_size, session_context
from compaction.sessions.answered import MeasuredAnswer, take_measured
from compaction.sessions.background import publish_background, publish_what_is_remembered
from compaction.sessions.decision_log import Action, log_decision
from compaction.sessions.own_sentences import load_own_sentences, store_own_sentences
from compaction.sessions.request_size import describe_usage
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import find_memory_with_work, list_memories

logger = logging.getLogger(__name__)

Trigger = CompactionRun.Trigger

# In place of the state of a run. A run without any state is of an old version, which stored none.
FORGOTTEN_STATE = {"forgotten": True}
END_EVENTS = (
    EventType.COMPACTION_APPLIED,
    EventType.COMPACTION_SKIPPED,
    EventType.COMPACTION_FAILED,
)
EVENTS_AT_ONCE = 500


def check_response(*, session_id: UUID, message_id: int, **_: object) -> None:
    """Check the session after a response; what was stored with it is not measured again."""
    answer = take_measured(message_id)
    measure_and_request_run(session_id=session_id, answer=answer)


def measure_and_request_run(
    *, session_id: UUID, is_response: bool = True, answer: MeasuredAnswer | None = None
) -> None:
    """Measure the session once, announce its usage, and request at most one run.

    Where a turn stopped without a response, only a session with work for a run is announced: an
    agent may stop hundreds of times in one turn. Never raises: the sender has stored its response.
    """
    try:
        if answer is not None:
            context, usage = answer
            has_work = False
        else:
            loaded_context = _load_current_context(session_id)
            if loaded_context is None:
                return
            context, usage = loaded_context, describe_usage(loaded_context)
            has_work = usage["should_compact"] or find_memory_with_work(context) is not None
            if not (is_response or has_work):
                return
            append_events(session_id, (EventType.CONTEXT_USAGE, usage))
        _decide(context, usage, has_work=has_work)
        if is_response:
            # Last, because a run that is requested above must not wait for the statistics.
            for memory in list_memories():
                memory.read_messages(context, reads_all=False)
            _learn_from_response(context)
    except Exception:
        logger.exception("the context of session %s was not measured", session_id)


def request_run_after_halt(*, session_id: UUID, **_: object) -> None:
    """Request a run as after a response, where a turn stopped without one. Never raises."""
    measure_and_request_run(session_id=session_id, is_response=False)


def _decide(context: SessionContext, usage: ContextUsagePayload, *, has_work: bool) -> None:
    """Request a run if there is work and nothing holds it back, and log the decision."""
    action = _choose_action(context, should_compact=has_work)
    tokens = usage["estimated_input_tokens"]
    is_counted = usage["source"] == "provider"
    log_decision(
        context,
        trigger=Trigger.AFTER_RESPONSE,
        tokens=tokens,
        action=action,
        estimate=None if is_counted else tokens,
        last_known=tokens if is_counted else None,
        messages=usage["live_message_count"],
    )
    if action == "compact":
        engine.request_run(context.facts.session_id, trigger=Trigger.AFTER_RESPONSE)


def request_work(context: SessionContext) -> None:
    """Request a run if an app has work for one, as a response would."""
    if find_memory_with_work(context) is None:
        return
    if _choose_action(context, should_compact=True) == "compact":
        engine.request_run(context.facts.session_id, trigger=Trigger.AFTER_RESPONSE)


def _load_current_context(session_id: UUID) -> SessionContext | None:
    """Load the session's context without a refusal's token ratio that a newer count replaces.

    A counted answer measures better than a refusal did. While requests are trimmed, no answer
    counts the whole context, so the refusal's ratio stays.
    """
    context = session_context.load_session_context(session_id)
    if context is None or context.refusal_token_ratio <= 1 or context.state.trimming:
        return context
    if context.facts.last_usage is None:
        return context
    # The context is loaded again, because its budget and measurement depend on the ratio.
    SessionState.objects.filter(pk=session_id).update(learned_scale=1)
    return session_context.load_session_context(session_id)


def _choose_action(context: SessionContext, *, should_compact: bool) -> Action:
    if not should_compact:
        return "none"
    is_phase_on = Trigger.AFTER_RESPONSE in context.policy.trigger.phases
    return "compact" if is_phase_on and context.automatic_mode == "on" else "held"


def _learn_from_response(context: SessionContext) -> None:
    """Learn how the model counts, if the newest message is an answer whose request was counted."""
    last_usage = context.facts.last_usage
    if last_usage is None or last_usage.after_seq < context.facts.last_seq:
        return
    calibration.learn_from_response(
        context.facts.model.name,
        context.model_calibration,
        real_tokens=last_usage.input,
        estimate=lambda: request_size.estimate_plain_tokens(
            context, before_seq=last_usage.after_seq
        ),
    )


def forget_messages(session: Session, seqs: Collection[int]) -> None:
    """Blank the edits and the record of every run that covered one of these messages.

    The summaries are those of revisions, which are blanked already.

    Apps forget what these messages said. Afterwards the session is measured, because it may be too
    large again. The caller holds the lock of the session's row, so no run can install its outcome
    meanwhile; a run that is at work finds a changed context when it wants to install.
    """
    session_id = session.pk
    has_lost_text = [memory.forget_messages(session_id, seqs) for memory in list_memories()]
    # The text must be gone from the history of runs too, not only from what the model sees.
    covering_runs = select_covering_runs(session_id, min(seqs))
    covering_runs.update(edits=[], state_after=FORGOTTEN_STATE)
    _forget_words(session_id)
    if any(has_lost_text):
        publish_background(session_id)
    else:
        publish_what_is_remembered(session_id)
    # Measuring opens transactions of its own and may request a run, so it waits for the commit. It
    # is robust: a deletion must not fail because the session could not be measured.
    transaction.on_commit(lambda: measure_and_request_run(session_id=session_id), robust=True)


def supersede_messages(session: Session, seqs: Collection[int]) -> None:
    """Remove what was made from superseded messages, and bring back what others said.

    The caller holds the lock of the session's row.
    """
    if not seqs:
        return
    for memory in list_memories():
        memory.withdraw_messages(session.pk, seqs)
    # An earlier context may be in force now, with what was remembered then.
    publish_what_is_remembered(session.pk)


def copy_state_to_fork(session: Session, source: Session, *, last_seq: int) -> None:
    """Copy own sentences, and what apps keep, to a fork, up to the message `last_seq`."""
    if own_sentences := load_own_sentences(source.pk):
        store_own_sentences(session.pk, own_sentences)
    has_text = [
        memory.copy_to_fork(source.pk, target_id=session.pk, last_seq=last_seq)
        for memory in list_memories()
    ]
    if any(has_text):
        publish_background(session.pk)


def _forget_words(session_id: UUID) -> None:
    """Blank what may quote any message: a run's instructions, findings, calls, and why it failed.

    The instructions of an open run stay until it ends: it needs them.
    """
    runs = CompactionRun.objects.filter(session_id=session_id)
    runs.exclude(verification={}).update(verification={})
    # First the runs: a process that stores a call of an open one holds its row, and this waits.
    runs.filter(status__in=OPEN_STATUSES).update(keeps_words=False)
    ModelCall.objects.filter(run__session=session_id).update(request=None, answer=None, reason="")
    closed_runs = runs.exclude(status__in=OPEN_STATUSES)
    closed_runs.exclude(instructions="").update(instructions="")
    closed_runs.exclude(error="").update(error=FORGOTTEN_TEXT)
    closed_runs.exclude(reason="").update(reason=FORGOTTEN_TEXT)
    _forget_words_of_events(session_id)


def _forget_words_of_events(session_id: UUID) -> None:
    """Blank the reasons in the events of runs, and delete what ended runs showed of summaries."""
    events = SessionEvent.objects.filter(session=session_id)
    open_runs = CompactionRun.objects.filter(session_id=session_id, status__in=OPEN_STATUSES)
    open_ids = [str(pk) for pk in open_runs.values_list("pk", flat=True)]
    progress = events.filter(name=EventType.COMPACTION_PROGRESS)
    progress.exclude(data__run__in=open_ids).delete()
    ends = [event for event in events.filter(name__in=END_EVENTS) if event.data["reason"]]
    for event in ends:
        event.data["reason"] = FORGOTTEN_TEXT
    SessionEvent.objects.bulk_update(ends, ["data"], batch_size=EVENTS_AT_ONCE)


def select_covering_runs(session_id: UUID, first_seq: int) -> QuerySet[CompactionRun]:
    """Select the ended runs whose summary or edits were made from messages from `first_seq` on.

    Runs with edits are always selected, because an edit may quote any message.
    """
    closed_runs = CompactionRun.objects.filter(session_id=session_id).exclude(
        status__in=OPEN_STATUSES
    )
    return closed_runs.filter(
        Q(boundary_after__gt=first_seq) | Q(boundary_before__gt=first_seq) | ~Q(edits=[])
    )
