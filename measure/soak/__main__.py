"""Talk for minutes while everything breaks: `python -m measure.soak --minutes 10`.

Clients keep a ledger of all that was acknowledged. At the end everything must be there, each error
must have been of a documented kind, and the memory of the processes must not have grown.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from measure.soak.faults import Faults, list_memory  # noqa: E402
from measure.soak.ledger import Client, Ledger, check_ledger, wait_for_calm  # noqa: E402
from tests.support.compaction_sessions import SUMMARY  # noqa: E402
from tests.support.postgres_server import PostgresServer  # noqa: E402
from tests.support.redis_server import RedisServer  # noqa: E402
from tests.support.scripted_model import ScriptedModel  # noqa: E402
from tests.support.scripted_wire import Reply  # noqa: E402
from tests.support.served_product import ServedProduct, serve  # noqa: E402
from tests.support.served_streams import register_model  # noqa: E402

SAMPLE_SECONDS = 5.0
MEMORY_FACTOR = 1.5  # of the last third to the first third


def answer(request: dict[str, Any]) -> Reply:
    """Answer as a provider on a bad day."""
    if "<transcript>" in str(request.get("messages", "")):
        return Reply(text=SUMMARY)
    luck = random.random()
    if luck < 0.03:
        return Reply(status=random.choice([429, 500, 529]), text="not today")
    words = [f"word{number} " for number in range(random.choice([5, 30, 120]))]
    cut = random.randrange(len(words)) if luck < 0.08 else None
    return Reply(chunks=words, chunk_delay=0.02, cut_after=cut)


@contextlib.contextmanager
def open_product(kind: str, folder: Path, scripted: ScriptedModel) -> Iterator[Any]:
    """Serve the product over servers of our own, and yield it with them."""
    variables = {"CHATCORE_LOG_LEVEL": "ERROR", "CHATCORE_TURNS_PER_MINUTE": "100000"}
    with contextlib.ExitStack() as stack:
        redis = postgres = None
        if RedisServer.is_installed():
            redis = stack.enter_context(RedisServer(folder))
            variables["CHATCORE_REDIS_URL"] = redis.url
        if kind == "postgres":
            postgres = stack.enter_context(PostgresServer())
            variables |= postgres.variables
        arguments = ("--no-local-model", "--web", "2", "--workers", "1")
        product = stack.enter_context(serve(folder / "var", *arguments, **variables))
        register_model(product, scripted)
        yield product, redis, postgres


def talk(
    product: ServedProduct, ledger: Ledger, stopping: threading.Event, count: int
) -> list[Client]:
    token = product.token
    clients = [Client(product.url, token, ledger, stopping) for _ in range(count)]
    for client in clients:
        client.start()
    return clients


def watch_memory(product: ServedProduct, until: float) -> list[dict[str, int]]:
    """Return samples: megabytes of each kind of process, the largest of it."""
    samples = []
    while time.monotonic() < until:
        samples.append(list_memory(product.pid))
        time.sleep(SAMPLE_SECONDS)
    return samples


def compare_memory(samples: list[dict[str, int]]) -> dict[str, tuple[int, int]]:
    """Return the median megabytes of each kind in the first and the last third."""
    third = max(1, len(samples) // 3)
    kinds = {kind for sample in samples for kind in sample}

    def median(part: list[dict[str, int]], kind: str) -> int:
        sizes = sorted(sample[kind] for sample in part if kind in sample)
        return sizes[len(sizes) // 2] if sizes else 0

    return {kind: (median(samples[:third], kind), median(samples[-third:], kind)) for kind in kinds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="chatcore-soak-", ignore_cleanup_errors=True) as name,
        ScriptedModel() as scripted,
        open_product(options.database, Path(name), scripted) as (product, redis, postgres),
    ):
        scripted.default = answer
        ledger = Ledger()
        until = time.monotonic() + options.minutes * 60
        stopping = threading.Event()
        clients = talk(product, ledger, stopping, options.clients)
        faults = Faults(product, redis, postgres, until)
        faults.start()
        samples = watch_memory(product, until)
        stopping.set()
        for thread in (faults, *clients):
            thread.join()
        faults.repair()
        scripted.default = Reply(text="Goodbye.")
        wait_for_calm(product.url, product.token, ledger)
        lost = check_ledger(product.url, product.token, ledger)
        report = {
            "seed": seed,
            "faults": faults.counts,
            "answers": dict(sorted(ledger.outcomes.items())),
            "acknowledged": len(ledger.messages),
            "lost_or_changed": lost,
            "undocumented": dict(ledger.undocumented),
            "memory_mb": compare_memory(samples),
            "verify": product.run_command("verify").splitlines()[-1],
        }
    print(json.dumps(report, indent=1, ensure_ascii=False, default=str))
    grown = [
        kind
        for kind, (first, last) in report["memory_mb"].items()
        if last > first * MEMORY_FACTOR + 20
    ]
    sys.exit(bool(lost or ledger.undocumented or grown or " 0 viol" not in report["verify"]))


if __name__ == "__main__":
    main()
