"""Decide which worker holds a run: claim it, keep its lease, and notice when it is lost.

All machines share one line of runs that wait. Leases are measured by the clock of the database,
because those of two machines differ.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from uuid import UUID

from django.db import close_old_connections, connection, transaction
from django.db.models import Case, F, IntegerField, Min, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Now

from chatcore.base.threads import repeat_beside
from compaction import policies
from compaction.core.knobs import PolicyError
from compaction.core.presets import ONECLAW
from compaction.models import OPEN_STATUSES, CompactionRun
from compaction.policies import Flow
from models_registry.models import Provider

logger = logging.getLogger(__name__)

LEASE_SECONDS = 30  # without a sign of life; a policy may ask for less
RENEWALS_PER_LEASE = 3
MAX_ATTEMPTS = 20  # claims of a run that ended neither well nor with a death
CLAIM_LOCK = "compaction line"


class RunLeaseLost(Exception):
    """Another worker has claimed the run, or it was ended: nothing more may be written."""


def claim_run(run_id: UUID | str, *, obey_limits: bool = False) -> CompactionRun | None:
    """Claim a queued run, or one whose lease has ended. Return None when it cannot be claimed.

    Of several callers at the same moment at most one gets the run. With `obey_limits` it is not
    claimed either while its policy or its provider has no place left.
    """
    run = CompactionRun.objects.filter(pk=run_id, status__in=OPEN_STATUSES).first()
    if run is None:
        return None
    with transaction.atomic():
        if obey_limits:
            _lock_claims()
            runs = CompactionRun.objects.filter(pk=run.pk)
            if not _pass_over_full(runs, _list_executing_kinds(without=run.pk)).exists():
                return None
        if not _write_claim(run):
            return None
    return _load_claimed_run(run)


def claim_next_run(note_claim: Callable[[str], object]) -> CompactionRun | None:
    """Claim the run whose turn it is. Return None when no run waits, or none finds a place.

    `note_claim` is called with the run's id before another process can see the claim.
    """
    if not _select_due_runs().exists():
        return None
    with transaction.atomic():
        _lock_claims()
        run = find_next_run()
        # Another process may claim this run by its id, without waiting in the queue.
        while run is not None and not _write_claim(run):
            run = find_next_run()
        if run is None:
            return None
        note_claim(str(run.pk))
    return _load_claimed_run(run)


def find_next_run() -> CompactionRun | None:
    """Return the run whose turn it is; None when none waits, or none finds a place.

    The owners with the fewest runs being executed come first, then the one that was served longest
    ago, and of an owner's runs the oldest.
    """
    if not _select_due_runs().exists():
        return None
    executing = _list_executing_kinds()
    claimable_runs = _pass_over_full(_select_due_runs(), executing)
    owner_counts = Counter(owner for owner, _, _ in executing if owner is not None)
    counts = [When(owner=owner, then=count) for owner, count in owner_counts.items()]
    served = CompactionRun.objects.filter(owner=OuterRef("owner"), started_at__isnull=False)
    last_served = served.order_by("-started_at").values("started_at")[:1]
    owners = claimable_runs.order_by().values("owner").annotate(oldest=Min("created_at"))
    # In a second step: in the first, the runs would be grouped by these too, one by one.
    owners = owners.annotate(
        executing=Case(*counts, default=0, output_field=IntegerField()),
        served_at=Subquery(last_served),
    )
    turn = owners.order_by("executing", F("served_at").asc(nulls_first=True), "oldest").first()
    if turn is None:
        return None
    runs = claimable_runs.filter(owner=turn["owner"], created_at=turn["oldest"])
    return runs.order_by("id").first()


def count_claimable_runs(*, up_to: int) -> int:
    """Return for how many waiting runs a place is free, at most `up_to`."""
    if not _select_due_runs().exists():
        return 0
    claimable_runs = _pass_over_full(_select_due_runs(), _list_executing_kinds())
    return len(claimable_runs.values_list("pk")[:up_to])


def _lock_claims() -> None:
    """Keep other processes from choosing or counting until the transaction ends.

    Two who count at the same time would both find the last free place. On SQLite the transaction
    holds the whole database anyway. No other lock is held here, so this cannot cause a deadlock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [CLAIM_LOCK])


def _select_due_runs() -> QuerySet[CompactionRun]:
    # A run that is to be tried later is queued with a lease, and in line again when that is over.
    is_due = Q(lease_until=None) | Q(lease_until__lte=Now())
    return CompactionRun.objects.filter(is_due, status=CompactionRun.Status.QUEUED)


def _list_executing_kinds(*, without: UUID | None = None) -> list[tuple[object, str, str]]:
    """Return owner, policy and provider of each run that is executed, on all machines."""
    runs = CompactionRun.objects.filter(status=CompactionRun.Status.RUNNING, lease_until__gt=Now())
    if without is not None:
        runs = runs.exclude(pk=without)
    return list(runs.order_by().values_list("owner_id", "policy", "provider"))


def _pass_over_full(
    runs: QuerySet[CompactionRun], executing: list[tuple[object, str, str]]
) -> QuerySet[CompactionRun]:
    """Leave out runs whose policy (`flow.workers`) or provider (`compaction_places`) is full."""
    for policy, count in Counter(policy for _, policy, _ in executing).items():
        runs = runs.exclude(policy=policy, places__lte=count)
    providers = Counter(provider for _, _, provider in executing if provider)
    if providers:
        limits = _load_places(providers)
        full = [name for name, limit in limits.items() if providers[name] >= limit]
        runs = runs.exclude(provider__in=full)
    return runs


def _load_places(providers: Collection[str]) -> Mapping[str, int]:
    """Return how many runs each provider takes at once, its option; left out: any number."""
    rows = Provider.objects.filter(name__in=providers).values_list("name", "options")
    return {
        name: options["compaction_places"]
        for name, options in rows
        if options.get("compaction_places")
    }


def _write_claim(run: CompactionRun) -> bool:
    """Write the claim of a run as it was read. Return False if another process was faster.

    The condition on `attempts` makes this UPDATE the claim: the second process matches no row.
    The number it writes is the fence that each later write of this claim checks.
    """
    claimable_run = _select_claimable_run(run).filter(attempts=run.attempts)
    return bool(
        claimable_run.update(
            status=CompactionRun.Status.RUNNING,
            attempts=run.attempts + 1,
            # A run that is given back is queued. One that still runs was left by a dead worker.
            deaths=F("deaths") + int(run.status == CompactionRun.Status.RUNNING),
            started_at=Coalesce("started_at", Now()),
            lease_until=Now() + timedelta(seconds=_choose_lease(run)),
        )
    )


def _load_claimed_run(run: CompactionRun) -> CompactionRun | None:
    """Return a run as it is after its claim, with the fence that the claim itself wrote.

    `run` is as it was read before. If the new lease is over by now, the row may already hold the
    number of another worker's claim. With that number, both would write.
    """
    claimed_run = CompactionRun.objects.filter(pk=run.pk).first()
    if claimed_run is not None:
        claimed_run.attempts = run.attempts + 1
    return claimed_run


def find_abandoned_runs() -> list[UUID]:
    """Return the running runs whose lease is over."""
    running_runs = CompactionRun.objects.filter(status=CompactionRun.Status.RUNNING)
    return [run.pk for run in running_runs if _select_claimable_run(run).exists()]


def give_back(
    run_id: UUID | str,
    *,
    attempts: int | None = None,
    rest: timedelta | None = None,
    reason: str = "",
) -> bool:
    """Queue a running run again that no worker executes any more, although none has died.

    With `attempts`, only if that claim still holds. With `rest` no worker takes it for so long, and
    with a `reason` besides no process does (`is_resting`). Returns whether it was running.
    """
    running_run = CompactionRun.objects.filter(pk=run_id, status=CompactionRun.Status.RUNNING)
    if attempts is not None:
        running_run = running_run.filter(attempts=attempts)
    lease_until = None if rest is None else Now() + rest
    fields = {"status": CompactionRun.Status.QUEUED, "lease_until": lease_until, "reason": reason}
    return bool(running_run.update(**fields))


def is_resting(run_id: UUID | str) -> bool:
    """Return whether a run waits for a busy provider, by the database's clock.

    Another queued run has no reason yet.
    """
    return CompactionRun.objects.filter(_is_resting(), pk=run_id).exists()


def _is_resting() -> Q:
    return Q(status=CompactionRun.Status.QUEUED, lease_until__gt=Now()) & ~Q(reason="")


def take_from_dead(run_id: UUID | str) -> bool:
    """Queue a run again whose worker has died, and count the death. Return whether it was running.

    The worker's next write is conditional on its claim: if it lives after all, it writes nothing.
    """
    running_run = CompactionRun.objects.filter(pk=run_id, status=CompactionRun.Status.RUNNING)
    return bool(
        running_run.update(
            status=CompactionRun.Status.QUEUED, deaths=F("deaths") + 1, lease_until=None
        )
    )


def has_exhausted_attempts(run: CompactionRun) -> bool:
    """Return True when as many workers died over a run as its policy allows it attempts.

    Then the run itself may be the reason. One that is given back again and again also ends.
    """
    return run.deaths >= _load_flow(run).attempts or run.attempts > MAX_ATTEMPTS


def is_ended(run: CompactionRun) -> bool:
    """Return True if this claim has brought the run to its end."""
    ended_runs = CompactionRun.objects.exclude(status__in=OPEN_STATUSES)
    return ended_runs.filter(pk=run.pk, attempts=run.attempts).exists()


def select_claimed_run(run: CompactionRun) -> QuerySet[CompactionRun]:
    """Return a query for the run's row that matches nothing once this claim has been lost."""
    return CompactionRun.objects.filter(
        pk=run.pk, status=CompactionRun.Status.RUNNING, attempts=run.attempts
    )


def keep_lease(run: CompactionRun) -> AbstractContextManager[None]:
    """Extend the lease beside a block, however long a model takes."""
    seconds = _choose_lease(run)

    def renew() -> None:
        select_claimed_run(run).update(lease_until=Now() + timedelta(seconds=seconds))

    return repeat_beside(renew, seconds=seconds / RENEWALS_PER_LEASE, name=f"lease-{run.pk}")


def wait_while_claimed(
    run: CompactionRun, seconds: float, *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait before the next call of a run. Raise RunLeaseLost if the claim was lost meanwhile.

    No database connection is held while it waits, because other threads may need it.
    """
    close_old_connections()
    sleep(seconds)
    if not select_claimed_run(run).exists():
        raise RunLeaseLost


def _select_claimable_run(run: CompactionRun) -> QuerySet[CompactionRun]:
    """Return a query for the run that matches it when it is queued, or when its lease is over.

    No lease is longer than the policy's. One that seems to be was written while a clock was wrong.
    """
    longest = timedelta(seconds=2 * _load_flow(run).lease_seconds)
    is_over = Q(lease_until__lte=Now()) | Q(lease_until__gt=Now() + longest)
    is_queued = Q(status=CompactionRun.Status.QUEUED)
    return CompactionRun.objects.filter(
        is_queued | Q(is_over, status=CompactionRun.Status.RUNNING), pk=run.pk
    ).exclude(_is_resting())


def _choose_lease(run: CompactionRun) -> int:
    return min(_load_flow(run).lease_seconds, LEASE_SECONDS)


def _load_flow(run: CompactionRun) -> Flow:
    try:
        return policies.read_flow(policies.parse_policy_snapshot(run.policy_snapshot))
    except PolicyError:
        # The snapshot was stored by another release. Executing the run will report that.
        return policies.read_flow(ONECLAW)
