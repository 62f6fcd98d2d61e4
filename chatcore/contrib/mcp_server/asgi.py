"""Serve `/mcp`: let in who has a token, and hand the request to the SDK's server.

It runs beside Django, because the SDK's server is an ASGI application. Nothing is remembered from
one request to the next, so any process can serve any of them.
"""

from chatcore.base.rest.auth import build_sender_problem, find_sender
from chatcore.base.rest.problems import Problem
from chatcore.base.threads import run_in_thread
from chatcore.serving.plain_responses import Receive, Scope, Send

PATHS = ("/mcp", "/mcp/")


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request of a client. Raises the problem that refuses it."""
    headers = dict(scope["headers"])
    # No cookies: a page of any other site could send them.
    has_token = bool(headers.get(b"authorization", b"").strip())
    if not has_token or await run_in_thread(find_sender, headers) is None:
        raise build_sender_problem()
    if scope["method"] != "POST":
        # There are no sessions to end, and no messages that nobody asked for.
        raise Problem(405, "method_not_allowed", "Only POST: this server keeps no sessions.")
    # The SDK takes a second to import, and most processes never need it.
    await _load_sdk()
    from mcp.server.transport_security import TransportSecuritySettings

    from chatcore.contrib.mcp_server.tools import build_server, request_headers

    server = build_server()
    server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        # A page that has rebound its name to this server's address has no token.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    manager = server.session_manager  # of that app, which serves this request alone
    request_headers.set(headers)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


async def _load_sdk() -> None:
    def load() -> None:
        import chatcore.contrib.mcp_server.tools  # noqa: F401

    await run_in_thread(load)
