"""Refuse a request before it reaches a view, in the form of the API that its path belongs to."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rest_framework.exceptions import APIException

from chatcore.base.rest import problems

# Returns the status and the body of an error of another API for the body of a problem.
FormatError = Callable[[dict[str, object]], tuple[int, dict[str, object]]]
_forms: dict[str, FormatError] = {}  # by the beginning of their paths


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A response without Django: its status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes


def register_form(path: str, format_error: FormatError) -> None:
    """Have refusals below a path in a form of their own; the longest path counts."""
    _forms[path] = format_error


def is_api_path(path: str) -> bool:
    """Return True if programs use the path, and False for a page."""
    return path.startswith(("/api/", *_forms))


def build_refusal(path: str, problem: APIException) -> Refusal:
    """Build the response to a request for `path`: a problem, an error, or plain text."""
    headers = problems.build_headers(problem)
    body = problems.build_body(problem)
    form = max((start for start in _forms if path.startswith(start)), key=len, default="")
    if form:
        status, own_body = _forms[form](body)
        return _build_json(status, headers, "application/json", own_body)
    if path.startswith("/api/"):
        return _build_json(problem.status_code, headers, problems.MEDIA_TYPE, body)
    content = f"{body['detail']}\n".encode()
    return Refusal(
        status=problem.status_code,
        headers=headers | {"Content-Type": "text/plain; charset=utf-8"},
        body=content,
    )


def _build_json(
    status: int, headers: dict[str, str], media_type: str, body: Mapping[str, object]
) -> Refusal:
    return Refusal(
        status=status,
        headers=headers | {"Content-Type": media_type},
        body=json.dumps(body).encode(),
    )
