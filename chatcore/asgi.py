"""The ASGI application: Django, and the life of the generator around it."""

import os
import threading
import warnings
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

from chatcore.events.long_responses import serve_request

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
PRUNE_SECONDS = 600.0

# WhiteNoise hands over static files, which are small and on this disk, in synchronous pieces.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
django_application = get_asgi_application()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve HTTP through Django; at shutdown, write down what is being said before the process ends."""
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    else:
        await serve_request(django_application, *await _buffer_chunked_body(scope, receive), send)


async def _buffer_chunked_body(scope: dict[str, Any], receive: Any) -> tuple[dict[str, Any], Any]:
    """A body sent in chunks names no length, and the API's framework takes it for none: read it, up to the limit, and say its length."""
    header_names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in header_names or b"content-length" in header_names:
        return scope, receive
    body = bytearray()
    message = {"more_body": True}
    while message.get("more_body") and len(body) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        message = await receive()
        body += message.get("body", b"")
    pending_messages = [
        message
        if message["type"] == "http.disconnect"
        else {"type": "http.request", "body": bytes(body)}
    ]

    async def replay() -> Any:
        if pending_messages:
            return pending_messages.pop()
        while (message := await receive())["type"] == "http.request":
            pass  # what is over the limit
        return message

    return {
        **scope,
        "headers": [*scope["headers"], (b"content-length", str(len(body)).encode())],
    }, replay


async def _run_lifespan(receive: Any, send: Any) -> None:
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
            await run_in_thread(turn_runner.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return
