"""Errors in Anthropic's form, statuses and types, so that its clients raise their usual ones."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.rest import turn_rate
from chatcore.base.rest.problems import Problem
from chatcore.contrib.compat.chat_completions.errors import OPENAI_ERRORS
from chatcore.contrib.compat.chat_completions.memory import MISSING_RESULTS_DETAIL
from chatcore.contrib.compat.chat_completions.views import CompatibleAPIView

# By the status, if no type of a problem says more.
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUSES = {"overloaded": 529, "provider_overloaded": 529, "budget_spent": 402}
# Words in Anthropic's own messages by which libraries know these errors, around our sentence.
MESSAGES = {
    "context_overflow": "prompt is too long: {}",
    "context_budget_exceeded": "prompt is too long: {}",
}
MISSING_RESULTS_MESSAGE = (
    "messages: `tool_use` ids were found without `tool_result` blocks immediately after: "
)


class MessagesProblem(Problem):
    """A problem of this API alone, with a code by which its clients know the cause."""

    def __init__(
        self, error_code: str, detail: str, *, status: int = 400, **members: object
    ) -> None:
        details = {"error_code": error_code} | members
        super().__init__(status, error_code, detail, details=details)


def format_error(problem: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the status and the body in Anthropic's form, given the body of a problem."""
    type = problem["type"]
    status: int = STATUSES.get(type) or problem["status"]
    if type in OPENAI_ERRORS:
        status = OPENAI_ERRORS[type][0]
    message = MESSAGES.get(type, "{}").format(problem["detail"])
    message = message.replace(f"messages: {MISSING_RESULTS_DETAIL}", MISSING_RESULTS_MESSAGE)
    default_type = "api_error" if status >= 500 else "invalid_request_error"
    error: dict[str, object] = {"type": ERROR_TYPES.get(status, default_type), "message": message}
    if "details" in problem:
        error["details"] = problem["details"]
    return status, {"type": "error", "error": error, "request_id": get_request_id()}


def get_request_id() -> str | None:
    """Return the id of the request that this thread or task answers."""
    request_id = structlog.contextvars.get_contextvars().get("request")
    return str(request_id) if request_id else None


class MessagesAPIView(CompatibleAPIView):
    """A view with errors and headers in Anthropic's form."""

    def format_error(self, problem: Mapping[str, object]) -> tuple[int, dict[str, object]]:
        """Return the status and the body for the body of a problem."""
        return format_error(problem)

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        """Add the headers about the user's limit of turns under Anthropic's names."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if request.user:
            limit, remaining, seconds = turn_rate.describe_turns(request.user.pk)
            reset_at = datetime.now(UTC) + timedelta(seconds=seconds)
            response.headers["anthropic-ratelimit-requests-limit"] = str(limit)
            response.headers["anthropic-ratelimit-requests-remaining"] = str(remaining)
            response.headers["anthropic-ratelimit-requests-reset"] = f"{reset_at:%Y-%m-%dT%XZ}"
        return response
