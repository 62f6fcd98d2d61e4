"""Errors of the API as RFC 9457 problem details: they name the fields and show no stack trace."""

import logging
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from chatcore.base.databases.outages import DATABASE_AWAY, find_outage, replace_lost_connections
from chatcore.base.rest.commits import describe_stored_part

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 50  # errors listed in a problem; an import may have 10,000 wrong messages
TYPES_BY_CODE = {"invalid": "validation_failed", "error": "error"}

# What Django raises for a body or a form.
TOO_LARGE_ERRORS = (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent)

ErrorPath = tuple[str | int, ...]  # keys and indexes that lead to a field, as in messages, 3, role


class Problem(exceptions.APIException):
    """An error with a `type` of its own.

    `members` are added to the body, and `retry_after` (seconds) to the headers.
    """

    def __init__(
        self,
        status: int,
        type: str,
        detail: str,
        *,
        retry_after: float | None = None,
        **members: object,
    ) -> None:
        super().__init__(detail)
        self.status_code = status
        self.type = type
        self.members = members
        self.wait = retry_after


class TooLargeProblem(Problem):
    """The 413 problem: something is larger than its limit."""

    def __init__(self, detail: str) -> None:
        super().__init__(413, "too_large", detail)


class InvalidFieldError(exceptions.ValidationError):
    """The 400 problem for one field. `field` is its path, as in messages[3].role."""

    def __init__(self, field: str, detail: str) -> None:
        detail_tree: Any = [detail]
        for part in reversed(re.findall(r"[^.\[\]]+", field)):
            key = int(part) if part.isdigit() else part
            detail_tree = {key: detail_tree}
        super().__init__(detail_tree)


def handle_exception(error: Exception, context: Mapping[str, object]) -> Response:
    """Return the problem for any exception of a view.

    An unexpected exception is logged with its stack trace, and the client gets a plain 500.
    """
    problem = _to_api_exception(error, context)
    return Response(
        build_body(problem),
        status=problem.status_code,
        headers=build_headers(problem),
        content_type=MEDIA_TYPE,
    )


def build_outage_problem(error: BaseException, request: object = None) -> Problem | None:
    """Build the 503 or 507 problem if the error means that the database is away, locked or full.

    It says whether the request has stored something. Returns None for other errors.
    """
    outage = find_outage(error)
    if outage is None:
        return None
    # One line: the reason is not in our code, and there may be many of them.
    logger.warning("%s: %s", outage.type, str(error).partition("\n")[0])
    if outage is DATABASE_AWAY:
        replace_lost_connections()
    sentences = [outage.detail, describe_stored_part(request, error)]
    sentences.append(f"Try again in {outage.retry_after} seconds.")
    detail = " ".join(filter(None, sentences))
    return Problem(outage.status, outage.type, detail, retry_after=outage.retry_after)


def build_headers(error: exceptions.APIException) -> dict[str, str]:
    """Build the headers of a problem: how to authenticate, when to try again."""
    headers = {}
    challenge = getattr(error, "auth_header", None)
    if challenge:
        headers["WWW-Authenticate"] = challenge
    retry_after = getattr(error, "wait", None)
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, round(retry_after)))
    return headers


def build_body(error: exceptions.APIException) -> dict[str, object]:
    """Build the JSON body of a problem."""
    code = error.type if isinstance(error, Problem) else error.default_code
    body: dict[str, object] = {
        "type": TYPES_BY_CODE.get(code, code),
        "title": HTTPStatus(error.status_code).phrase,
        "status": error.status_code,
    }
    if isinstance(error.detail, str):
        body["detail"] = error.detail
    else:
        body |= _describe_field_errors(error.detail)
    return body | getattr(error, "members", {})


def _to_api_exception(error: Exception, context: Mapping[str, object]) -> exceptions.APIException:
    if isinstance(error, exceptions.APIException):
        return error
    # ObjectDoesNotExist: the row was deleted while the request ran.
    if isinstance(error, (Http404, ObjectDoesNotExist)):
        return exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(error, TOO_LARGE_ERRORS):
        return TooLargeProblem("The request body is too large, or has too many fields.")
    outage_problem = build_outage_problem(error, context.get("request"))
    if outage_problem:
        return outage_problem
    logger.error("unexpected error in %s", type(context.get("view")).__name__, exc_info=error)
    return Problem(500, "internal_error", "Something went wrong on our side.")


def _describe_field_errors(detail: object) -> dict[str, object]:
    """Return the members `detail` and `errors`. A single error is also told in `detail`."""
    errors = [_format_field_error(path, text) for path, text in _flatten_detail(detail)]
    errors = errors[:MAX_ERRORS]
    text = "Some fields are not valid."
    if len(errors) == 1:
        parts = (errors[0]["field"], errors[0]["detail"])
        text = ": ".join(part for part in parts if part)
    return {"detail": text, "errors": errors}


def _flatten_detail(detail: object, path: ErrorPath = ()) -> Iterator[tuple[ErrorPath, str]]:
    """Yield each text in the tree of errors that the framework builds, with its path."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from _flatten_detail(value, path if key == "non_field_errors" else (*path, key))
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            # A list of texts belongs to one field; a list of objects has one for each item.
            yield from _flatten_detail(value, (*path, index) if isinstance(value, dict) else path)
    else:
        yield path, str(detail)


def _format_field_error(path: ErrorPath, detail: str) -> dict[str, str]:
    names = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    tokens = ["/" + str(part).replace("~", "~0").replace("/", "~1") for part in path]
    return {
        "field": "".join(names).removeprefix("."),
        "pointer": "#" + "".join(tokens),
        "detail": detail,
    }


class FieldErrorSchemaSerializer(serializers.Serializer[object]):
    """A field that is not valid."""

    field = serializers.CharField(help_text="Its path, for example messages[3].role.")
    pointer = serializers.CharField(help_text="Its path as a JSON pointer (RFC 6901).")
    detail = serializers.CharField()


class ProblemSchemaSerializer(serializers.Serializer[object]):
    """RFC 9457 problem details."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = FieldErrorSchemaSerializer(many=True, required=False)  # type: ignore[assignment]
    turn = serializers.UUIDField(
        required=False, help_text="The turn that the problem is about, if any."
    )
    context_version = serializers.IntegerField(
        required=False, help_text="The current version, if If-Match named another."
    )
    user_message = serializers.IntegerField(
        required=False, help_text="The stored message that was not answered."
    )
