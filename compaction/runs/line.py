"""Choose whose run is executed next, over all machines.

The owners with the fewest runs being executed come first, then the one that was served longest ago,
and of an owner's runs the oldest. A run for which its policy (`flow.workers`) or its provider
(`compaction_places`) has no place left is passed over.

The choice is made among the rows of OwnerTurn, which are few. `is_waiting` is a hint: it is set
after the run's row is committed, and taken back under a lock of its row and only while no such run
waits. So a waiting run without the hint cannot come about, except when a process dies between the
two commits; the sweep sets it then.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from compaction.backends import registry as backend_registry
from compaction.models import CompactionRun, OwnerTurn

KIND = ("owner_id", "policy", "provider", "places")
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MAX_KINDS = 16  # of one owner's runs that are compared at once; the others wait for these
BATCH_ROWS = 500  # written in one transaction
LINE_LOCK = "compaction line"
REST = timedelta(days=1)  # whoever was not served for so long counts as never served


@dataclass(frozen=True)
class TakenPlaces:
    """What is being executed on all machines at this moment."""

    owners: Counter[Any]
    policies: Counter[str]
    full_providers: frozenset[str]

    def select_free(self) -> Q:
        """Return the condition under which a run or a turn finds a place."""
        condition = Q()
        for policy, count in self.policies.items():
            condition &= ~Q(policy=policy, places__lte=count)
        if self.full_providers:
            condition &= ~Q(provider__in=self.full_providers)
        return condition


def enter_line() -> None:
    """Let nobody else choose or count until the transaction ends.

    Two who count at the same time would both find the last free place. On SQLite the transaction
    holds the whole database anyway. No other lock is held here, so this cannot cause a deadlock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [LINE_LOCK])


def count_taken_places(*, without: UUID | None = None) -> TakenPlaces:
    """Count the runs that are being executed; `without` is one that does not count."""
    rows = CompactionRun.objects.filter(
        status=CompactionRun.Status.RUNNING, lease_until__gt=Now()
    ).order_by()
    if without is not None:
        rows = rows.exclude(pk=without)
    kinds = list(rows.values_list("owner_id", "policy", "provider"))
    providers = Counter(provider for _, _, provider in kinds if provider)
    limits = backend_registry.get_backend().load_places(providers) if providers else {}
    return TakenPlaces(
        owners=Counter(owner for owner, _, _ in kinds),
        policies=Counter(policy for _, policy, _ in kinds),
        full_providers=frozenset(
            name for name, limit in limits.items() if providers[name] >= limit
        ),
    )


def has_place(run: CompactionRun) -> bool:
    """Return True if the run may begin beside all others. Call it after `enter_line`."""
    taken_places = count_taken_places(without=run.pk)
    return CompactionRun.objects.filter(taken_places.select_free(), pk=run.pk).exists()


def is_empty() -> bool:
    """Return True if surely no run waits for a worker."""
    return not OwnerTurn.objects.filter(is_waiting=True).exists()


def count_claimable_kinds(*, up_to: int) -> int:
    """Return for how many kinds of waiting runs a place is free, at most `up_to`."""
    if is_empty():
        return 0
    turns = OwnerTurn.objects.filter(count_taken_places().select_free(), is_waiting=True)
    return len(turns.values_list("pk")[:up_to])


def choose_run() -> CompactionRun | None:
    """Return the run whose turn it is, its row locked. Call it after `enter_line`."""
    taken_places = count_taken_places()
    tried_ids: set[int] = set()
    while True:
        turns = OwnerTurn.objects.filter(taken_places.select_free(), is_waiting=True)
        first_turn = _find_first_turn(turns.exclude(pk__in=tried_ids), taken_places.owners)
        if first_turn is None:
            return None
        # A lock of these rows: whoever puts a run in line waits, so the hint can be taken back.
        owners_turns = list(
            turns.filter(owner=first_turn.owner_id).select_for_update().order_by("pk")[:MAX_KINDS]
        )
        tried_ids.update(turn.pk for turn in (first_turn, *owners_turns))
        runs = [run for turn in owners_turns if (run := _find_oldest_run(turn)) is not None]
        if runs:
            return min(runs, key=lambda run: (run.created_at, run.pk))
        _clear_hints(owners_turns)


def note_served(run: CompactionRun) -> None:
    """Note that a run was claimed in its turn: its owner goes to the end of the line."""
    turns = OwnerTurn.objects.filter(owner=run.owner_id)
    turns.update(served_at=Now())
    _clear_hints(turns.filter(**_get_kind(run)))


def put_in_line(run_id: UUID | str) -> None:
    """Note that a run waits, or may wait. Its row must be committed."""
    kind = CompactionRun.objects.filter(pk=run_id).values(*KIND).first()
    if kind is not None:
        _put_kind_in_line(kind)


def put_all_in_line(runs: QuerySet[CompactionRun]) -> None:
    """Note that these runs wait, where that was lost."""
    same_kind = OwnerTurn.objects.filter(is_waiting=True, **{name: OuterRef(name) for name in KIND})
    kinds = list(runs.filter(~Exists(same_kind)).order_by().values(*KIND).distinct())
    for kind in kinds:
        if kind["owner_id"] is None:  # which a unique constraint does not compare
            _put_kind_in_line(kind)
    turns = [OwnerTurn(served_at=NEVER, **kind) for kind in kinds if kind["owner_id"] is not None]
    for start in range(0, len(turns), BATCH_ROWS):
        with transaction.atomic():
            # Nobody else locks several of these rows without it.
            enter_line()
            _store_turns(turns[start : start + BATCH_ROWS])


def forget_old_turns() -> None:
    """Delete the rows of those who were not served for long and have nothing to wait for."""
    OwnerTurn.objects.filter(is_waiting=False, served_at__lt=Now() - REST).delete()


def _find_first_turn(turns: QuerySet[OwnerTurn], executing: Counter[Any]) -> OwnerTurn | None:
    turns = turns.order_by("served_at", "id")
    is_busy = Q(owner__in=[owner for owner in executing if owner is not None])
    if None in executing:
        is_busy |= Q(owner=None)
    idle_turn = turns.exclude(is_busy).first() if executing else turns.first()
    if idle_turn is not None or not executing:
        return idle_turn
    busy_turns = turns.filter(is_busy)  # sorted, and min() takes the first of equals
    return min(busy_turns, key=lambda turn: executing[turn.owner_id], default=None)


def _find_oldest_run(turn: OwnerTurn) -> CompactionRun | None:
    """Return the oldest run of a kind, locked. One that somebody else holds now is left out."""
    runs = _select_waiting(turn).order_by("created_at", "id")
    if connection.features.has_select_for_update_skip_locked:
        runs = runs.select_for_update(skip_locked=True)
    return runs.first()


def _select_waiting(kind: OwnerTurn) -> QuerySet[CompactionRun]:
    # A run that is to be tried later is queued with a lease, and in line again when that is over.
    is_due = Q(lease_until=None) | Q(lease_until__lte=Now())
    return CompactionRun.objects.filter(
        is_due, status=CompactionRun.Status.QUEUED, **_get_kind(kind)
    )


def _get_kind(row: OwnerTurn | CompactionRun) -> dict[str, Any]:
    # By the name of the relation: a filter for None must say IS NULL.
    return {"owner": row.owner_id, **{name: getattr(row, name) for name in KIND[1:]}}


def _clear_hints(turns: Iterable[OwnerTurn]) -> None:
    """Take the hint back where no run waits. The rows must be locked by this transaction.

    Whether one waits is asked in statements that begin after the lock was taken, so they see
    each run whose hint was set before it; those that come later set it again.
    """
    for turn in turns:
        if not _select_waiting(turn).exists():
            OwnerTurn.objects.filter(pk=turn.pk).update(is_waiting=False)


def _put_kind_in_line(kind: dict[str, Any]) -> None:
    # It is written even where it is set already, because that waits for a claim that is about to
    # take it back.
    turns = OwnerTurn.objects.filter(owner=kind["owner_id"])
    names = {name: kind[name] for name in KIND[1:]}
    if turns.filter(**names).update(is_waiting=True):
        return
    served_at = turns.aggregate(newest=Max("served_at"))["newest"] or NEVER
    _store_turns([OwnerTurn(served_at=served_at, **kind)])


def _store_turns(turns: list[OwnerTurn]) -> None:
    """Store turns whose runs wait; of one that is there already only that."""
    OwnerTurn.objects.bulk_create(
        turns,
        update_conflicts=True,
        unique_fields=["owner", "policy", "provider", "places"],
        update_fields=["is_waiting"],
    )
