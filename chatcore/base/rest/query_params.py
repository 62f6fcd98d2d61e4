"""Refuse query parameters that a route does not have, for all routes of /api/v1."""

import threading
from typing import TYPE_CHECKING

from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.settings import api_settings

if TYPE_CHECKING:  # views are defined with this module's class, so they are imported after it
    from drf_spectacular.openapi import AutoSchema
    from rest_framework.views import APIView

ROUTES = "api/v1/"  # OpenAI's clients, for example, may send what they like to /v1
MAX_NAME_CHARS = 100  # that a refusal repeats
UNKNOWN_DETAIL = "There is no such parameter."

_names_by_handler: dict[tuple[type, str], frozenset[str]] = {}
_lock = threading.Lock()


class KnownParameters(BasePermission):
    """Let only requests pass whose parameters the OpenAPI document describes.

    A misspelled filter would otherwise return everything. It is a permission because these are
    asked on every route, right after the sender is known: who has no token learns nothing.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return True, or raise the 400 problem that names each unknown parameter."""
        match = request.resolver_match
        if not request.query_params or match is None or ROUTES not in match.route:
            return True
        unknown_names = set(request.query_params) - list_parameter_names(view, request)
        if unknown_names:
            raise serializers.ValidationError(
                {name[:MAX_NAME_CHARS]: [UNKNOWN_DETAIL] for name in sorted(unknown_names)}
            )
        return True


def list_parameter_names(view: "APIView", request: Request) -> frozenset[str]:
    """Return the names of the query parameters that the route's method documents."""
    method = "GET" if request.method == "HEAD" else str(request.method)
    key = (type(view), method)
    if key not in _names_by_handler:
        # drf-spectacular loads its extensions when they are first used. Two threads that do so at
        # once may leave one of them without its class, for good.
        with _lock:
            _names_by_handler[key] = frozenset(_collect_names(view, request, method))
    return _names_by_handler[key]


def _collect_names(view: "APIView", request: Request, method: str) -> set[str]:
    from drf_spectacular.plumbing import ComponentRegistry

    handler = getattr(view, method.lower(), None)
    schema_class = getattr(handler, "kwargs", {}).get("schema", api_settings.DEFAULT_SCHEMA_CLASS)
    schema: AutoSchema = schema_class()
    schema.view = view
    path = request.path_info
    operation = schema.get_operation(path, path, "", method, ComponentRegistry()) or {}
    return {
        parameter["name"]
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    }
