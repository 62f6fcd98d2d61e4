"""Install the summary of a program that compacts its conversation by itself, as an applied run."""

from collections.abc import Mapping

from django.utils import timezone

from chatcore.context.live_messages import count_early_messages
from chatcore.context.revisions import install_revision
from chatcore.events.log import append_events
from chatcore.events.types import EventType
from chatcore.models import ContextRevision, Session
from compaction.core.systems import describe_traits
from compaction.models import CompactionRun, SessionState
from compaction.runs.lifecycle import (
    build_applied_payload,
    build_started_payload,
    count_run,
    describe_memories,
    describe_period,
)
from compaction.sessions import request_size
from compaction.sessions.background import render_background
from compaction.sessions.session_context import SessionContext, load_session_context

STAGE = "client_summary"


def install_client_summary(
    *, session: Session, summary: str, boundary_seq: int, mark: Mapping[str, str], **_: object
) -> None:
    """Send a client's summary in place of the messages before a boundary, and record it.

    No model is called. `mark` is stored in the placement of the revision. The caller holds the lock
    of the session's row.
    """
    context = load_session_context(session.pk)
    if context is None:
        return
    now = timezone.now()
    run = CompactionRun(
        session_id=session.pk,
        owner_id=session.owner_id,
        trigger=CompactionRun.Trigger.BY_CLIENT,
        status=CompactionRun.Status.APPLIED,
        policy=context.policy_name,
        stages_used=[STAGE],
        started_at=now,
        finished_at=now,
        announced=True,
        tokens_before=request_size.measure_next_request(context).tokens,
        messages_compacted=_count_replaced_messages(context, boundary_seq),
        boundary_before=context.facts.live.boundary_seq,
        boundary_after=boundary_seq,
        version_before=context.facts.live.version,
    )
    revision = install_revision(
        session.pk,
        base_version=context.facts.live.version,
        summary=summary,
        boundary_seq=boundary_seq,
        background=render_background(context, boundary_seq=boundary_seq),
        placement=_build_placement(context, boundary_seq) | dict(mark),
        source=ContextRevision.Source.COMPACTION,
        run=str(run.pk),
    )
    run.version_after = revision.version
    run.state_after = describe_memories(session.pk)
    new_context = load_session_context(session.pk)
    if new_context is not None:
        run.tokens_after = request_size.measure_next_request(new_context).tokens
    run.save(force_insert=True)
    # What an earlier refusal or failure held back is smaller now.
    SessionState.objects.filter(session=session.pk).update(
        failures=0, not_before=None, fruitless=0, trimming=False
    )
    count = run.messages_compacted
    append_events(
        session.pk,
        (EventType.COMPACTION_STARTED, build_started_payload(run, count, targets=count)),
        (EventType.COMPACTION_APPLIED, build_applied_payload(run)),
    )
    count_run(run)


def _build_placement(context: SessionContext, boundary_seq: int) -> dict[str, str]:
    traits = describe_traits(context.policy)
    placement = {
        "place": traits.place,
        "heading": traits.heading,
        "period": describe_period(context.facts.session_id, boundary_seq - 1),
        "nudge": traits.nudge,
    }
    return {name: value for name, value in placement.items() if value}


def _count_replaced_messages(context: SessionContext, boundary_seq: int) -> int:
    session_id, boundary_before = context.facts.session_id, context.facts.live.boundary_seq
    early_count = count_early_messages(session_id, boundary_before) if boundary_before else 0
    return max(0, count_early_messages(session_id, boundary_seq) - early_count)
