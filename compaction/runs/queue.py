"""Asking for a run: what is wished for, and what becomes of it where the session has an open run already."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
from uuid import UUID

from django.db import IntegrityError, transaction

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.core.knobs import PolicyError
from compaction.core.policy import STAGES, Policy
from compaction.models import MAX_SEQ, CompactionRun, find_open_run
from compaction.runs import lifecycle
from compaction.sizing import session_context
from compaction.sizing.session_context import NoSuchSession, SessionContext


class RunOptions(TypedDict, total=False):
    """What a run may be asked for with, instead of what its session says.

    `policy`: by its name; `overrides`: knobs over that policy, `{"trigger": {"threshold": 0.7}}`; `instructions`: what the summary should
    dwell on; `up_to_seq`: the last message to compact; `stages`: only these of the policy's.
    """

    policy: str | None
    overrides: Mapping[str, Any] | None
    instructions: str
    up_to_seq: int | None
    stages: Sequence[str]


class RunConflict(Exception):
    """The session has an open run that was asked for otherwise, so it cannot stand for this one; `run` is that run."""

    def __init__(self, run: CompactionRun) -> None:
        super().__init__(
            f"Compaction run {run.pk} is {run.status}; it was asked for otherwise. Ask again when it has ended."
        )
        self.run = run


def find_or_create_run(
    session_id: UUID, *, trigger: str, options: RunOptions
) -> tuple[CompactionRun, bool]:
    """The run that answers a trigger, and whether it was made for it: two triggers make one run.

    An open run stands for a new one. While it is queued, a run that compacts in any case (by hand, after an overflow) takes an automatic
    one over, wishes and all. Raises RunIsOpen when a run by hand has wishes of its own that the open run does not share;
    UnknownPolicy, PolicyError, NoSuchSession.
    """
    if trigger == CompactionRun.Trigger.MANUAL:
        lifecycle.reset_failures(session_id)
    elif trigger not in CompactionRun.FORCED_TRIGGERS and (open_run := find_open_run(session_id)):
        return open_run, False
    run = _build_run(session_id, trigger, options)
    while True:
        open_run = find_open_run(session_id)
        if open_run is None:
            if _insert_run(run):
                return run, True
        elif matching_run := _join_open_run(open_run, run, has_options=any(options.values())):
            return matching_run, False


def load_run_context(session_id: UUID, options: RunOptions) -> SessionContext:
    """How the session stands under the policy that is wished for. Raises NoSuchSession, UnknownPolicy, PolicyError."""
    policy_name, overrides = options.get("policy"), options.get("overrides")
    context = session_context.load_session_context(
        session_id, policy=(policy_name, policies.load_policy(policy_name)) if policy_name else None
    )
    if context is not None and overrides:
        context = session_context.load_session_context(
            session_id, policy=(context.policy_name, Policy.parse(overrides, context.policy))
        )
    if context is None:
        raise NoSuchSession(str(session_id))
    _refuse_unknown_stages(options.get("stages", ()), context.policy)
    up_to_seq = options.get("up_to_seq")
    if up_to_seq is not None and not 1 <= up_to_seq <= MAX_SEQ:
        raise PolicyError("up_to_seq", f"must be the number of a message, not {up_to_seq}")
    return context


def _build_run(session_id: UUID, trigger: str, options: RunOptions) -> CompactionRun:
    context = load_run_context(session_id, options)
    return CompactionRun(
        session_id=session_id,
        trigger=trigger,
        policy=context.policy_name,
        policy_snapshot=context.policy.to_dict(),
        instructions=options.get("instructions", ""),
        up_to_seq=options.get("up_to_seq"),
        only_stages=list(options.get("stages", ())),
        model=context.facts.summary_model,
    )


def _refuse_unknown_stages(stages: Sequence[str], policy: Policy) -> None:
    for stage in stages:
        if stage not in STAGES:
            raise PolicyError(
                "stages", f"there is no stage {stage!r}; there are {', '.join(STAGES)}"
            )
        if stage not in policy.stages:
            raise PolicyError(
                "stages", f"the policy has no stage {stage!r}; it has {', '.join(policy.stages)}"
            )


def _insert_run(run: CompactionRun) -> bool:
    """False where an open one was there first."""
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        if backend_registry.get_backend().load_session_facts(run.session_id) is None:
            raise NoSuchSession(str(run.session_id)) from None
        return False  # if that one has ended since, ours may be inserted next
    return True


OPTION_FIELDS = (
    "trigger",
    "policy",
    "policy_snapshot",
    "instructions",
    "up_to_seq",
    "only_stages",
    "model",
)


def _join_open_run(
    open_run: CompactionRun, new_run: CompactionRun, *, has_options: bool
) -> CompactionRun | None:
    """The open run as the one asked for. None when it moved on meanwhile; raises RunIsOpen when it cannot be."""
    if (
        open_run.status == CompactionRun.Status.QUEUED
        and new_run.is_forced
        and not open_run.is_forced
    ):
        queued_runs = CompactionRun.objects.filter(
            pk=open_run.pk, status=CompactionRun.Status.QUEUED
        )
        row_count = queued_runs.update(**{name: getattr(new_run, name) for name in OPTION_FIELDS})
        return CompactionRun.objects.filter(pk=open_run.pk).first() if row_count else None
    if (
        has_options
        and new_run.trigger == CompactionRun.Trigger.MANUAL
        and not _has_same_options(open_run, new_run)
    ):
        raise RunConflict(open_run)
    return open_run


def _has_same_options(open_run: CompactionRun, new_run: CompactionRun) -> bool:
    return open_run.is_forced and all(
        getattr(open_run, name) == getattr(new_run, name) for name in OPTION_FIELDS[1:-1]
    )
