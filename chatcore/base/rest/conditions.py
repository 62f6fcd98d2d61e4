"""Conditional requests (RFC 9110): change only what is still as the client knows it.

A context has a number as its ETag, its version; anything else has a hash of what is shown of it.
"""

import hashlib
import json

from django.utils.decorators import method_decorator
from django.views.decorators.http import conditional_page
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from chatcore.base.rest.problems import Problem

IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="A `context_version`, as in `ETag`: change that version, or nothing (412).",
)
ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="The `context_version`, in quotes.",
)
IF_UNCHANGED = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` as it was read: change it in that state, or not at all (412).",
)
ENTITY_TAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200, 201],
    description="Names the state that is returned, for `If-Match` and `If-None-Match`.",
)
CHANGED_RESPONSES: dict[int, OpenApiResponse] = {
    412: OpenApiResponse(description="It is not in the state that If-Match names.")
}
CONTEXT_CHANGED_RESPONSES = {
    412: OpenApiResponse(description="The context is not at the version that If-Match names.")
}

# For views: what If-None-Match names is not sent again (304). Not for what has the version of the
# context as its ETag: that stays the same while messages are added.
answers_unchanged = method_decorator(conditional_page, name="dispatch")


def build_etag_headers(version: int) -> dict[str, str]:
    """Return the ETag header that names a version of the context."""
    return {"ETag": f'"{version}"'}


def check_if_match(request: Request, version: int) -> int | None:
    """Return the version that the client wants to change, or None if it set no condition.

    `version` is the current one. Raises the 412 problem if If-Match does not name it.
    """
    if not has_condition(request):
        return None
    if str(version) not in _list_tags(request):
        raise build_context_changed_problem(version)
    return version


def build_context_changed_problem(version: int) -> Problem:
    """Build the 412 problem that tells the client the current version."""
    detail = f"The context is at version {version}, which If-Match does not name."
    return Problem(412, "context_changed", detail, context_version=version)


def has_condition(request: Request) -> bool:
    """Return True if the client wants to change one state only."""
    return request.headers.get("If-Match", "*").strip() != "*"


def build_entity_tag(representation: object) -> str:
    """Return the strong ETag of what is shown of a resource, in quotes."""
    text = json.dumps(representation, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def build_entity_headers(representation: object) -> dict[str, str]:
    """Return the ETag header of what is shown of a resource."""
    return {"ETag": build_entity_tag(representation)}


def check_entity_tag(request: Request, representation: object) -> None:
    """Raise the 412 problem unless If-Match names this state, or the client set no condition.

    Call it with the row locked, so that nobody changes it before the write.
    """
    if not has_condition(request):
        return
    tag = build_entity_tag(representation)
    if tag.strip('"') not in _list_tags(request):
        detail = "It has changed since it was read, or If-Match never named a state of it."
        raise Problem(412, "changed", f"{detail} Read it again.", etag=tag)


def _list_tags(request: Request) -> set[str]:
    return {tag.strip().strip('"') for tag in request.headers.get("If-Match", "").split(",")}
