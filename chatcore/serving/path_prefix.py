"""Serve below a path: what comes in loses the path, and what is elsewhere is 404.

Within, paths are as without it. Django gets the whole path, because it takes the same part off.
"""

from django.urls import set_script_prefix

from chatcore.base.asgi import Application, Receive, Scope, Send
from chatcore.serving.probes import load_probes

TAKEN_OFF = "chatcore.base_path"  # the key in the ASGI scope
TEXT_TYPE = (b"content-type", b"text/plain; charset=utf-8")


def serve_below(base_path: str, serve: Application) -> Application:
    """Return an application that serves `serve` below the path, which is as /chat.

    Probes and metrics are also found at the top: they come past the proxy.
    """
    if not base_path:
        return serve

    async def serve_path(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve(scope, receive, send)
            return
        path = scope["path"]
        if path.startswith(f"{base_path}/"):
            path = path.removeprefix(base_path)
        elif path.rstrip("/") not in load_probes():
            await _refuse(base_path, scope, receive, send)
            return
        # For what runs beside Django; Django sets it for its own requests.
        set_script_prefix(base_path)
        await serve({**scope, "path": path, TAKEN_OFF: base_path}, receive, send)

    return serve_path


def restore_path(scope: Scope) -> Scope:
    """Return the scope with the whole path, which Django divides itself (FORCE_SCRIPT_NAME)."""
    base_path = scope.get(TAKEN_OFF)
    return {**scope, "path": f"{base_path}{scope['path']}"} if base_path else scope


async def _refuse(base_path: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 404, and at the path without its slash lead to the first page."""
    if scope["type"] == "websocket":
        await receive()  # websocket.connect
        await send({"type": "websocket.close"})  # before it is accepted: 403
        return
    status, headers = 404, [TEXT_TYPE]
    body = f"Nothing is here, only below {base_path}/.\n".encode()
    if scope["path"] == base_path and scope["method"] in ("GET", "HEAD"):
        query = scope["query_string"]
        address = f"{base_path}/".encode() + (b"?" + query if query else b"")
        status, headers, body = 301, [(b"location", address)], b""
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
