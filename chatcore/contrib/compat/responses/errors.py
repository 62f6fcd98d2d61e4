"""Errors of this API: OpenAI's, with `input` where chat completions have messages."""

from collections.abc import Mapping
from typing import Any

from chatcore.contrib.compat.chat_completions import errors as openai_errors
from chatcore.contrib.compat.chat_completions.views import CompatibleAPIView


def format_error(problem: Mapping[str, object]) -> tuple[int, dict[str, Any]]:
    """Return the status and the body in OpenAI's form, given the body of a problem."""
    status, body = openai_errors.format_error(problem)
    if body["error"]["param"] == "messages":
        body["error"]["param"] = "input"
    return status, body


def describe_error(error: Exception) -> tuple[int, dict[str, object]]:
    """Return the status and the error, in OpenAI's form, for any exception."""
    status, body = format_error(openai_errors.describe_failure(error))
    return status, body["error"]


def describe_failure(type: str, detail: str) -> dict[str, object]:
    """Return the error of a turn that failed for this reason."""
    return format_error({"type": type, "detail": detail, "status": 502})[1]["error"]


class ResponsesAPIView(CompatibleAPIView):
    """A view with errors in the form of this API."""

    def format_error(self, problem: Mapping[str, object]) -> tuple[int, dict[str, object]]:
        """Return the status and the body for the body of a problem."""
        return format_error(problem)
