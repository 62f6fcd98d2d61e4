"""The ASGI application: Django, and beside it what does not wait for a thread of Django's."""

import os
import warnings
from importlib import import_module
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import module_has_submodule

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
# WhiteNoise sends static files as a synchronous iterator, and Django warns that this blocks. The
# files are small and on a local disk, so it does not matter.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
django.setup(set_prefix=False)


class OneThreadHandler(ASGIHandler):
    """Django's handler, with all of a request in one thread: no view of ours is asynchronous.

    Django returns to the event loop between middleware and view, which takes 7 ms of a request.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware as it is for a thread."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response that a thread makes."""
        return await sync_to_async(self.get_response)(request)


django_application = OneThreadHandler()

# These need Django's apps, which are loaded now. The pages are loaded here too, and not while the
# first person waits.
import chatcore.urls  # noqa: E402, F401
from chatcore.events.long_responses import serve_request  # noqa: E402
from chatcore.extension import list_extension_configs  # noqa: E402
from chatcore.serving.answers import (  # noqa: E402
    Application,
    Receive,
    Scope,
    Send,
    refuse_in_words,
    refuse_socket,
    report_life,
)
from chatcore.serving.base_path import BASE_PATH  # noqa: E402
from chatcore.serving.lifespan import serve_lifespan  # noqa: E402
from chatcore.serving.path_prefix import restore_path, serve_below  # noqa: E402
from chatcore.serving.request_threads import request_threads  # noqa: E402

LIVENESS_PATHS = ("/livez", "/livez/")


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve HTTP through Django, and start and stop the work that goes on besides."""
    if scope["type"] == "lifespan":
        await serve_lifespan(receive, send)
    elif scope["type"] == "websocket":
        await sockets.get(scope["path"], refuse_socket)(scope, receive, send)
    elif scope["path"] in LIVENESS_PATHS:
        await report_life(send)
    else:
        serve_path = applications.get(scope["path"], page_application)
        await serve_path(scope, receive, send)


async def _serve_django(scope: Scope, receive: Receive, send: Send) -> None:
    await serve_request(_run_django, scope, receive, send)


async def _run_django(scope: Scope, receive: Any, send: Any) -> None:
    async with request_threads.lend_thread():
        await django_application(restore_path(scope), receive, send)


applications: dict[str, Application] = {}  # of apps, by their paths
sockets: dict[str, Application] = {}  # what serves WebSockets, in the same way


def _add_applications() -> None:
    """Add what NAME/asgi.py of each app has: PATHS and `serve`, SOCKET_PATHS and `serve_socket`."""
    for config in list_extension_configs():
        if module_has_submodule(config.module, "asgi"):
            module = import_module(f"{config.name}.asgi")
            for path in getattr(module, "PATHS", ()):
                applications[path] = refuse_in_words(module.serve)
            for path in getattr(module, "SOCKET_PATHS", ()):
                sockets[path] = module.serve_socket


_add_applications()
page_application = refuse_in_words(_serve_django)
application = serve_below(BASE_PATH, serve)
