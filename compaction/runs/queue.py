"""Asking for a run: what is wished for, and what becomes of it where the session has an open run already."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
from uuid import UUID

from django.db import IntegrityError, transaction

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.core.knobs import PolicyError
from compaction.core.policy import STAGES, Policy
from compaction.models import LARGEST_SEQ, CompactionRun, open_run_of
from compaction.runs import lifecycle
from compaction.sizing import session_context
from compaction.sizing.session_context import NoSuchSession, Situation


class Wishes(TypedDict, total=False):
    """What a run may be asked for with, instead of what its session says.

    `policy`: by its name; `overrides`: knobs over that policy, `{"trigger": {"threshold": 0.7}}`; `instructions`: what the summary should
    dwell on; `up_to_seq`: the last message to compact; `stages`: only these of the policy's.
    """

    policy: str | None
    overrides: Mapping[str, Any] | None
    instructions: str
    up_to_seq: int | None
    stages: Sequence[str]


class RunIsOpen(Exception):
    """The session has an open run that was asked for otherwise, so it cannot stand for this one; `run` is that run."""

    def __init__(self, run: CompactionRun) -> None:
        super().__init__(
            f"Compaction run {run.pk} is {run.status}; it was asked for otherwise. Ask again when it has ended."
        )
        self.run = run


def asked_for(session_id: UUID, *, trigger: str, wishes: Wishes) -> tuple[CompactionRun, bool]:
    """The run that answers a trigger, and whether it was made for it: two triggers make one run.

    An open run stands for a new one. While it is queued, a run that compacts in any case (by hand, after an overflow) takes an automatic
    one over, wishes and all. Raises RunIsOpen when a run by hand has wishes of its own that the open run does not share;
    UnknownPolicy, PolicyError, NoSuchSession.
    """
    if trigger == CompactionRun.Trigger.MANUAL:
        lifecycle.forgive(session_id)
    elif trigger not in CompactionRun.FORCED and (existing := open_run_of(session_id)):
        return existing, False
    run = _drafted(session_id, trigger, wishes)
    while True:
        existing = open_run_of(session_id)
        if existing is None:
            if _inserted(run):
                return run, True
        elif taken := _joined(existing, run, own_wishes=any(wishes.values())):
            return taken, False


def standing(session_id: UUID, wishes: Wishes) -> Situation:
    """How the session stands under the policy that is wished for. Raises NoSuchSession, UnknownPolicy, PolicyError."""
    name, overrides = wishes.get("policy"), wishes.get("overrides")
    now = session_context.of(session_id, policy=(name, policies.named(name)) if name else None)
    if now is not None and overrides:
        now = session_context.of(
            session_id, policy=(now.policy_name, Policy.parse(overrides, now.policy))
        )
    if now is None:
        raise NoSuchSession(str(session_id))
    _refuse_unknown(wishes.get("stages", ()), now.policy)
    up_to = wishes.get("up_to_seq")
    if up_to is not None and not 1 <= up_to <= LARGEST_SEQ:
        raise PolicyError("up_to_seq", f"must be the number of a message, not {up_to}")
    return now


def _drafted(session_id: UUID, trigger: str, wishes: Wishes) -> CompactionRun:
    now = standing(session_id, wishes)
    return CompactionRun(
        session_id=session_id,
        trigger=trigger,
        policy=now.policy_name,
        policy_snapshot=now.policy.as_dict(),
        instructions=wishes.get("instructions", ""),
        up_to_seq=wishes.get("up_to_seq"),
        only_stages=list(wishes.get("stages", ())),
        model=now.subject.summary_model,
    )


def _refuse_unknown(stages: Sequence[str], policy: Policy) -> None:
    for stage in stages:
        if stage not in STAGES:
            raise PolicyError(
                "stages", f"there is no stage {stage!r}; there are {', '.join(STAGES)}"
            )
        if stage not in policy.stages:
            raise PolicyError(
                "stages", f"the policy has no stage {stage!r}; it has {', '.join(policy.stages)}"
            )


def _inserted(run: CompactionRun) -> bool:
    """False where an open one was there first."""
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        if backend_registry.get().subject(run.session_id) is None:
            raise NoSuchSession(str(run.session_id)) from None
        return False  # if that one has ended since, ours may be inserted next
    return True


WISHED = (
    "trigger",
    "policy",
    "policy_snapshot",
    "instructions",
    "up_to_seq",
    "only_stages",
    "model",
)


def _joined(
    existing: CompactionRun, asked: CompactionRun, *, own_wishes: bool
) -> CompactionRun | None:
    """The open run as the one asked for. None when it moved on meanwhile; raises RunIsOpen when it cannot be."""
    if existing.status == CompactionRun.Status.QUEUED and asked.forced and not existing.forced:
        queued = CompactionRun.objects.filter(pk=existing.pk, status=CompactionRun.Status.QUEUED)
        taken_over = queued.update(**{name: getattr(asked, name) for name in WISHED})
        return CompactionRun.objects.filter(pk=existing.pk).first() if taken_over else None
    if own_wishes and asked.trigger == CompactionRun.Trigger.MANUAL and not _alike(existing, asked):
        raise RunIsOpen(existing)
    return existing


def _alike(existing: CompactionRun, asked: CompactionRun) -> bool:
    return existing.forced and all(
        getattr(existing, name) == getattr(asked, name) for name in WISHED[1:-1]
    )
