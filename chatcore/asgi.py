"""The ASGI application: Django, and the background work of a web process around it."""

import os
import threading
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

from chatcore.events.long_responses import serve_request

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
PRUNE_SECONDS = 600.0

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# WhiteNoise sends static files as a synchronous iterator, and Django warns that this blocks. The
# files are small and on a local disk, so it does not matter.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
django_application = get_asgi_application()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve HTTP through Django, and start and stop the work that goes on besides."""
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    else:
        scope, receive = await _buffer_chunked_body(scope, receive)
        await serve_request(django_application, scope, receive, send)


async def _buffer_chunked_body(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """Read a body that is sent in chunks, and return the request with the header Content-Length.

    Such a body comes without a length, and Django REST framework takes it for an empty one.
    """
    header_names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in header_names or b"content-length" in header_names:
        return scope, receive
    body = bytearray()
    message: Message = {"more_body": True}
    # Django refuses a body above this limit by its length, so the rest need not be read.
    while message.get("more_body") and len(body) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        message = await receive()
        body += message.get("body", b"")
    if message["type"] != "http.disconnect":
        message = {"type": "http.request", "body": bytes(body)}
    pending_messages = [message]

    async def replay() -> Message:
        if pending_messages:
            return pending_messages.pop()
        # Pieces of the body above the limit are dropped; Django waits for the disconnect only.
        next_message = await receive()
        while next_message["type"] == "http.request":
            next_message = await receive()
        return next_message

    length_header = (b"content-length", str(len(body)).encode())
    return {**scope, "headers": [*scope["headers"], length_header]}, replay


async def _run_lifespan(receive: Receive, send: Send) -> None:
    # These modules need Django's apps, which are loaded when this module makes the application.
    from chatcore.events import log as event_log
    from chatcore.events import webhooks
    from chatcore.files import intake
    from chatcore.providers import registry as provider_registry
    from chatcore.threads import run_in_thread
    from chatcore.turns import lifecycle
    from chatcore.turns.runner import turn_runner

    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            lifecycle.start_recovery()
            threading.Thread(target=provider_registry.warm_up, name="warm-up", daemon=True).start()
            turn_runner.run_periodically(
                PRUNE_SECONDS, lambda: run_in_thread(event_log.delete_old_deltas)
            )
            turn_runner.run_periodically(
                PRUNE_SECONDS, lambda: run_in_thread(webhooks.delete_old_deliveries)
            )
            turn_runner.run_periodically(
                PRUNE_SECONDS, lambda: run_in_thread(intake.prune_unsent_files)
            )
            turn_runner.run_periodically(webhooks.POLL_SECONDS, webhooks.start_due_deliveries)
            await send({"type": "lifespan.startup.complete"})
        else:
            # The parts of answers that have arrived are stored before the process ends.
            await run_in_thread(turn_runner.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return
