"""Request a run: insert its row, or use the session's open run if that does what is requested."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import ceil
from typing import TypedDict
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from chatcore.accounts.spending import check_call
from chatcore.models import Session
from compaction import policies
from compaction.core.knobs import PolicyError
from compaction.core.policy import STAGES, Policy
from compaction.models import MAX_SEQ, CompactionRun, find_open_run
from compaction.runs import lifecycle, tasks
from compaction.sessions import session_context
from compaction.sessions.fingerprint import compute_fingerprint
from compaction.sessions.session_context import NoSuchSession, SessionContext
from compaction.sessions.source_messages import lock_session

Status = CompactionRun.Status
MAX_FAILURES = 3
MEMORY = timedelta(hours=1)  # a provider may work again although nothing has changed here

OPTION_FIELDS = (
    "policy",
    "policy_snapshot",
    "instructions",
    "up_to_seq",
    "only_stages",
    "from_version",
    "summary_model",
)
KIND_FIELDS = ("provider", "places")
MAX_PLACES = 10_000  # more than machines have


class TooManyRuns(Exception):
    """The user has asked for too many runs; `retry_after` is the number of seconds to wait."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"Too many compactions by hand. Try again in {ceil(retry_after)} seconds.")
        self.retry_after = retry_after


def use_allowance(session_id: UUID, *, user_pk: object = None) -> None:
    """Count a run by hand, of this user or else of the session's owner.

    Raises TooManyRuns, and CallRefused if the owner may spend nothing more; then none is counted.
    """
    owners = Session.objects.filter(pk=session_id).values_list("owner_id", flat=True)
    owner_pk = owners.first()
    check_call(owner_pk)
    # Imported here: a worker counts none, and need not load what REST needs.
    from chatcore.base.rest.turn_rate import count_compaction

    counted_pk = user_pk or owner_pk
    wait_seconds = None if counted_pk is None else count_compaction(counted_pk)
    if wait_seconds is not None:
        raise TooManyRuns(wait_seconds)


def describe_basis(context: SessionContext, options: Mapping[str, object]) -> str:
    """Return a fingerprint of all that decides how a run ends, apart from the model's mood."""
    facts = context.facts
    parts = [
        facts.live.version,
        facts.last_seq,
        facts.message_count,
        facts.model.name,
        facts.model.summary_model,
        facts.model.window,
        context.policy.to_dict(),
        {name: value for name, value in options.items() if value},
    ]
    return compute_fingerprint(json.dumps(parts, sort_keys=True, default=str))


def find_repeated_failure(run: CompactionRun) -> str:
    """Return why a run by hand would fail as the ones before; an empty text if it may succeed."""
    if not run.basis:
        return ""
    earlier_runs = CompactionRun.objects.filter(
        session_id=run.session_id, basis=run.basis, created_at__gt=Now() - MEMORY
    )
    ended_runs = earlier_runs.exclude(pk=run.pk).exclude(status=Status.SKIPPED)
    newest_runs = list(ended_runs.order_by("-created_at")[:MAX_FAILURES])
    has_failed = [earlier.status in (Status.FAILED, Status.FELL_BACK) for earlier in newest_runs]
    if len(has_failed) < MAX_FAILURES or not all(has_failed):
        return ""
    return (
        f"It failed {MAX_FAILURES} times, and nothing has changed since: {newest_runs[0].reason} "
        "Other instructions, another policy or another model can help; so may an hour."
    )


class RunOptions(TypedDict, total=False):
    """What a request for a run may set differently from its session.

    `policy` is the name of a policy. `overrides` are knobs that replace some of that policy's, such
    as `{"trigger": {"threshold": 0.7}}`. `instructions` say what the summary should give attention
    to. `up_to_seq` is the last message to compact. `stages` names the policy's stages to run.
    `from_version` is the version of the context to begin from; what came after it is replaced.
    `summary_model` is the full name of the model that writes this run's summary.
    """

    policy: str | None
    overrides: Mapping[str, object] | None
    instructions: str
    up_to_seq: int | None
    from_version: int | None
    stages: Sequence[str]
    summary_model: str


class RunConflict(Exception):
    """The session's open run has other options than the requested one; `run` is the open run."""

    def __init__(self, run: CompactionRun) -> None:
        super().__init__(
            f"Compaction run {run.pk} is {run.status} and has other options. Try again when it "
            "has ended."
        )
        self.run = run


def find_or_create_run(
    session_id: UUID, *, trigger: str, options: RunOptions
) -> tuple[CompactionRun, bool]:
    """Return the run that answers a trigger, and whether it is a new one.

    A session has at most one open run, which answers later triggers as well. While it is queued, a
    run that compacts in any case (by hand, or after an overflow) replaces the options of an
    automatic one by its own. Raises RunConflict when a run by hand has options that the open run
    does not share; UnknownPolicy, PolicyError and NoSuchSession.
    """
    if trigger == CompactionRun.Trigger.MANUAL:
        lifecycle.reset_failures(session_id)
    elif trigger not in CompactionRun.FORCED_TRIGGERS and (open_run := find_open_run(session_id)):
        return open_run, False
    run = _build_run(session_id, trigger, options)
    has_options = any(value not in (None, "", ()) for value in options.values())
    # Between the query and the write another process may end the open run or insert one of its
    # own. Both are noticed, and then the question is asked again.
    while True:
        open_run = find_open_run(session_id)
        if open_run is None:
            if _insert_run(run):
                return run, True
            continue
        joined_run = _join_open_run(open_run, run, has_options=has_options)
        if joined_run is not None:
            return joined_run, False


def load_run_context(session_id: UUID, options: RunOptions) -> SessionContext:
    """Return the session's context under the policy that the options ask for.

    Raises NoSuchSession, UnknownPolicy and PolicyError.
    """
    policy_name = options.get("policy")
    named_policy = (policy_name, policies.load_policy(policy_name)) if policy_name else None
    context = session_context.load_session_context(session_id, policy=named_policy)
    overrides = options.get("overrides")
    if context is not None and overrides:
        policy = Policy.parse(overrides, context.policy)
        context = session_context.load_session_context(
            session_id, policy=(context.policy_name, policy)
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
    summary_model = options.get("summary_model", "")
    return CompactionRun(
        session_id=session_id,
        owner_id=context.facts.owner_pk,
        trigger=trigger,
        policy=context.policy_name,
        provider=_find_provider(context, summary_model),
        places=min(policies.read_flow(context.policy).workers, MAX_PLACES),
        policy_snapshot=context.policy.to_dict(),
        instructions=options.get("instructions", ""),
        up_to_seq=options.get("up_to_seq"),
        from_version=options.get("from_version"),
        only_stages=list(options.get("stages", ())),
        summary_model=summary_model,
        model=summary_model or context.facts.model.summary_model,
        basis=describe_basis(context, options),
    )


def _find_provider(context: SessionContext, chosen_model: str) -> str:
    """Return the provider whose model is to write the summary.

    A model that the policy names and that cannot write is found, and reported, when the run begins.
    """
    named_model = context.policy.summary.model
    model = context.facts.model.summary_model if named_model == "same" else named_model
    model = chosen_model or model
    return model.partition("/")[0] if "/" in model else ""


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
    """Insert the run. Return False when the session had an open one after all.

    Under the session's lock: two triggers often meet, and the unique constraint, which would settle
    it as well, makes PostgreSQL log an error each time.
    """
    with transaction.atomic():
        if not lock_session(run.session_id):
            raise NoSuchSession(str(run.session_id))
        if find_open_run(run.session_id) is not None:
            return False
        run.save(force_insert=True)
    return True


def _join_open_run(
    open_run: CompactionRun, new_run: CompactionRun, *, has_options: bool
) -> CompactionRun | None:
    """Return the open run if it does what the new one would; None if it changed meanwhile.

    Raises RunConflict if it cannot.
    """
    is_queued = open_run.status == CompactionRun.Status.QUEUED
    if is_queued and new_run.is_forced and not open_run.is_forced:
        return _take_over_queued_run(open_run, new_run)
    is_manual = new_run.trigger == CompactionRun.Trigger.MANUAL
    if has_options and is_manual and not _has_same_options(open_run, new_run):
        raise RunConflict(open_run)
    return open_run


def _take_over_queued_run(open_run: CompactionRun, new_run: CompactionRun) -> CompactionRun | None:
    # The condition on the status keeps this from changing a run that a worker has just claimed.
    queued_run = CompactionRun.objects.filter(pk=open_run.pk, status=CompactionRun.Status.QUEUED)
    names = ("trigger", "model", "basis", *KIND_FIELDS, *OPTION_FIELDS)
    fields = {name: getattr(new_run, name) for name in names}
    # The reason is that of a rest, which a provider has asked for. Another model need not rest.
    is_same_model = open_run.model == new_run.model
    rest = {} if is_same_model else {"reason": "", "lease_until": None}
    if not queued_run.update(**fields, **rest):
        return None
    # It may be of another kind now, which waits for other places.
    transaction.on_commit(lambda: tasks.send_run(open_run.pk), robust=True)
    return CompactionRun.objects.filter(pk=open_run.pk).first()


def _has_same_options(open_run: CompactionRun, new_run: CompactionRun) -> bool:
    return open_run.is_forced and all(
        getattr(open_run, name) == getattr(new_run, name) for name in OPTION_FIELDS
    )
