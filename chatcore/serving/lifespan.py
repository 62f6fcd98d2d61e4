"""The background work of a web process, from the server's start to its end."""

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from django.db import DatabaseError, connection
from django.urls import get_resolver

from chatcore.accounts import token_uses
from chatcore.accounts.expiry import delete_expired_sign_ins
from chatcore.api.idempotency import delete_old_keys
from chatcore.base.asgi import Receive, Send
from chatcore.base.metrics import counts
from chatcore.base.runner import turn_runner
from chatcore.base.threads import run_in_thread
from chatcore.events import retention
from chatcore.extension import get_extensions
from chatcore.files import intake, output_store
from chatcore.models import ServingProcess
from chatcore.providers import registry as provider_registry
from chatcore.search.erasure import ErasureChore
from chatcore.serving import processes
from chatcore.sessions import deletion
from chatcore.sessions.retention import delete_unused_sessions
from chatcore.sessions.upkeep import run_if_clock_is_right
from chatcore.turns import lifecycle
from models_registry.models import Provider

PRUNE_SECONDS = 600.0
PURGE_SECONDS = 30.0
ERASE_SECONDS = 60.0
DELETIONS: tuple[tuple[float, Callable[[], object]], ...] = (
    (PRUNE_SECONDS, retention.prune_events),
    (PRUNE_SECONDS, intake.prune_unsent_files),
    (PRUNE_SECONDS, output_store.sweep_orphans),
    (PRUNE_SECONDS, delete_unused_sessions),
    (PRUNE_SECONDS, delete_expired_sign_ins),
    (PRUNE_SECONDS, delete_old_keys),
    (PURGE_SECONDS, deletion.purge_due_sessions),
)


async def serve_lifespan(receive: Receive, send: Send) -> None:
    """Start the work when the server starts, and stop it when the server stops."""
    while (await receive())["type"] == "lifespan.startup":
        start_background_work()
        await send({"type": "lifespan.startup.complete"})
    # The parts of answers that have arrived are stored before the process ends.
    await run_in_thread(turn_runner.stop)
    with suppress(DatabaseError):  # away: the sign is soon too old to count
        await run_in_thread(processes.remove_process)
    await send({"type": "lifespan.shutdown.complete"})


def start_background_work() -> None:
    """Start what goes on besides requests: recovery, deletion by time, chores of apps."""
    counts.watch_statements()
    lifecycle.start_recovery()
    sign = partial(run_in_thread, processes.record_process, ServingProcess.Kind.WEB)
    turn_runner.run_periodically(processes.SIGN_SECONDS, sign)
    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
    chores = [chore for extension in get_extensions() for chore in extension.list_chores()]
    own_deletions = [(chore.seconds, chore.run) for chore in chores if chore.is_deletion]
    for seconds, delete in (*DELETIONS, *own_deletions):
        delete_in_thread = partial(run_in_thread, run_if_clock_is_right, delete)
        turn_runner.run_periodically(seconds, delete_in_thread)
    turn_runner.run_periodically(ERASE_SECONDS, partial(run_in_thread, ErasureChore().erase))
    store_uses = partial(run_in_thread, token_uses.store_uses)
    turn_runner.run_periodically(token_uses.STORE_SECONDS, store_uses)
    for chore in chores:
        if not chore.is_deletion:
            turn_runner.run_periodically(chore.seconds, chore.run)


def warm_up() -> None:
    """Load views and SDKs that may be called, and take them out of the garbage collector's way.

    They stay for the life of the process, and to look through them takes a tenth of a second, in
    which no answer goes on.
    """
    list(get_resolver().reverse_dict)  # otherwise the first requests wait for views and addresses
    with suppress(DatabaseError):  # away: the first answer loads its SDK
        try:
            rows = Provider.objects.filter(is_active=True)
            protocols = {row.protocol for row in rows if row.has_key() or not row.api_key_env}
        finally:
            connection.close()
        provider_registry.warm_up(protocols)
    gc.collect()
    gc.freeze()
