"""The ASGI application: Django, and beside it what does not wait for a thread of Django's."""

import os
import warnings
from importlib import import_module

import django
from django.utils.module_loading import module_has_submodule

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatcore.settings")
# WhiteNoise sends static files as a synchronous iterator, and Django warns that this blocks. The
# files are small and on a local disk, so it does not matter.
warnings.filterwarnings(
    "ignore", message="StreamingHttpResponse must consume synchronous iterators"
)
django.setup(set_prefix=False)


# These need Django's apps, which are loaded now. The pages are loaded here too, and not while the
# first person waits.
import chatcore.urls  # noqa: E402, F401
from chatcore.api.long_responses import serve_request  # noqa: E402
from chatcore.extension import list_extension_configs  # noqa: E402
from chatcore.serving.base_path import BASE_PATH  # noqa: E402
from chatcore.serving.lifespan import serve_lifespan  # noqa: E402
from chatcore.serving.path_prefix import serve_below  # noqa: E402
from chatcore.serving.plain_responses import (  # noqa: E402
    Application,
    Receive,
    Scope,
    Send,
    refuse_in_words,
    refuse_socket,
    report_life,
)
from chatcore.serving.request_threads import run_django  # noqa: E402

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
    await serve_request(run_django, scope, receive, send)


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
