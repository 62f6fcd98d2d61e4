"""Errors in OpenAI's form, statuses and codes, so that its clients raise their usual exceptions."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.exceptions import APIException
from rest_framework.response import Response

from chatcore.api import errors as api_errors
from chatcore.base.rest import problems
from chatcore.base.rest.problems import InvalidFieldError, Problem
from chatcore.providers.errors import ProviderError
from chatcore.transfer import reader

logger = logging.getLogger(__name__)

# Given the body of a problem: the status and the body in the form of an API.
ErrorForm = Callable[[Mapping[str, object]], tuple[int, dict[str, object]]]
# By the problem's type: the status and the code that OpenAI's clients know.
OPENAI_ERRORS = {
    "context_overflow": (400, "context_length_exceeded"),
    "context_budget_exceeded": (400, "context_length_exceeded"),
    "provider_rejected": (400, "provider_rejected"),
    "provider_rate_limited": (429, "rate_limit_exceeded"),
    "too_many_turns": (429, "rate_limit_exceeded"),
    "budget_spent": (429, "insufficient_quota"),
    "not_authenticated": (401, "invalid_api_key"),
    "authentication_failed": (401, "invalid_api_key"),
    "too_large": (413, "request_too_large"),
    "validation_failed": (400, None),
}
# Words in OpenAI's own messages by which libraries know these errors, around our sentence.
MESSAGES = {
    "context_length_exceeded": (
        "This model's maximum context length is exceeded. {} (context_length_exceeded)"
    ),
    "invalid_api_key": "Incorrect API key provided. {}",
}
# OpenAI's clients repeat a request by themselves after 409 and 5xx. That helps only with these
# 409s, and never with these other types.
RETRYABLE_CONFLICTS = frozenset({"turn_running", "internal_error"})
FINAL_TYPES = frozenset({"provider_auth", "no_model", "tool_rounds_exceeded", "budget_spent"})


class OpenAIProblem(Problem):
    """A problem of this API alone; `param` is the field that it is about."""

    def __init__(self, status: int, code: str, detail: str, *, param: str | None = None) -> None:
        super().__init__(status, code, detail)
        self.members = {"param": param} if param else {}


def handle_exception(
    error: Exception, context: Mapping[str, object], *, format_error: ErrorForm
) -> Response:
    """Return any exception of a view in the form of an API.

    An unexpected exception is logged with its stack trace, and the client gets a plain 500.
    """
    response = problems.handle_exception(to_problem(error) or error, context)
    type = response.data["type"]
    response.status_code, response.data = format_error(response.data)
    response.content_type = "application/json"
    if is_final(type, response.status_code):
        response.headers["x-should-retry"] = "false"
    return response


def describe_failure(error: Exception) -> dict[str, object]:
    """Return the body of the problem for an error after the status has been sent."""
    problem = to_problem(error) or problems.build_outage_problem(error)
    if problem is None:
        logger.error("an answer broke off", exc_info=error)
        problem = Problem(500, "internal_error", "Something went wrong on our side.")
    return problems.build_body(problem)


def to_problem(error: Exception) -> APIException | None:
    """Return the problem for an error; None if a client must not learn more than that it failed."""
    if isinstance(error, APIException):
        return error
    if isinstance(error, ProviderError):
        return Problem(error.status, error.type, error.detail, retry_after=error.retry_after)
    problem = api_errors.to_problem(error)
    if isinstance(error, reader.InvalidImport) and isinstance(problem, InvalidFieldError):
        # The path is one in the messages to import, which the client has not sent in this form.
        return InvalidFieldError("messages", str(error))
    return problem


def format_error(problem: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the status and the body in OpenAI's form, given the body of a problem."""
    status, code = OPENAI_ERRORS.get(problem["type"], (problem["status"], problem["type"]))
    param = problem.get("param")
    if param is None and problem.get("errors"):
        param = problem["errors"][0]["field"] or None
    if code == "context_length_exceeded":
        param = "messages"
    message = MESSAGES.get(code or "", "{}").format(problem["detail"])
    error = {"message": message, "type": _get_type(status), "param": param, "code": code}
    return status, {"error": error}


def _get_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return "requests" if status == 429 else "invalid_request_error"


def is_final(type: str, status: int) -> bool:
    """Return True if the same request would fail again, so that clients must not repeat it."""
    return type in FINAL_TYPES or (status == 409 and type not in RETRYABLE_CONFLICTS)
