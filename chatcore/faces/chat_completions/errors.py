"""Refusals as OpenAI words them, with its statuses and codes, so that a client raises what it raises there."""

from collections.abc import Mapping
from typing import Any

from rest_framework.response import Response

from chatcore.providers.errors import ProviderError
from chatcore.rest import problems
from chatcore.rest.problems import Problem

# By the problem's type: the status and the code that OpenAI's clients know.
_OPENAI_ERRORS = {
    "context_overflow": (400, "context_length_exceeded"),
    "context_budget_exceeded": (400, "context_length_exceeded"),
    "provider_rejected": (400, "provider_rejected"),
    "provider_rate_limited": (429, "rate_limit_exceeded"),
    "too_many_turns": (429, "rate_limit_exceeded"),
    "not_authenticated": (401, "invalid_api_key"),
    "authentication_failed": (401, "invalid_api_key"),
    "too_large": (413, "request_too_large"),
    "validation_failed": (400, None),
}
_RETRYABLE_TYPES = frozenset(
    {"turn_running", "internal_error"}
)  # of 409 and 5xx, what may be otherwise a moment later; clients try those again
_FINAL_TYPES = frozenset({"provider_auth", "no_model", "tool_rounds_exceeded"})


class OpenAIProblem(Problem):
    """A refusal of this face's own; `param` is the field it is about."""

    def __init__(self, status: int, code: str, detail: str, *, param: str | None = None) -> None:
        super().__init__(status, code, detail)
        self.members = {"param": param} if param else {}


def from_provider_error(error: ProviderError) -> Problem:
    """What a provider's failure is to a client."""
    return Problem(error.status, error.type, error.detail, retry_after=error.retry_after)


def handle_exception(error: Exception, context: dict[str, Any]) -> Response:
    """Any exception of a view in OpenAI's words; what nobody foresaw is logged with its trace and told without it."""
    response = problems.handle_exception(error, context)
    kind = response.data["type"]
    response.status_code, response.data = format_error(response.data)
    response.content_type = "application/json"
    if _is_final(kind, response.status_code):
        response.headers["x-should-retry"] = "false"
    return response


def format_error(problem: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status and the body that OpenAI would give for a problem."""
    status, code = _OPENAI_ERRORS.get(problem["type"], (problem["status"], problem["type"]))
    param = problem.get("param")
    if param is None and problem.get("errors"):
        param = problem["errors"][0]["field"] or None
    if code == "context_length_exceeded":
        param = "messages"
    kind = (
        "server_error"
        if status >= 500
        else "requests"
        if status == 429
        else "invalid_request_error"
    )
    return status, {
        "error": {"message": problem["detail"], "type": kind, "param": param, "code": code}
    }


def format_stream_error(problem: Problem) -> dict[str, Any]:
    """The same, of what goes wrong when the stream has begun."""
    return format_error(
        {"type": problem.type, "status": problem.status_code, "detail": str(problem.detail)}
    )[1]


def _is_final(kind: str, status: int) -> bool:
    """Whether it is no use to send the same again, where a client would by itself."""
    return kind in _FINAL_TYPES or (status == 409 and kind not in _RETRYABLE_TYPES)


def to_problem(error: Exception) -> Problem | None:
    """The problem that an exception is, if it is one that a client may be told of."""
    if isinstance(error, ProviderError):
        return from_provider_error(error)
    return error if isinstance(error, Problem) else None
