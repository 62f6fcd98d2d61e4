"""Send thousands of requests of one kind after another to the product as it is deployed.

`python -m measure.soak.kinds [--requests 5000] [--passes postgres pgbouncer sqlite] [--only KIND]`
`python -m measure.soak.kinds --short` is the form for each push, of at most 90 seconds.

Red (exit code 1) on an answer from 500 on that the script did not order, an unexpected answer, an
ERROR line of the product or of PostgreSQL, growth (objects, functions around statements,
connections, threads, descriptors, memory, rows, keys of Redis without time to live), drift (the
median of the last third above 1.5 times that of the first, in two runs with new processes), and
calls that are still open at the provider five seconds after the last client.
"""

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from measure.soak.acts import KINDS, Kind  # noqa: E402
from measure.soak.client import Client, Notes, WrongAnswer  # noqa: E402
from measure.soak.coverage import list_missing_routes  # noqa: E402
from measure.soak.deployed import PASSES, Deployment  # noqa: E402
from measure.soak.gauges import Reading, list_faults_of_logs, read_all  # noqa: E402
from measure.soak.verdicts import judge  # noqa: E402

CLIENTS = 12
WARM_UP = 0.1  # of a kind's requests, before the first reading
# Requests and clients of a kind in the short form. One client has one thread of the process, which
# then serves more than a thousand requests that write.
SHORT = {"writes": (1100, 1), "uploads": (80, 4), "left_early": (120, CLIENTS)}
SHORT_DEFAULT = (80, CLIENTS)
READ_SHARE = 0.4  # of the requests of a kind that writes, for one that only reads
PAUSE_SECONDS = 5.0  # after the last client, and before each further look
LOOKS = 3
MAX_DRIFT = 1.5
MIN_FOR_DRIFT = 600  # requests, fewer of which say nothing about it
MAX_FAULTS_SHOWN = 6


@dataclass
class Result:
    """What one kind did to one deployment."""

    name: str
    notes: Notes
    before: Reading
    after: Reading
    seconds: float
    faults: list[str] = field(default_factory=list)

    @property
    def drift(self) -> float:
        """The median of the last third of all requests, by that of the first."""
        seconds = self.notes.seconds
        third = len(seconds) // 3
        if third < MIN_FOR_DRIFT // 3:
            return 1.0
        return statistics.median(seconds[-third:]) / statistics.median(seconds[:third])


def main() -> None:
    """Run the passes, print a table for each, and exit with 1 if anything is red."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000, help="of each kind that writes")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=list(PASSES))
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=[])
    parser.add_argument("--short", action="store_true", help="few requests of the chief kinds")
    options = parser.parse_args()
    if options.short and options.passes == list(PASSES):
        options.passes = list(PASSES[:1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the servers, too
    run = run_short if options.short else run_whole
    outcomes = [run(kind_of_pass, options) for kind_of_pass in options.passes]
    sys.exit(any(outcomes))


def run_short(kind_of_pass: str, options: argparse.Namespace) -> bool:
    """Send a few hundred requests of the chief kinds to one web process; return True if red."""
    names = options.only or [name for name, kind in KINDS.items() if kind.is_short]
    results = []
    with Deployment(kind_of_pass, web_processes=1) as deployment:
        print_head(kind_of_pass)
        for name in names:
            count, clients = SHORT.get(name, SHORT_DEFAULT)
            results.append(soak(deployment, name, count, clients=clients))
            print_result(results[-1])
    return any(result.faults for result in results)


def run_whole(kind_of_pass: str, options: argparse.Namespace) -> bool:
    """Send all requests of all kinds to two web processes; return True if anything is red."""
    results = []
    with Deployment(kind_of_pass) as deployment:
        print_head(kind_of_pass)
        for name in options.only or KINDS:
            kind = KINDS[name]
            count = int(options.requests * kind.share * (1 if kind.writes else READ_SHARE))
            results.append(soak_with_drift(deployment, name, count, clients=options.clients))
            print_result(results[-1])
    routes = {route for result in results for route in result.notes.routes}
    missing = [] if options.only else list_missing_routes(routes)
    for route in missing:
        print(f"  RED no kind sends {route}")
    return bool(missing) or any(result.faults for result in results)


def soak_with_drift(deployment: Deployment, name: str, count: int, *, clients: int) -> Result:
    """Soak; what has become slower is tried again with new processes, to be sure."""
    result = soak(deployment, name, count, clients=clients)
    if result.drift <= MAX_DRIFT:
        return result
    deployment.restart_servers()
    again = soak(deployment, name, count, clients=clients)
    if again.drift > MAX_DRIFT:
        again.faults.append(f"slower by {result.drift:.2f} and {again.drift:.2f}")
    return again


def soak(deployment: Deployment, name: str, count: int, *, clients: int) -> Result:
    """Send so many requests of a kind, and judge what they leave.

    What has grown must grow again with as many requests more: a library or a table of patterns that
    is loaded late is no growth.
    """
    kind = KINDS[name]
    marks = deployment.mark_logs()
    warm_up = send(deployment, kind, max(int(count * WARM_UP), 2 * clients), clients)
    start = time.monotonic()
    notes, before, after, growth = send_and_judge(deployment, kind, count, clients)
    seconds = time.monotonic() - start
    if growth:
        more, before, after, growth = send_and_judge(deployment, kind, count, clients)
        notes.faults.update(more.faults)
    notes.faults.update(warm_up.faults)
    result = Result(name, notes, before, after, seconds)
    result.faults += [f"{number} × {text}" for text, number in notes.faults.most_common()]
    result.faults += list_faults_of_logs(deployment, marks) + growth
    return result


def send_and_judge(
    deployment: Deployment, kind: Kind, count: int, clients: int
) -> tuple[Notes, Reading, Reading, list[str]]:
    """Return what the clients noted, what was held before and after, and what has grown."""
    before = read_all(deployment)
    notes = send(deployment, kind, count, clients)
    for _ in range(LOOKS):  # what is still being ended at the first look has not grown
        time.sleep(PAUSE_SECONDS)
        after = read_all(deployment)
        growth = list(judge(kind, before, after, requests=len(notes.seconds)))
        if not growth:
            break
    return notes, before, after, growth


def send(deployment: Deployment, kind: Kind, count: int, clients: int) -> Notes:
    """Let clients do rounds of a kind until they have sent so many requests."""
    notes = Notes()

    def work(number: int) -> None:
        number = 0 if kind.is_of_one_user else number % len(deployment.users)
        user, token = deployment.users[number]
        client = Client(deployment.url, token, notes, user=user, provider=deployment.provider)
        while len(notes.seconds) < count:
            rounds = kind.act(client)
            try:
                with closing(rounds):
                    while len(notes.seconds) < count:
                        next(rounds)
            except (WrongAnswer, AssertionError, LookupError, ValueError, OSError) as error:
                notes.note_fault(f"{type(error).__name__} {error}"[:300])
                if sum(notes.faults.values()) > count // 10 + 10:
                    return
                time.sleep(0.1)

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return notes


def print_head(kind_of_pass: str) -> None:
    print(
        f"\n{kind_of_pass}\n{'kind':25} {'requests':>8} {'5xx':>5} {'p50 ms':>13} {'PSS MB':>15}"
        f" {'threads':>9} {'fds':>9} {'conns':>9} {'s':>5}"
    )


def print_result(result: Result) -> None:
    """Print the row of a kind, and what is red of it."""
    notes, before, after = result.notes, result.before, result.after
    third = max(len(notes.seconds) // 3, 1)
    first, last = (
        statistics.median(part) * 1000 for part in (notes.seconds[:third], notes.seconds[-third:])
    )
    errors = sum(count for status, count in notes.statuses.items() if status >= 500)

    def show(name: str) -> str:
        return f"{sum_of(before, name)}→{sum_of(after, name)}"

    print(
        f"{result.name:25} {len(notes.seconds):8} {errors:5} {first:5.0f} → {last:5.0f}"
        f" {show('pss'):>15} {show('threads'):>9} {show('descriptors'):>9}"
        f" {show('connections'):>9} {result.seconds:5.0f}",
        flush=True,
    )
    for fault in result.faults[:MAX_FAULTS_SHOWN]:
        print(f"  RED {fault}", flush=True)
    if len(result.faults) > MAX_FAULTS_SHOWN:
        print(f"  RED and {len(result.faults) - MAX_FAULTS_SHOWN} more")


def sum_of(reading: Reading, name: str) -> int:
    """Return a figure of all web processes together."""
    values: Sequence[int] = [getattr(process, name) for process in reading.web]
    return sum(values)


if __name__ == "__main__":
    main()
