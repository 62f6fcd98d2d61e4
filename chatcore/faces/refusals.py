"""Refuse a request before it reaches a view, in the form of the API that its path belongs to."""

import json
from dataclasses import dataclass

from rest_framework.exceptions import APIException

from chatcore.faces.chat_completions import errors as openai_errors
from chatcore.faces.messages import errors as anthropic_errors
from chatcore.rest import problems


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A response without Django: its status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes


def is_api_path(path: str) -> bool:
    """Return True if programs use the path, and False for a page."""
    return path.startswith(("/api/", "/v1/"))


def build_refusal(path: str, problem: APIException) -> Refusal:
    """Build the response to a request for `path`: a problem, an error, or plain text."""
    headers = problems.build_headers(problem)
    body = problems.build_body(problem)
    if path.startswith("/v1/messages"):
        status, anthropic_body = anthropic_errors.format_error(body)
        return _build_json(status, headers, "application/json", anthropic_body)
    if path.startswith("/v1/"):
        status, openai_body = openai_errors.format_error(body)
        return _build_json(status, headers, "application/json", openai_body)
    if path.startswith("/api/"):
        return _build_json(problem.status_code, headers, problems.MEDIA_TYPE, body)
    content = f"{body['detail']}\n".encode()
    return Refusal(
        status=problem.status_code,
        headers=headers | {"Content-Type": "text/plain; charset=utf-8"},
        body=content,
    )


def _build_json(
    status: int, headers: dict[str, str], media_type: str, body: dict[str, object]
) -> Refusal:
    return Refusal(
        status=status,
        headers=headers | {"Content-Type": media_type},
        body=json.dumps(body).encode(),
    )
