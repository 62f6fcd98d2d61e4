"""The OpenAPI document: what spectacular cannot know, which is which problems an operation can answer with."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema as Base

from chatcore.rest.problems import MEDIA_TYPE, ProblemSchemaSerializer

COMMON_PROBLEMS = {
    "401": "No token, or one that is not valid.",
    "403": "The CSRF token is missing.",
}
PATH_PROBLEMS = {"404": "There is none, or it is not yours."}
BODY_PROBLEMS = {
    "400": "Not JSON, or a field that cannot be taken.",
    "413": "Too large.",
    "415": "Not JSON by its Content-Type.",
}
QUERY_PROBLEMS = {"400": "A parameter that cannot be taken."}


class ProblemAutoSchema(Base):
    """Adds to each operation the problems that follow from its shape; those it declares itself are given their body."""

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        own_descriptions = {
            code: body["description"] for code, body in bodies.items() if code >= "400"
        }
        reference = self.resolve_serializer(ProblemSchemaSerializer, direction).ref
        for code, description in sorted(
            (self._collect_implied_problems() | own_descriptions).items()
        ):
            bodies[code] = {
                "description": description,
                "content": {MEDIA_TYPE: {"schema": reference}},
            }
        return bodies

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        return (
            schema | {"additionalProperties": False}
            if getattr(serializer, "closed", False)
            else schema
        )

    def _collect_implied_problems(self) -> dict[str, str]:
        problems = dict(COMMON_PROBLEMS)
        if "{" in self.path:
            problems |= PATH_PROBLEMS
        if any(parameter["in"] != "path" for parameter in self._get_parameters()):
            problems |= QUERY_PROBLEMS
        if self.method in ("POST", "PATCH") and self._get_request_body():
            problems |= BODY_PROBLEMS
        return problems


class BearerScheme(OpenApiAuthenticationExtension):
    """How to sign in with a token."""

    target_class = "chatcore.rest.auth.BearerTokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """RFC 6750."""
        return {"type": "http", "scheme": "bearer"}


def drop_slash_twins(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """The addresses as they are written in the contract: without their twins that end in a slash."""
    return [endpoint for endpoint in endpoints if not endpoint[0].endswith("/")]
