"""What is red of what a kind of requests has left."""

from collections.abc import Iterator

from measure.soak.acts import Kind
from measure.soak.gauges import Process, Reading

MAX_WRAPPERS = 2  # around a statement: the metrics' own, and one of a request
MORE_CONNECTIONS = 8  # than threads
MORE_THREADS, MORE_DESCRIPTORS = 20, 30  # than after the warm-up, in which not all pools begin
FULL_POOLS = 100  # threads of a process in which all pools but those for slow tools are full
OBJECTS_A_REQUEST = 0.05  # of one type
FREE_OBJECTS = 2000  # of one type, in all: caches fill up
MAX_LASTING = 20  # generators, tasks and requests, more than before
LASTING_TYPES = ("generator", "coroutine", "Task", "Request", "StatelessExchange")
MB_A_THOUSAND = 10
MAX_PSS = 400
UPDATES_A_REQUEST = 12.0
FREE_ROWS = 150  # of one table: what twelve clients begin with, and what is deleted later


def judge(kind: Kind, before: Reading, after: Reading, *, requests: int) -> Iterator[str]:
    """Yield a sentence for each thing that is red."""
    pairs = {process.pid: process for process in before.web}
    for process in after.web:
        yield from judge_process(kind, pairs.get(process.pid), process, requests)
    if after.open_calls:
        yield f"{after.open_calls} calls are still open at the provider"
    for key in after.endless_keys[:3]:
        yield f"a key of Redis has no time to live: {key}"
    for table, count in after.rows.items():
        more = count - before.rows.get(table, 0)
        allowed = kind.rows.get(table, 0.0) * requests + FREE_ROWS
        if more > allowed:
            yield f"{more} more rows of {table}, {allowed:.0f} are expected"
    for table, count in after.updates.items():
        each = (count - before.updates.get(table, 0)) / requests
        if each > UPDATES_A_REQUEST:
            yield f"{each:.1f} rows of {table} updated for each request"


def judge_process(
    kind: Kind, before: Process | None, after: Process, requests: int
) -> Iterator[str]:
    """Yield a sentence for each thing of a web process that is red."""
    if before is None:
        yield f"process {after.pid} was started meanwhile"
        return
    if after.wrappers > MAX_WRAPPERS:
        yield f"{after.wrappers} functions around each statement of a connection"
    if after.connections > after.threads + MORE_CONNECTIONS:
        yield f"{after.connections} connections to the database for {after.threads} threads"
    if after.pool_busy > 0:
        yield f"{after.pool_busy} connections of the pool were not given back"
    if after.answers > 0:
        yield f"{after.answers} places for answers are taken"
    if after.threads > max(before.threads + MORE_THREADS, FULL_POOLS):
        yield f"threads: {before.threads} → {after.threads}"
    if after.descriptors > before.descriptors + MORE_DESCRIPTORS:
        yield f"descriptors: {before.descriptors} → {after.descriptors}"
    yield from judge_memory(kind, before, after, requests)


def judge_memory(kind: Kind, before: Process, after: Process, requests: int) -> Iterator[str]:
    """Yield a sentence for memory and objects that have grown."""
    allowed_mb = kind.free_mb + MB_A_THOUSAND * requests / 1000
    if after.pss > MAX_PSS or after.pss - before.pss > allowed_mb:
        yield f"memory: {before.pss} → {after.pss} MB"
    for name, count in after.objects.items():
        more = count - before.objects.get(name, 0)
        is_lasting = any(part in name.rsplit(".", 1)[-1] for part in LASTING_TYPES)
        allowed = MAX_LASTING if is_lasting else FREE_OBJECTS + OBJECTS_A_REQUEST * requests
        if more > allowed and name in before.objects:
            yield f"{more} more objects of the type {name}"
