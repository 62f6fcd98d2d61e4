"""Conditional requests (RFC 9110): change only the version of the context that a client knows."""

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
    """Return the ETag header that names a version of the context."""
    return {"ETag": f'"{version}"'}


def check_if_match(request: Request, version: int) -> int | None:
    """Return the version that the client wants to change, or None if it set no condition.

    `version` is the current one. Raises the 412 problem if If-Match does not name it.
    """
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    if str(version) not in {tag.strip().strip('"') for tag in header.split(",")}:
        raise build_context_changed_problem(version)
    return version


def build_context_changed_problem(version: int) -> Problem:
    """Build the 412 problem that tells the client the current version."""
    detail = f"The context is at version {version}, which If-Match does not name."
    return Problem(412, "context_changed", detail, context_version=version)
