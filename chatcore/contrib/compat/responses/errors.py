"""Errors of this API: OpenAI's, with `input` where chat completions have messages."""

import logging
from typing import Any

from rest_framework.response import Response

from chatcore.base.rest import problems
from chatcore.base.rest.problems import Problem
from chatcore.contrib.compat.chat_completions import errors as openai_errors

logger = logging.getLogger(__name__)


def handle_exception(error: Exception, context: dict[str, Any]) -> Response:
    """Return any exception of a view in OpenAI's form."""
    response = openai_errors.handle_exception(error, context)
    response.data = {"error": _name_input(response.data["error"])}
    return response


def describe_error(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return the status and the error, in OpenAI's form, for any exception."""
    problem = openai_errors.to_problem(error) or problems.build_outage_problem(error)
    if problem is None:
        logger.error("a response broke off", exc_info=error)
        problem = Problem(500, "internal_error", "Something went wrong on our side.")
    status, body = openai_errors.format_error(problems.build_body(problem))
    return status, _name_input(body["error"])


def describe_failure(type: str, detail: str) -> dict[str, Any]:
    """Return the error of a turn that failed for this reason."""
    _, body = openai_errors.format_error({"type": type, "detail": detail, "status": 502})
    return _name_input(body["error"])


def _name_input(payload: dict[str, Any]) -> dict[str, Any]:
    return payload | {"param": "input"} if payload["param"] == "messages" else payload
