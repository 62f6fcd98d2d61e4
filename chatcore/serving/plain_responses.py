"""Answer without Django: a refusal in the words of the API that was asked, and a sign of life."""

from chatcore.base.asgi import Application, Message, Receive, Scope, Send
from chatcore.base.rest.problems import Problem, build_outage_problem
from chatcore.base.rest.refusals import build_refusal
from chatcore.serving.request_bodies import admit_body

CLOSE_POLICY = 1008  # the code of a WebSocket that may not be opened
LIVENESS_BODY = b'{"status": "ok"}'


def refuse_in_words(serve: Application) -> Application:
    """Return `serve` with its bodies admitted, and what it raises before it answers in words."""

    async def serve_or_refuse(scope: Scope, receive: Receive, send: Send) -> None:
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

    return serve_or_refuse


async def report_life(send: Send) -> None:
    """Say that the process lives. One whose threads are all busy does, and is not restarted."""
    await _respond(send, 200, {"Content-Type": "application/json"}, LIVENESS_BODY)


async def refuse_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket at a path that has none."""
    await receive()  # websocket.connect
    await refuse_handshake(scope, send, Problem(404, "unknown_url", "Not here."))


async def refuse_handshake(scope: Scope, send: Send, problem: Problem) -> None:
    """Refuse a WebSocket: in words where the server can say them, else by a close."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": CLOSE_POLICY})
        return
    refusal = build_refusal(scope["path"], problem)
    await _respond(send, refusal.status, refusal.headers, refusal.body, "websocket.http.response")


async def _refuse(scope: Scope, send: Send, problem: Problem) -> None:
    refusal = build_refusal(scope["path"], problem)
    headers = dict(refusal.headers)
    if b"expect" in dict(scope["headers"]):
        # The client waits for a word before it sends the body, and then does not send it. What
        # comes next on this connection could be either, so it is closed.
        headers["Connection"] = "close"
    await _respond(send, refusal.status, headers, refusal.body)


async def _respond(
    send: Send,
    status: int,
    headers: dict[str, str],
    body: bytes,
    kind: str = "http.response",
) -> None:
    all_headers = headers | {"Content-Length": str(len(body))}
    raw_headers = [(name.lower().encode(), value.encode()) for name, value in all_headers.items()]
    await send({"type": f"{kind}.start", "status": status, "headers": raw_headers})
    await send({"type": f"{kind}.body", "body": body})
