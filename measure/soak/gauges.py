"""Read what a deployment holds: its processes, its database, Redis, its logs."""

import json
import re
from dataclasses import dataclass, field

import psutil
import redis

from measure.soak.deployed import Deployment

MEGABYTE = 1024 * 1024
# What PostgreSQL logs of a server that is stopped by the soak itself.
ALLOWED_OF_POSTGRES = ("the database system is", "terminating connection due to administrator")


@dataclass(frozen=True)
class Process:
    """A web process: its memory in MB, and what its probe sees."""

    pid: int
    pss: int
    threads: int
    descriptors: int
    connections: int
    wrappers: int
    pool_busy: int
    answers: int
    objects: dict[str, int]


@dataclass(frozen=True)
class Reading:
    """What everything holds at one moment."""

    web: list[Process]
    open_calls: int
    rows: dict[str, int] = field(default_factory=dict)
    updates: dict[str, int] = field(default_factory=dict)  # by table, since the server started
    idle_in_transaction: float = 0.0  # seconds, the longest
    endless_keys: list[str] = field(default_factory=list)


def read_all(deployment: Deployment) -> Reading:
    """Read everything. Each web process collects its garbage on the way."""
    web = [read_process(deployment, pid) for pid in deployment.list_web_processes()]
    reading = Reading(
        web=web,
        open_calls=deployment.count_open_calls(),
        endless_keys=list_endless_keys(deployment),
    )
    if deployment.kind == "sqlite":
        return reading
    tables = [name for (name,) in deployment.query("SELECT relname FROM pg_stat_user_tables")]
    counts = ", ".join(f'(SELECT count(*) FROM "{name}")' for name in tables)
    [row] = deployment.query(f"SELECT {counts}")
    reading.rows.update(zip(tables, row, strict=True))
    deployment.query("SELECT pg_stat_force_next_flush()")
    reading.updates.update(
        dict(deployment.query("SELECT relname, n_tup_upd FROM pg_stat_user_tables"))
    )
    return reading


def read_process(deployment: Deployment, pid: int) -> Process:
    """Return what one web process holds."""
    seen = deployment.look_into(pid)
    pss = psutil.Process(pid).memory_full_info().pss // MEGABYTE
    return Process(pid=pid, pss=pss, **seen)


def read_longest_idle(deployment: Deployment) -> float:
    """Return for how many seconds a connection has been idle in a transaction, at most."""
    sql = (
        "SELECT coalesce(max(extract(epoch FROM now() - state_change)), 0)::float"
        " FROM pg_stat_activity WHERE state = 'idle in transaction'"
    )
    return float(deployment.query(sql)[0][0])


def list_endless_keys(deployment: Deployment) -> list[str]:
    """Return the keys of Redis that have no time to live."""
    if not deployment.redis:
        return []
    client = redis.Redis.from_url(deployment.redis, decode_responses=True)
    with client:
        return [key for key in client.scan_iter(count=1000) if client.ttl(key) == -1]


def list_faults_of_logs(deployment: Deployment, marks: dict[str, int]) -> list[str]:
    """Return what the logs have had of errors since the marks were set."""
    lines = {name: deployment.read_log(name)[mark:].splitlines() for name, mark in marks.items()}
    of_product = [
        f"{name}: {line[:300]}"
        for name in ("web", "worker")
        for line in lines[name]
        if is_error(line)
    ]
    of_database = [
        f"PostgreSQL: {line[:300]}"
        for line in lines["postgresql"]
        if re.search(r"(ERROR|FATAL|PANIC|deadlock)", line)
        and not any(allowed in line for allowed in ALLOWED_OF_POSTGRES)
    ]
    return of_product + of_database


def is_error(line: str) -> bool:
    """Return True for a line of the level ERROR, and for one that no logger wrote of a failure."""
    try:
        value = json.loads(line)
    except ValueError:
        return "Traceback" in line or "never retrieved" in line
    return isinstance(value, dict) and value.get("level") in ("error", "critical")
