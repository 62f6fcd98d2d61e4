"""The OpenAPI document: what spectacular cannot know, which is which problems an operation can answer with."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema as Base

from chatcore.rest.problems import MEDIA_TYPE, ProblemSchema

ALWAYS = {"401": "No token, or one that is not valid.", "403": "The CSRF token is missing."}
WITH_PATH = {"404": "There is none, or it is not yours."}
WITH_BODY = {
    "400": "Not JSON, or a field that cannot be taken.",
    "413": "Too large.",
    "415": "Not JSON by its Content-Type.",
}
WITH_QUERY = {"400": "A parameter that cannot be taken."}


class AutoSchema(Base):
    """Adds to each operation the problems that follow from its shape; those it declares itself are given their body."""

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        declared = {code: body["description"] for code, body in bodies.items() if code >= "400"}
        reference = self.resolve_serializer(ProblemSchema, direction).ref
        for code, description in sorted((self._implied() | declared).items()):
            bodies[code] = {
                "description": description,
                "content": {MEDIA_TYPE: {"schema": reference}},
            }
        return bodies

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        mapped: dict[str, Any] = super()._map_basic_serializer(serializer, direction)
        return (
            mapped | {"additionalProperties": False}
            if getattr(serializer, "closed", False)
            else mapped
        )

    def _implied(self) -> dict[str, str]:
        implied = dict(ALWAYS)
        if "{" in self.path:
            implied |= WITH_PATH
        if any(parameter["in"] != "path" for parameter in self._get_parameters()):
            implied |= WITH_QUERY
        if self.method in ("POST", "PATCH") and self._get_request_body():
            implied |= WITH_BODY
        return implied


class BearerScheme(OpenApiAuthenticationExtension):
    """How to sign in with a token."""

    target_class = "chatcore.rest.auth.BearerToken"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """RFC 6750."""
        return {"type": "http", "scheme": "bearer"}


def one_of_each(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """The addresses as they are written in the contract: without their twins that end in a slash."""
    return [endpoint for endpoint in endpoints if not endpoint[0].endswith("/")]
