"""Conditions of a request: changes of what the model sees that are made only if it still is the version that the client knows."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from chatcore.rest.problems import Problem

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
CONTEXT_CHANGED_RESPONSES = {
    412: OpenApiResponse(description="The context is not at the version that If-Match names.")
}


def build_etag_headers(version: int) -> dict[str, str]:
    """The header that names a version of the context."""
    return {"ETag": f'"{version}"'}


def check_if_match(request: Request, version: int) -> int | None:
    """The version to change, or None when the client has no condition. Raises the 412 problem when it is not the present one."""
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    if str(version) not in {tag.strip().strip('"') for tag in header.split(",")}:
        raise build_context_changed_problem(version)
    return version


def build_context_changed_problem(version: int) -> Problem:
    """The 412 problem, with the present version."""
    detail = f"The context is at version {version}, which If-Match does not name."
    members: dict[str, Any] = {"context_version": version}
    return Problem(412, "context_changed", detail, **members)
