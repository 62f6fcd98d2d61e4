"""The background work of a web process, from the server's start to its end."""

import gc
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from chatcore.accounts import audit
from chatcore.databases.erasure import ErasureChore
from chatcore.events import retention, webhooks
from chatcore.files import intake, output_store
from chatcore.metrics.statements import watch_statements
from chatcore.providers import registry as provider_registry
from chatcore.sessions import discarding
from chatcore.sessions.retention import delete_unused_sessions
from chatcore.sessions.upkeep import run_if_clock_is_right
from chatcore.threads import run_in_thread
from chatcore.transfer import import_jobs
from chatcore.turns import recovery
from chatcore.turns.runner import turn_runner

PRUNE_SECONDS = 600.0
PURGE_SECONDS = 10.0
ERASE_SECONDS = 60.0
DELETIONS: tuple[tuple[float, Callable[[], object]], ...] = (
    (PRUNE_SECONDS, retention.prune_events),
    (PRUNE_SECONDS, audit.prune_entries),
    (PRUNE_SECONDS, webhooks.delete_old_deliveries),
    (PRUNE_SECONDS, intake.prune_unsent_files),
    (PRUNE_SECONDS, output_store.sweep_orphans),
    (PRUNE_SECONDS, import_jobs.prune_imports),
    (PRUNE_SECONDS, delete_unused_sessions),
    (PURGE_SECONDS, discarding.purge_due_sessions),
)

Message = dict[str, Any]


async def serve_lifespan(
    receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Start the work when the server starts, and stop it when the server stops."""
    while (await receive())["type"] == "lifespan.startup":
        start_background_work()
        await send({"type": "lifespan.startup.complete"})
    # The parts of answers that have arrived are stored before the process ends.
    await run_in_thread(turn_runner.stop)
    await send({"type": "lifespan.shutdown.complete"})


def start_background_work() -> None:
    """Start what goes on besides requests: recovery, deletion by time, webhooks."""
    watch_statements()
    recovery.start_recovery()
    threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()
    for seconds, delete in DELETIONS:
        chore = partial(run_in_thread, run_if_clock_is_right, delete)
        turn_runner.run_periodically(seconds, chore)
    turn_runner.run_periodically(ERASE_SECONDS, partial(run_in_thread, ErasureChore().erase))
    turn_runner.run_periodically(webhooks.POLL_SECONDS, webhooks.start_due_deliveries)


def _warm_up() -> None:
    """Load the SDKs, and take what is loaded by now out of the garbage collector's way.

    It stays for the life of the process, and to look through it takes a tenth of a second, during
    which no answer goes on.
    """
    provider_registry.warm_up()
    gc.collect()
    gc.freeze()
