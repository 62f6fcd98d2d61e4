"""The ASGI application: Django, and the background work of a web process around it."""

import gc
import os
import threading
import warnings
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
PRUNE_SECONDS = 600.0
PURGE_SECONDS = 10.0
ERASE_SECONDS = 60.0

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# WhiteNoise sends static files as a synchronous iterator, and Django warns that this blocks. The
# files are small and on a local disk, so it does not matter.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
django_application = get_asgi_application()

# These need Django's apps, which are loaded now. The pages are loaded here too, and not while the
# first person waits.
import chatcore.urls  # noqa: E402, F401
from chatcore.events.long_responses import serve_request  # noqa: E402
from chatcore.faces.mcp.door import PATHS as MCP_PATHS  # noqa: E402
from chatcore.faces.mcp.door import serve_mcp  # noqa: E402
from chatcore.faces.refusals import build_refusal  # noqa: E402
from chatcore.faces.responses.websocket import serve_websocket  # noqa: E402
from chatcore.rest.problems import Problem, build_outage_problem  # noqa: E402
from chatcore.serving.base_path import BASE_PATH  # noqa: E402
from chatcore.serving.door import restore_path, serve_below  # noqa: E402
from chatcore.serving.request_bodies import admit_body  # noqa: E402
from chatcore.serving.request_threads import request_threads  # noqa: E402

LIVENESS_PATHS = ("/livez", "/livez/")
LIVENESS_BODY = b'{"status": "ok"}'


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve HTTP through Django, and start and stop the work that goes on besides."""
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    elif scope["type"] == "websocket":
        await serve_websocket(scope, receive, send)
    elif scope["path"] in LIVENESS_PATHS:
        # On the loop: a process whose threads are all busy lives, and must not be restarted.
        await _respond(send, 200, {"Content-Type": "application/json"}, LIVENESS_BODY)
    elif scope["path"] in MCP_PATHS:
        await _serve_request(serve_mcp, scope, receive, send)
    else:
        await _serve_request(_serve_django, scope, receive, send)


async def _serve_request(serve: Application, scope: Scope, receive: Receive, send: Send) -> None:
    has_started = False

    async def note_start(message: Message) -> None:
        nonlocal has_started
        has_started = True
        await send(message)

    try:
        scope, receive = await admit_body(scope, receive)
        await serve(scope, receive, note_start)
    except Exception as error:
        problem = error if isinstance(error, Problem) else build_outage_problem(error)
        if problem is None or has_started:
            raise
        await _refuse(scope, send, problem)


async def _serve_django(scope: Scope, receive: Receive, send: Send) -> None:
    await serve_request(_run_django, scope, receive, send)


async def _run_django(scope: Scope, receive: Any, send: Any) -> None:
    async with request_threads.lend_thread():
        await django_application(restore_path(scope), receive, send)


async def _refuse(scope: Scope, send: Send, problem: Problem) -> None:
    """Answer a request without Django."""
    refusal = build_refusal(scope["path"], problem)
    headers = dict(refusal.headers)
    if b"expect" in dict(scope["headers"]):
        # The client waits for a word before it sends the body, and then does not send it. What
        # comes next on this connection could be either, so it is closed.
        headers["Connection"] = "close"
    await _respond(send, refusal.status, headers, refusal.body)


async def _respond(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    all_headers = headers | {"Content-Length": str(len(body))}
    raw_headers = [(name.lower().encode(), value.encode()) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw_headers})
    await send({"type": "http.response.body", "body": body})


def _warm_up() -> None:
    """Load the SDKs, and take what is loaded by now out of the garbage collector's way.

    It stays for the life of the process, and to look through it takes a tenth of a second, during
    which no answer goes on.
    """
    from chatcore.providers import registry as provider_registry

    provider_registry.warm_up()
    gc.collect()
    gc.freeze()


async def _run_lifespan(receive: Receive, send: Send) -> None:
    # These modules need Django's apps, which are loaded when this module makes the application.
    from chatcore.accounts import audit
    from chatcore.databases.erasure import ErasureChore
    from chatcore.events import retention, webhooks
    from chatcore.files import intake, output_store
    from chatcore.metrics.statements import watch_statements
    from chatcore.sessions import discarding
    from chatcore.sessions.retention import delete_unused_sessions
    from chatcore.sessions.upkeep import run_if_clock_is_right
    from chatcore.threads import run_in_thread
    from chatcore.turns import recovery
    from chatcore.turns.runner import turn_runner

    erasure = ErasureChore()
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            watch_statements()
            recovery.start_recovery()
            threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()
            for seconds, delete in (
                (PRUNE_SECONDS, retention.prune_events),
                (PRUNE_SECONDS, audit.prune_entries),
                (PRUNE_SECONDS, webhooks.delete_old_deliveries),
                (PRUNE_SECONDS, intake.prune_unsent_files),
                (PRUNE_SECONDS, output_store.sweep_orphans),
                (PRUNE_SECONDS, delete_unused_sessions),
                (PURGE_SECONDS, discarding.purge_due_sessions),
            ):
                chore = partial(run_in_thread, run_if_clock_is_right, delete)
                turn_runner.run_periodically(seconds, chore)
            turn_runner.run_periodically(ERASE_SECONDS, partial(run_in_thread, erasure.erase))
            turn_runner.run_periodically(webhooks.POLL_SECONDS, webhooks.start_due_deliveries)
            await send({"type": "lifespan.startup.complete"})
        else:
            # The parts of answers that have arrived are stored before the process ends.
            await run_in_thread(turn_runner.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return


application = serve_below(BASE_PATH, serve)
