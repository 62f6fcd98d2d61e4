"""Errors as the API words them: RFC 9457 problem details that name the fields, never a stack trace."""

import logging
import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 50  # a wrong import of 10,000 messages need not say so 10,000 times
TYPES = {"invalid": "validation_failed", "error": "error"}


class Problem(exceptions.APIException):
    """A refusal with a `type` of its own; `members` are added to the body, `retry_after` (seconds) to the headers."""

    def __init__(
        self,
        status: int,
        type: str,
        detail: str,
        *,
        retry_after: float | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status_code = status
        self.type = type
        self.members = members
        self.wait = retry_after


class TooLargeProblem(Problem):
    """Over a limit of size."""

    def __init__(self, detail: str) -> None:
        super().__init__(413, "too_large", detail)


class InvalidFieldError(exceptions.ValidationError):
    """One field that cannot be taken, by its path, as in messages[3].role."""

    def __init__(self, field: str, detail: str) -> None:
        detail_tree: Any = [detail]
        for part in reversed(re.findall(r"[^.\[\]]+", field)):
            detail_tree = {int(part) if part.isdigit() else part: detail_tree}
        super().__init__(detail_tree)


def handle_exception(error: Exception, context: dict[str, Any]) -> Response:
    """Any exception of a view as a problem; what nobody foresaw is logged with its trace and told without it."""
    problem = _to_api_exception(error, context)
    headers = {}
    if getattr(problem, "auth_header", None):
        headers["WWW-Authenticate"] = problem.auth_header  # type: ignore[attr-defined]
    retry_after = getattr(problem, "wait", None)
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, round(retry_after)))
    return Response(
        _build_body(problem), status=problem.status_code, headers=headers, content_type=MEDIA_TYPE
    )


def _to_api_exception(error: Exception, context: dict[str, Any]) -> exceptions.APIException:
    if isinstance(error, exceptions.APIException):
        return error
    if isinstance(
        error, (Http404, ObjectDoesNotExist)
    ):  # the second: it was deleted while the request ran
        return exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(error, RequestDataTooBig):
        return TooLargeProblem("The request body is too large.")
    logger.error("unforeseen error in %s", type(context.get("view")).__name__, exc_info=error)
    return Problem(500, "internal_error", "Something went wrong on our side.")


def _build_body(error: exceptions.APIException) -> dict[str, Any]:
    kind = error.type if isinstance(error, Problem) else error.default_code
    body: dict[str, Any] = {
        "type": TYPES.get(kind, kind),
        "title": HTTPStatus(error.status_code).phrase,
        "status": error.status_code,
        "detail": error.detail
        if isinstance(error.detail, str)
        else "Some fields cannot be taken as they are.",
    }
    if not isinstance(error.detail, str):
        body["errors"] = [
            _format_field_error(path, detail) for path, detail in _flatten_detail(error.detail)
        ][:MAX_ERRORS]
        if len(body["errors"]) == 1:
            body["detail"] = ": ".join(
                part for part in (body["errors"][0]["field"], body["errors"][0]["detail"]) if part
            )
    return body | getattr(error, "members", {})


def _flatten_detail(
    detail: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flatten_detail(value, path if key == "non_field_errors" else (*path, key))
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            yield from _flatten_detail(value, (*path, index) if isinstance(value, dict) else path)
    else:
        yield path, str(detail)


def _format_field_error(path: tuple[str | int, ...], detail: str) -> dict[str, str]:
    field = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in path
    ).removeprefix(".")
    pointer = "#" + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return {"field": field, "pointer": pointer, "detail": detail}


class FieldErrorSchemaSerializer(serializers.Serializer[Any]):
    """One field that was refused."""

    field = serializers.CharField(help_text="Its path, as in messages[3].role.")
    pointer = serializers.CharField(help_text="The same as a JSON pointer.")
    detail = serializers.CharField()


class ProblemSchemaSerializer(serializers.Serializer[Any]):
    """RFC 9457 problem details."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = FieldErrorSchemaSerializer(many=True, required=False)  # type: ignore[assignment]
    turn = serializers.UUIDField(
        required=False, help_text="The turn it is about, where it is about one."
    )
    context_version = serializers.IntegerField(
        required=False, help_text="The present one, where another was to change."
    )
    user_message = serializers.IntegerField(
        required=False, help_text="The stored message that got no answer."
    )
