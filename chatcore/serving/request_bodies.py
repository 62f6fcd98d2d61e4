"""Refuse bodies that are too large, or that nobody known sends, before they are read."""

import re
import tempfile
from typing import IO

from django.conf import settings

from chatcore.api.uploads import AS_FILE, MAX_FORM_BYTES, TOO_LARGE_DETAIL
from chatcore.base.asgi import Message, Receive, Scope
from chatcore.base.rest import limits
from chatcore.base.rest.auth import build_sender_problem, find_sender
from chatcore.base.rest.problems import Problem, TooLargeProblem
from chatcore.base.rest.refusals import is_api_path
from chatcore.base.threads import run_in_thread

# Bytes that are read from everybody: a form to sign in with has less. Smaller bodies are not looked
# at here, because the views refuse them as fast.
ANONYMOUS_BYTES = 64 * limits.KB
PIECE_BYTES = 64 * limits.KB  # in which a body is handed on
LONG_BODIES = re.compile(
    r"/v1/.*|/api/v1/imports/?|/api/v1/sessions/import/?|/api/v1/sessions/[^/]+/messages/import/?"
    r"|/admin/models_registry/aimodel/compare/"
)
MESSAGES = re.compile(r"/api/v1/(?:sessions/[^/]+/messages|messages/[^/]+)/?")
FILE_FORMS = re.compile(
    r"/api/v1/(?:sessions/[^/]+/attachments|attachments/inspect|projects/[^/]+/files)/?"
)


async def admit_body(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """Return the request as Django may read it. Raises the problem that refuses its body.

    A body that is sent in chunks comes without a length, and Django REST framework takes it for an
    empty one. It is read here, and the request gets the header Content-Length.
    """
    headers = dict(scope["headers"])
    path: str = scope["path"]
    max_bytes = find_limit(path)
    content_length = headers.get(b"content-length")
    if content_length is not None:
        byte_count = int(content_length)
        _check_size(path, byte_count, max_bytes)
        if byte_count > ANONYMOUS_BYTES:
            await _require_sender(path, headers)
    elif b"transfer-encoding" in headers:
        return await _read_chunks(scope, receive, path, headers, max_bytes)
    return scope, receive


def find_limit(path: str) -> int:
    """Return how many bytes a body for this path may have."""
    if LONG_BODIES.fullmatch(path):
        return limits.IMPORT_BODY_BYTES
    return MAX_FORM_BYTES if FILE_FORMS.fullmatch(path) else limits.BODY_BYTES


def _check_size(path: str, byte_count: int, max_bytes: int) -> None:
    if byte_count <= max_bytes:
        return
    if FILE_FORMS.fullmatch(path):
        raise TooLargeProblem(TOO_LARGE_DETAIL)
    way_out = AS_FILE if MESSAGES.fullmatch(path) else ""
    detail = f"A request body may have at most {max_bytes // limits.MB} MB. {way_out}"
    raise TooLargeProblem(detail.rstrip())


async def _require_sender(path: str, headers: dict[bytes, bytes]) -> None:
    """Raise the problem unless a user who is signed in, or has a token, sends the request."""
    if await run_in_thread(find_sender, headers):
        return
    if is_api_path(path):
        raise build_sender_problem()
    raise Problem(413, "too_large", "Who is not signed in may send no more than 64 KB.")


async def _read_chunks(
    scope: Scope, receive: Receive, path: str, headers: dict[bytes, bytes], max_bytes: int
) -> tuple[Scope, Receive]:
    # Closed when it was handed on.
    body = tempfile.SpooledTemporaryFile(  # noqa: SIM115
        max_size=settings.FILE_UPLOAD_MAX_MEMORY_SIZE
    )
    byte_count = 0
    is_sender_known = False
    message: Message = {"more_body": True}
    while message.get("more_body"):
        message = await receive()
        byte_count += len(message.get("body", b""))
        _check_size(path, byte_count, max_bytes)
        if byte_count > ANONYMOUS_BYTES and not is_sender_known:
            await _require_sender(path, headers)
            is_sender_known = True
        body.write(message.get("body", b""))
    body.seek(0)
    is_cut = message["type"] == "http.disconnect"
    length_header = (b"content-length", str(byte_count).encode())
    new_scope = {**scope, "headers": [*scope["headers"], length_header]}
    return new_scope, _build_replay(body, byte_count, receive, is_cut=is_cut)


def _build_replay(body: IO[bytes], byte_count: int, receive: Receive, *, is_cut: bool) -> Receive:
    """Return a `receive` that gives the body again, in pieces, and then what comes after it."""
    left_count = byte_count
    is_replayed = is_cut

    async def replay() -> Message:
        nonlocal left_count, is_replayed
        if is_cut:
            return {"type": "http.disconnect"}
        if is_replayed:
            return await receive()
        piece = body.read(PIECE_BYTES)
        left_count -= len(piece)
        is_replayed = left_count <= 0
        if is_replayed:
            body.close()
        return {"type": "http.request", "body": piece, "more_body": not is_replayed}

    return replay
