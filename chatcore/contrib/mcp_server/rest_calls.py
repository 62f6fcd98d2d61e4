"""Call views of the REST API inside this process, with the headers of the request that asks."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.core.handlers.asgi import ASGIRequest
from django.urls import resolve

from chatcore.base.rest.routes import get_base_path

HANDED_ON_HEADERS = (b"authorization", b"host")


class RestRefusal(Exception):
    """The API refused a call; its text says why."""


def call_rest(
    headers: Mapping[bytes, bytes],
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
) -> object:
    """Return the JSON of the answer to a request. Raises RestRefusal.

    The view signs the user in by the token, and shows what belongs to this user only. Queries leave
    out what is None.
    """
    content = json.dumps(body).encode() if body is not None else b""
    own_headers = {
        b"content-type": b"application/json",
        b"content-length": str(len(content)).encode(),
    }
    values = {name: value for name, value in (query or {}).items() if value is not None}
    full_path = f"/api/v1/{path}"
    scope = {
        "type": "http",
        "method": method,
        "path": f"{get_base_path()}{full_path}",
        "query_string": urlencode(values).encode(),
        "headers": [
            *((name, headers[name]) for name in HANDED_ON_HEADERS if name in headers),
            *own_headers.items(),
        ],
    }
    request = ASGIRequest(scope, BytesIO(content))
    match = resolve(full_path)
    response = match.func(request, *match.args, **match.kwargs)
    response.render()
    answer = json.loads(response.content)
    if response.status_code >= 400:
        raise RestRefusal(_describe_problem(answer))
    return answer


def find_cursor(page: Mapping[str, Any]) -> str | None:
    """Return the cursor of the page after this one; None if it is the last."""
    cursors = parse_qs(urlsplit(page["next"] or "").query).get("cursor")
    return cursors[0] if cursors else None


def _describe_problem(problem: Mapping[str, Any]) -> str:
    errors = problem.get("errors") or []
    details = [f"{error.get('pointer', '')} {error.get('detail', '')}".strip() for error in errors]
    return " ".join(details) or problem.get("detail") or problem.get("title") or "It was refused."
