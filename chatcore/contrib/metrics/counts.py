"""Count what happened. Nothing here raises, waits for a disk, or is called for each token."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils import timezone

from chatcore.base.databases.statement_watchers import add_watcher
from chatcore.base.metrics import Counts
from chatcore.contrib.metrics import definitions
from chatcore.contrib.metrics.snapshots import snapshots

UNKNOWN = "unknown"


class PrometheusCounts(Counts):
    def count_turn(
        self,
        *,
        model: str,
        outcome: str,
        started_at: datetime,
        failure_type: str = "",
        recalled: bool = False,
    ) -> None:
        label = model or UNKNOWN
        definitions.TURNS.labels(label, outcome).inc()
        definitions.TURN_SECONDS.labels(label).observe(
            max(0.0, (timezone.now() - started_at).total_seconds())
        )
        if failure_type:
            definitions.TURN_FAILURES.labels(label, failure_type).inc()
        if recalled:
            definitions.RECALLS.labels(label).inc()
        snapshots.note_change()

    def count_first_token(self, model: str, seconds: float) -> None:
        definitions.FIRST_TOKEN_SECONDS.labels(model or UNKNOWN).observe(seconds)
        snapshots.note_change()

    def count_tokens(self, model: str, **counts: int | None) -> None:
        for kind, count in counts.items():
            if count:
                definitions.TOKENS.labels(model or UNKNOWN, kind).inc(count)
        snapshots.note_change()

    def count_cost(self, model: str, purpose: str, cost: float) -> None:
        definitions.COST.labels(model or UNKNOWN, purpose).inc(cost)
        snapshots.note_change()

    def count_refused_turn(self, reason: str) -> None:
        definitions.REFUSED_TURNS.labels(reason).inc()
        snapshots.note_change()

    def count_run(
        self,
        *,
        policy: str,
        trigger: str,
        outcome: str,
        seconds: float | None,
        tokens_before: int | None,
        tokens_after: int | None,
    ) -> None:
        definitions.RUNS.labels(policy, trigger, outcome).inc()
        if seconds is not None:
            definitions.RUN_SECONDS.labels(policy).observe(max(0.0, seconds))
        if outcome == "applied" and tokens_before and tokens_after is not None:
            definitions.RUN_RATIO.labels(policy).observe(tokens_after / tokens_before)
            definitions.SAVED_TOKENS.labels(policy).inc(max(0, tokens_before - tokens_after))
        snapshots.write()

    def count_refused_summary(self, reason: str) -> None:
        definitions.REFUSED_SUMMARIES.labels(reason).inc()
        snapshots.note_change()

    def count_streams(self, count: int) -> None:
        definitions.STREAMS.set(count)
        snapshots.note_change()

    def watch_statements(self) -> None:
        connection_created.connect(_watch_connection, dispatch_uid="chatcore.base.metrics")
        for connection in connections.all(initialized_only=True):
            _watch_connection(connection=connection)

    def serve(self, host: str, port: int) -> None:
        from chatcore.contrib.metrics import exposition  # where no web process does

        exposition.serve_counts(host, port)


def _watch_connection(*, connection: BaseDatabaseWrapper, **_: object) -> None:
    add_watcher(connection, _measure)


def _measure(
    execute: Callable[..., object], sql: str, params: object, many: bool, context: dict[str, Any]
) -> object:
    start = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    finally:
        # Written with the next count of something else: the chores of a process at rest would
        # write their statements to the disk every few seconds, day and night.
        definitions.STATEMENT_SECONDS.observe(time.perf_counter() - start)
