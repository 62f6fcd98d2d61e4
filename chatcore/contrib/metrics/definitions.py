"""The metrics that each process counts for itself (https://prometheus.io/docs/practices/naming/).

A label has few values: what an operator has set up, or one of a short list in the code.
"""

from collections.abc import Iterator

from django.db import connection
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

FIRST_TOKEN_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
TURN_BUCKETS = (1, 2, 5, 10, 20, 40, 60, 120, 300, 900, 3600)
RUN_BUCKETS = (0.1, 1, 5, 15, 30, 60, 120, 300, 900, 1800)
RATIO_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)

registry = CollectorRegistry()

TURNS = Counter(
    "chatcore_turns", "Turns that ended, by outcome.", ["model", "outcome"], registry=registry
)
TURN_FAILURES = Counter(
    "chatcore_turn_failures", "Turns that failed, by kind.", ["model", "type"], registry=registry
)
TURN_SECONDS = Histogram(
    "chatcore_turn_seconds",
    "Time from the question to the end of the turn, with waiting for tools.",
    ["model"],
    buckets=TURN_BUCKETS,
    registry=registry,
)
FIRST_TOKEN_SECONDS = Histogram(
    "chatcore_first_token_seconds",
    "Time from the beginning of a turn to its first text or reasoning.",
    ["model"],
    buckets=FIRST_TOKEN_BUCKETS,
    registry=registry,
)
TOKENS = Counter(
    "chatcore_tokens",
    "Tokens of answers as providers count them: input (caches included), output, cache_read,"
    " cache_write.",
    ["model", "kind"],
    registry=registry,
)
COST = Counter(
    "chatcore_cost",
    "What calls cost by the registry's prices, in their currency; calls of unknown cost left out.",
    ["model", "purpose"],
    registry=registry,
)
RECALLS = Counter(
    "chatcore_recalls",
    "Turns that ended well and brought passages from before the boundary back.",
    ["model"],
    registry=registry,
)
REFUSED_TURNS = Counter(
    "chatcore_turns_refused",
    "Turns that were refused for lack of room: overloaded, user_limit, stopping.",
    ["reason"],
    registry=registry,
)
RUNS = Counter(
    "chatcore_compaction_runs",
    "Compaction runs that ended, by outcome.",
    ["policy", "trigger", "outcome"],
    registry=registry,
)
RUN_SECONDS = Histogram(
    "chatcore_compaction_run_seconds",
    "Time from the claim of a compaction run to its end.",
    ["policy"],
    buckets=RUN_BUCKETS,
    registry=registry,
)
RUN_RATIO = Histogram(
    "chatcore_compaction_ratio",
    "Tokens after an applied compaction run as a share of those before.",
    ["policy"],
    buckets=RATIO_BUCKETS,
    registry=registry,
)
SAVED_TOKENS = Counter(
    "chatcore_compaction_saved_tokens",
    "Tokens by which applied compaction runs made the next request smaller.",
    ["policy"],
    registry=registry,
)
REFUSED_SUMMARIES = Counter(
    "chatcore_summaries_refused",
    "Answers of summary models that were not used: no_answer, nonsense, untrue, state_only.",
    ["reason"],
    registry=registry,
)
STREAMS = Gauge(
    "chatcore_streams_open",
    "Event streams of this machine that follow a session.",
    registry=registry,
)
STATEMENT_SECONDS = Summary(
    "chatcore_database_statement_seconds",
    "Time that web processes wait for statements of the database.",
    registry=registry,
)


class PoolCollector(Collector):
    """The pool of database connections of this process, where it has one."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield how many connections are in use and free, and how many threads wait for one."""
        pool = getattr(connection, "pool", None)  # of PostgreSQL alone
        if not pool:
            return
        stats = pool.get_stats()
        free = stats["pool_available"]
        family = GaugeMetricFamily(
            "chatcore_database_pool",
            "Connections of pools of this machine that are used or free, and threads that wait.",
            labels=["state"],
        )
        family.add_metric(["used"], stats["pool_size"] - free)
        family.add_metric(["free"], free)
        family.add_metric(["waiting"], stats["requests_waiting"])
        yield family


registry.register(PoolCollector())
