"""The ASGI application: Django, and the life of the generator around it."""

import os
import threading
import warnings
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

from chatcore.events import sse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
PRUNE_SECONDS = 600.0

# WhiteNoise hands over static files, which are small and on this disk, in synchronous pieces.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
django = get_asgi_application()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve HTTP through Django; at shutdown, write down what is being said before the process ends."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    else:
        await sse.serve(django, *await _measured(scope, receive), send)


async def _measured(scope: dict[str, Any], receive: Any) -> tuple[dict[str, Any], Any]:
    """A body sent in chunks names no length, and the API's framework takes it for none: read it, up to the limit, and say its length."""
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names or b"content-length" in names:
        return scope, receive
    body = bytearray()
    message = {"more_body": True}
    while message.get("more_body") and len(body) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        message = await receive()
        body += message.get("body", b"")
    first = [
        message
        if message["type"] == "http.disconnect"
        else {"type": "http.request", "body": bytes(body)}
    ]

    async def replayed() -> Any:
        if first:
            return first.pop()
        while (message := await receive())["type"] == "http.request":
            pass  # what is over the limit
        return message

    return {
        **scope,
        "headers": [*scope["headers"], (b"content-length", str(len(body)).encode())],
    }, replayed


async def _live(receive: Any, send: Any) -> None:
    from chatcore.events import log as event_log
    from chatcore.events import webhooks
    from chatcore.files import intake
    from chatcore.providers import registry as provider_registry
    from chatcore.threads import in_thread
    from chatcore.turns import lifecycle
    from chatcore.turns.runner import generator

    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            lifecycle.start_recovering()
            threading.Thread(target=provider_registry.warm_up, name="warm-up", daemon=True).start()
            generator.every(PRUNE_SECONDS, lambda: in_thread(event_log.prune))
            generator.every(PRUNE_SECONDS, lambda: in_thread(webhooks.prune))
            generator.every(PRUNE_SECONDS, lambda: in_thread(intake.prune))
            generator.every(webhooks.POLL_SECONDS, webhooks.deliver_due)
            await send({"type": "lifespan.startup.complete"})
        else:
            await in_thread(generator.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return
