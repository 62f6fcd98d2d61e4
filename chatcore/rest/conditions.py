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
CHANGED = {
    412: OpenApiResponse(description="The context is not at the version that If-Match names.")
}


def etag(version: int) -> dict[str, str]:
    """The header that names a version of the context."""
    return {"ETag": f'"{version}"'}


def wanted(request: Request, version: int) -> int | None:
    """The version to change, or None when the client has no condition. Raises the 412 problem when it is not the present one."""
    given = request.headers.get("If-Match", "*").strip()
    if given == "*":
        return None
    if str(version) not in {tag.strip().strip('"') for tag in given.split(",")}:
        raise changed(version)
    return version


def changed(version: int) -> Problem:
    """The 412 problem, with the present version."""
    detail = f"The context is at version {version}, which If-Match does not name."
    extra: dict[str, Any] = {"context_version": version}
    return Problem(412, "context_changed", detail, **extra)
