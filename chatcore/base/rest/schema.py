"""Complete the OpenAPI document with what drf-spectacular cannot know: the problems."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema as Base

from chatcore.base.rest.fields import BODY_RULE
from chatcore.base.rest.problems import MEDIA_TYPE, ProblemSchemaSerializer

COMMON_PROBLEMS = {
    "400": "A parameter is not known, or not valid.",
    "401": "There is no token, or it is not valid.",
    "403": "The CSRF token is missing.",
    "503": "The server is overloaded, or its database is away or busy; see Retry-After.",
}
CHANGE_PROBLEMS = {"507": "The server has no room left to store anything; see Retry-After."}
PATH_PROBLEMS = {"404": "It does not exist, or it is not yours."}
BODY_PROBLEMS = {
    "400": "The body is not JSON, or a field or parameter is not known or not valid.",
    "413": "The body is too large.",
    "415": "The Content-Type is not JSON.",
}


class ProblemAutoSchema(Base):
    """Adds to each operation the problems that follow from its path, method and parameters.

    Problems that an operation declares itself keep their description and get the body of a problem.
    """

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Return the operation with its problems; None for one that is left out."""
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        bodies = operation["responses"]
        declared_problems = {
            code: body["description"] for code, body in bodies.items() if code >= "400"
        }
        problems = self._collect_implied_problems(operation) | declared_problems
        reference = self.resolve_serializer(ProblemSchemaSerializer, "response").ref
        for code, description in sorted(problems.items()):
            content = {MEDIA_TYPE: {"schema": reference}}
            bodies[code] = {"description": description, "content": content}
        return operation

    def _collect_implied_problems(self, operation: Mapping[str, object]) -> dict[str, str]:
        problems = dict(COMMON_PROBLEMS)
        if self.method != "GET":
            problems |= CHANGE_PROBLEMS
        if "{" in self.path:
            problems |= PATH_PROBLEMS
        if self.method in ("POST", "PATCH") and "requestBody" in operation:
            problems |= BODY_PROBLEMS
        return problems


class CookieScheme(SessionScheme):
    """The security scheme of a browser's session."""

    target_class = "chatcore.base.rest.auth.CookieAuthentication"


class BearerScheme(OpenApiAuthenticationExtension):
    """The security scheme of bearer tokens."""

    target_class = "chatcore.base.rest.auth.BearerTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """Return the scheme for the OpenAPI document (RFC 6750)."""
        return {"type": "http", "scheme": "bearer"}


def drop_slash_twins(
    endpoints: list[tuple[str, str, str, object]],
) -> list[tuple[str, str, str, object]]:
    """Return the endpoints without those whose path ends in a slash.

    Every route also works with a slash at its end, which the document need not repeat.
    """
    return [endpoint for endpoint in endpoints if not endpoint[0].endswith("/")]


def apply_body_rules(result: dict[str, Any], **_: object) -> dict[str, object]:
    """Return the document with the rules of bodies (`fields.body_rules`) in place."""
    for schema in result["components"]["schemas"].values():
        for name in [name for name in schema if name.startswith(BODY_RULE)]:
            schema[name.removeprefix(BODY_RULE)] = schema.pop(name)
    return result
