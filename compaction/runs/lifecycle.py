"""End a run: install and record its outcome, skip it, or record its failure.

The states of a run:

    queued ──claim──► running ──┬──► applied ──rewind──► rewound
       ▲               │ ▲  │   ├──► skipped
       └──given back───┘ └──┘   ├──► failed
                  lease ended,  └──► fell_back
                 claimed again

A run is *queued* when it is inserted. A claim (`leases.py`) makes it *running*; when the lease of a
dead worker ends, the next claim takes the run over, and it stays running. A worker that lives and
cannot go on gives it back: the database stumbled, or the context keeps changing. It ends as
*applied* when what the model sees was changed, and as *skipped* when there was nothing to do or no
longer a reason to do it. A run that could not be completed is *failed*; it is *fell_back* when the
context is over its threshold, so that requests are trimmed from now on. An applied run becomes
*rewound* when a user goes back to the context before it (`engine.py`) or a new run replaces it, and
*applied* again when that is undone (`history.py`). No other change of state exists.

Each end is one transaction that locks in the order of docs/concurrency.md: the session (by
announcing an event or installing), then the run, then the structured state and the SessionState.
The write of the run's row is conditional on the claim, so a worker that has lost its run changes
nothing at all: the whole transaction is rolled back.
"""

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.base.databases.clock import read_clock
from chatcore.base.metrics import counts
from chatcore.base.tracing import Attributes, get_traces
from chatcore.context.live_messages import count_early_messages
from chatcore.events.log import append_events
from chatcore.events.types import (
    CompactionAppliedPayload,
    CompactionEndedPayload,
    CompactionProgressPayload,
    CompactionStartedPayload,
    ContextTrimmedPayload,
    EventType,
    NewEvent,
)
from compaction.core.outcome import MessageOutcome, Outcome
from compaction.core.policy import Policy
from compaction.core.systems import describe_traits
from compaction.core.transcript import Transcript, TranscriptEdit
from compaction.models import FORGOTTEN_TEXT, CompactionRun, SessionState
from compaction.runs import history, leases
from compaction.sessions.background import NOTHING, render_background
from compaction.sessions.memory_app import get_memory
from compaction.sessions.own_sentences import PLACEMENT_KEY, load_own_sentences
from compaction.sessions.queries import load_session_state
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import list_memories
from compaction.sessions.source_messages import load_period
from compaction.sessions.transcripts import install_outcome
from compaction.summaries.refused_calls import describe_left_out
from textkit.calendar import describe_days

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 30
LONGEST_WAIT_SECONDS = 3600
MIN_GAIN_RATIO = 0.05  # of the threshold; a run that gains less counts as fruitless


@contextmanager
def trace_run(run: CompactionRun) -> Iterator[None]:
    """Open a span around a run, with one for its wait in the queue."""
    traces = get_traces()
    attributes: Attributes = {
        "chatcore.run.id": str(run.pk),
        "chatcore.run.trigger": run.trigger,
        "chatcore.run.policy": run.policy,
        "chatcore.run.attempt": run.attempts,
        "gen_ai.conversation.id": str(run.session_id),
    }
    with traces.open_span("compaction run", attributes, kind="consumer"):
        if run.enqueued_at:
            traces.note_wait("wait in the queue", run.enqueued_at)
        yield
    traces.send()  # a worker's process may end next


def count_run(run: CompactionRun) -> None:
    """Count a run that has ended, in this process's metrics."""
    get_traces().note(
        {
            "chatcore.run.status": str(run.status),
            "chatcore.run.tokens_before": run.tokens_before,
            "chatcore.run.tokens_after": run.tokens_after,
        }
    )
    counts.count_run(
        policy=run.policy,
        trigger=run.trigger,
        outcome=run.status,
        seconds=None if run.duration_ms is None else run.duration_ms / 1000,
        tokens_before=run.tokens_before,
        tokens_after=run.tokens_after,
    )


def announce_start(
    run: CompactionRun, *, message_count: int, force: bool, target_count: int | None = None
) -> None:
    """Announce that the context is being compacted, at most once for each run.

    This happens when a summary is begun, or just before the end of a run that needed none. A run
    that is claimed again is not announced again. `target_count` is the number of messages that
    change, where it is not `message_count`. Raises RunLeaseLost.
    """
    if run.announced:
        return
    targets = message_count if target_count is None else target_count
    payload = build_started_payload(run, message_count, force=force, targets=targets)
    with transaction.atomic():
        append_events(run.session_id, (EventType.COMPACTION_STARTED, payload))
        if not leases.select_claimed_run(run).filter(announced=False).update(announced=True):
            raise leases.RunLeaseLost
        # Not before: where an install is rolled back, the next attempt announces it.
        transaction.on_commit(lambda: setattr(run, "announced", True))


def build_started_payload(
    run: CompactionRun, message_count: int, *, force: bool = False, targets: int
) -> CompactionStartedPayload:
    """Return the payload of `compaction.started`."""
    return {
        "run": str(run.pk),
        "messages_count": message_count,
        "force": force,
        "targets": targets,
        "expected_seconds": run.expected_seconds,
    }


def apply_run(
    run: CompactionRun, context: SessionContext, transcript: Transcript, outcome: Outcome
) -> None:
    """Install the outcome in place of what the run replaces, and record it, all or nothing.

    Where other stages made room although no summary was written, the run records the reason, and
    the next automatic run waits as after a failure. Raises StaleContext and RunLeaseLost; then
    nothing has changed.
    """
    with transaction.atomic():
        history.go_back_to_install(run)
        announce_start(
            run,
            message_count=outcome.messages_compacted,
            force=run.is_forced,
            target_count=len(outcome.targets),
        )
        _install_and_close(run, context, transcript, outcome)
        _record_success(run, context, outcome)
        append_events(run.session_id, *_build_applied_events(run, context, outcome))
    logger.info(
        "compaction run %s applied: %s to %s tokens, %s messages by %s",
        run.pk,
        outcome.tokens_before,
        outcome.tokens_after,
        outcome.messages_compacted,
        ", ".join(outcome.stages_used),
    )


def _install_and_close(
    run: CompactionRun, context: SessionContext, transcript: Transcript, outcome: Outcome
) -> None:
    """Write the context, then the run, then what apps keep: the order of the locks."""
    version = install_outcome(
        run.session_id,
        transcript,
        outcome,
        run=str(run.pk),
        background=render_background(
            context,
            boundary_seq=outcome.boundary_seq,
            shortened_seqs=[entry.seq for entry in outcome.entries if entry.original is not None],
            proposals=outcome.proposals,
        ),
        placement=build_placement(run.session_id, context.policy, transcript, outcome),
    )
    close_run(
        run,
        CompactionRun.Status.APPLIED,
        reason=_explain_applied(outcome),
        error=outcome.summary_error,
        boundary_before=context.facts.live.boundary_seq,
        version_before=transcript.version,
        version_after=version,
        state_after=describe_memories(run.session_id, outcome.proposals),
        **build_run_record(outcome),
    )
    for memory in list_memories():
        if memory.name in outcome.proposals:
            memory.store_proposal(run.session_id, outcome.proposals[memory.name])
    if outcome.summary and outcome.proposed_segments:
        get_memory().store_segments(
            run, outcome.summary, outcome.proposed_segments, policy=context.policy
        )


def describe_memories(
    session_id: UUID, proposals: Mapping[str, object] = NOTHING
) -> dict[str, object]:
    """Return what a run records of what apps keep, before proposals are stored."""
    record: dict[str, object] = {}
    for memory in list_memories():
        record.update(memory.describe_run(session_id, proposals.get(memory.name)))
    return record


def _explain_applied(outcome: Outcome) -> str:
    """Return what was wrong although the outcome is applied; empty if nothing was."""
    if outcome.is_extract:
        return f"An extract of the messages stands in place of a summary. {outcome.summary_error}"
    reasons = (outcome.summary_error or outcome.reason, describe_left_out(outcome.refused_seqs))
    return " ".join(reason for reason in reasons if reason)


def build_placement(
    session_id: UUID, policy: Policy, transcript: Transcript, outcome: Outcome
) -> dict[str, object]:
    """Return where the summary is shown and which texts surround it, without empty values.

    The nudge accompanies a summary; the failure nudge says that none was written.
    """
    traits = describe_traits(policy)
    nudge = traits.nudge if outcome.summary else ""
    if outcome.summary_error and not outcome.is_extract:
        nudge = traits.failure_nudge
    placement_fields = {
        "place": traits.place,
        "heading": traits.heading,
        "period": _describe_period(session_id, policy, transcript, outcome),
        PLACEMENT_KEY: load_own_sentences(session_id) if outcome.summary else [],
        "nudge": nudge,
        "marker": outcome.marker,
        "after_seq": transcript.entries[-1].seq if transcript.entries else None,
        "left_out_count": _count_left_out(session_id, outcome),
    }
    return {name: value for name, value in placement_fields.items() if value}


def _count_left_out(session_id: UUID, outcome: Outcome) -> int:
    """Return the messages between those that are kept from before the boundary and the others."""
    if not outcome.exempt_seqs or not outcome.boundary_seq:
        return 0
    return count_early_messages(session_id, outcome.boundary_seq) - len(set(outcome.exempt_seqs))


def _describe_period(
    session_id: UUID, policy: Policy, transcript: Transcript, outcome: Outcome
) -> str:
    """Return the days of the messages that a summary covers; a composed one has them itself."""
    boundary_seq = outcome.boundary_seq or transcript.boundary_seq or 1
    last_seq = outcome.summarized_up_to or boundary_seq - 1
    if not outcome.summary or policy.summary.spans == "frozen":
        return ""
    return describe_period(session_id, last_seq)


def describe_period(session_id: UUID, last_seq: int) -> str:
    """Return the days of the messages up to a number as a heading; empty if there are none."""
    days = load_period(session_id, 1, last_seq)
    return f"Messages of {describe_days(*days)}:" if days else ""


def build_run_record(outcome: Outcome) -> dict[str, object]:
    """Return the fields of a CompactionRun that record an outcome."""
    return {
        "stages_used": list(outcome.stages_used),
        "tokens_before": outcome.tokens_before,
        "tokens_after": outcome.tokens_after,
        "messages_compacted": outcome.messages_compacted,
        "boundary_after": outcome.boundary_seq,
        "edits": _serialize_records(outcome.edits),
        "targets": _serialize_records(outcome.targets),
    }


def _serialize_records(
    records: Sequence[TranscriptEdit] | Sequence[MessageOutcome],
) -> list[dict[str, object]]:
    # Not `asdict`, which copies every value: there may be thousands of edits.
    names = [field.name for field in dataclasses.fields(records[0])] if records else []
    return [{name: getattr(record, name) for name in names} for record in records]


def skip_run(run: CompactionRun, reason: str, *, tokens: int | None = None) -> None:
    """End a run that changed nothing, with the reason. Raises RunLeaseLost."""
    reason = _leave_out_quotations(run, reason)
    payload: CompactionEndedPayload = {"run": str(run.pk), "reason": reason}
    with transaction.atomic():
        append_events(run.session_id, (EventType.COMPACTION_SKIPPED, payload))
        close_run(
            run,
            CompactionRun.Status.SKIPPED,
            reason=reason,
            tokens_before=tokens,
            tokens_after=tokens,
        )


def fail_run(
    run: CompactionRun, reason: str, context: SessionContext | None, *, tokens: int | None = None
) -> None:
    """End a run that could not be completed. Raises RunLeaseLost.

    The context stays as it was. Where it is over its threshold, requests are trimmed from now on,
    and the user is notified. The next automatic run waits, twice as long after each failure in a
    row (docs/origins.md, "FEAT-011, Failure Handling Rules").
    """
    trims_requests = context is not None and _should_trim_requests(context, tokens or 0)
    reason = _leave_out_quotations(run, reason)
    payload: CompactionEndedPayload = {"run": str(run.pk), "reason": reason}
    events: list[NewEvent] = [(EventType.COMPACTION_FAILED, payload)]
    if trims_requests and context is not None:
        fallback = context.policy.fallback
        if fallback.notify and not _was_trimming_announced(run):
            trimming: ContextTrimmedPayload = {"notice": fallback.notice, "run": str(run.pk)}
            events.append((EventType.CONTEXT_TRIMMED, trimming))
    with transaction.atomic():
        append_events(run.session_id, *events)
        status = CompactionRun.Status.FELL_BACK if trims_requests else CompactionRun.Status.FAILED
        close_run(
            run, status, error=reason, reason=reason, tokens_before=tokens, tokens_after=tokens
        )
        _record_failure(run, trims_requests=trims_requests)
    logger.warning("compaction run %s of session %s failed: %s", run.pk, run.session_id, reason)


def _leave_out_quotations(run: CompactionRun, reason: str) -> str:
    """Return why a run ended, in words that quote nothing if a message was deleted meanwhile."""
    forgets = CompactionRun.objects.filter(pk=run.pk, keeps_words=False).exists()
    return FORGOTTEN_TEXT if reason and forgets else reason


def _should_trim_requests(context: SessionContext, tokens: int) -> bool:
    is_over_threshold = context.budget is not None and context.budget.is_over(tokens)
    return (
        is_over_threshold and context.facts.is_automatic and context.policy.fallback.kind != "error"
    )


def _was_trimming_announced(run: CompactionRun) -> bool:
    """Return True when a request that did not wait for this run was trimmed and announced.

    The user knows of it then, and the failure of the run is no news.
    """
    session_state = load_session_state(run.session_id)
    return session_state.trimming and not session_state.failures


def announce_trimming(context: SessionContext) -> None:
    """Notify the user that requests are trimmed although no run has failed.

    This happens once until the next success, and not at all where the policy is silent.
    """
    session_id = context.facts.session_id
    fallback = context.policy.fallback
    with transaction.atomic():
        if fallback.notify:
            payload: ContextTrimmedPayload = {"notice": fallback.notice}
            append_events(session_id, (EventType.CONTEXT_TRIMMED, payload))
        SessionState.objects.update_or_create(session_id=session_id, defaults={"trimming": True})


def reset_failures(session_id: UUID) -> None:
    """Forget what earlier runs taught, so that automatic runs are no longer held back.

    Called when a run is requested by hand.
    """
    SessionState.objects.filter(pk=session_id).update(
        failures=0, not_before=None, fruitless=0, learned_for="", learned_window=None
    )


def close_run(run: CompactionRun, status: str, **fields: object) -> None:
    """Write the end of a run that is still claimed. Raises RunLeaseLost."""
    fields |= {
        "status": status,
        "finished_at": timezone.now(),
        "lease_until": None,
        "verification": run.verification,
    }
    for name, value in fields.items():
        setattr(run, name, value)
    if not leases.select_claimed_run(run).update(**fields):
        raise leases.RunLeaseLost
    transaction.on_commit(lambda: count_run(run))


def _build_applied_events(
    run: CompactionRun, context: SessionContext, outcome: Outcome
) -> list[NewEvent]:
    """Return the event of an applied run, and the notice of trimming if no summary was written."""
    # Each call of a model adds to these columns in the database, not in `run`.
    model, cost = CompactionRun.objects.values_list("model", "cost").get(pk=run.pk)
    applied = build_applied_payload(run, model=model, cost=None if cost is None else float(cost))
    events: list[NewEvent] = [(EventType.COMPACTION_APPLIED, applied)]
    fallback = context.policy.fallback
    if outcome.summary_error and not outcome.is_extract and fallback.notify:
        trimming: ContextTrimmedPayload = {"notice": fallback.notice, "run": str(run.pk)}
        events.append((EventType.CONTEXT_TRIMMED, trimming))
    return events


def build_applied_payload(
    run: CompactionRun, *, model: str = "", cost: float | None = None
) -> CompactionAppliedPayload:
    """Return the payload of `compaction.applied`."""
    return {
        "run": str(run.pk),
        "model": model,
        "summary_model": run.summary_model,
        "cost": cost,
        "targets_count": len(run.targets),
        "tokens_saved": run.tokens_saved,
        "messages_compacted": run.messages_compacted,
        "tokens_before": run.tokens_before,
        "tokens_after": run.tokens_after,
        "duration_ms": run.duration_ms,
        "stages_used": run.stages_used,
        "reason": run.reason,
    }


def _record_success(run: CompactionRun, context: SessionContext, outcome: Outcome) -> None:
    threshold = context.budget.threshold if context.budget else 0
    gained_tokens = outcome.tokens_before - outcome.tokens_after
    is_fruitless = gained_tokens < MIN_GAIN_RATIO * threshold
    is_manual = run.trigger == CompactionRun.Trigger.MANUAL
    session_state = load_session_state(run.session_id)
    has_no_summary = bool(outcome.summary_error)
    fields: dict[str, object] = {
        "fruitless": session_state.fruitless + 1 if is_fruitless and not is_manual else 0,
        "trimming": has_no_summary and _should_trim_requests(context, outcome.tokens_after),
    }
    if has_no_summary:
        fields |= _extend_wait(session_state)
    else:
        fields |= {"failures": 0, "not_before": None}
    _store_session_state(run, fields)


def delay_automatic_runs(run: CompactionRun) -> None:
    """Let the next automatic run of the session wait, as after a failure."""
    _store_session_state(run, _extend_wait(load_session_state(run.session_id)))


def _record_failure(run: CompactionRun, *, trims_requests: bool) -> None:
    session_state = load_session_state(run.session_id)
    fields = {"trimming": session_state.trimming or trims_requests, **_extend_wait(session_state)}
    _store_session_state(run, fields)


def _store_session_state(run: CompactionRun, fields: Mapping[str, object]) -> None:
    # Only these columns: a refusal may store its numbers (learned_*) in the same row at the same
    # moment, without the session's lock, and saving the whole row would bring back old ones.
    SessionState.objects.bulk_create(
        [SessionState(session_id=run.session_id, **fields)],
        update_conflicts=True,
        unique_fields=["session"],
        update_fields=list(fields),
    )


def _extend_wait(session_state: SessionState) -> dict[str, object]:
    """Return the fields that make the next automatic run wait, twice as long after each failure."""
    wait_seconds = min(
        LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(session_state.failures, 10)
    )
    return {
        "failures": session_state.failures + 1,
        "not_before": read_clock() + timedelta(seconds=wait_seconds),
    }


class RunProgress:
    """What was announced of a run: the part that is being summarized, and its text so far."""

    def __init__(self, run: CompactionRun) -> None:
        self.run = run
        self.part = 0
        self.parts = 1
        self._announced_chars: int | None = None

    def expect_parts(self, count: int) -> None:
        """Expect so many calls of a model from now on."""
        self.parts = self.part + max(1, count)

    def begin_part(self) -> None:
        """Begin the next part, which may be one more than was expected."""
        self.part += 1
        self.parts = max(self.parts, self.part)

    def begin_call(self) -> None:
        """Begin to write the part, once more if it is a retry."""
        self._announced_chars = None

    def report(self, text: str) -> None:
        """Announce the text so far, if there is news. Raises RunLeaseLost."""
        if not leases.select_claimed_run(self.run).exists():
            raise leases.RunLeaseLost
        if self._announced_chars is not None and len(text) == self._announced_chars:
            return
        offset = self._announced_chars or 0
        payload: CompactionProgressPayload = {
            "run": str(self.run.pk),
            "part": self.part,
            "parts": self.parts,
            "offset": offset,
            "text": text[offset:],
        }
        with transaction.atomic():
            append_events(self.run.session_id, (EventType.COMPACTION_PROGRESS, payload))
        self._announced_chars = len(text)
