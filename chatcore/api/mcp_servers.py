"""MCP servers, whose tools sessions may choose: a user's own, and those that are shared."""

from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.serializers.mcp_servers import McpServerSerializer
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.rest import turn_rate
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.models import McpServer
from chatcore.models.mcp_server import MAX_SERVERS, McpServerQuerySet
from chatcore.tools.mcp.refresh import refresh_server

CONNECTION_FIELDS = {"url", "headers"}


class McpServerListView(GenericAPIView[McpServer]):
    """The MCP servers that the user may use."""

    serializer_class = McpServerSerializer

    def get_queryset(self) -> QuerySet[McpServer]:
        """Return the user's servers and the shared ones, newest first."""
        return _query_servers(self.request.user).order_by("-created_at", "-id")

    @extend_schema(operation_id="list_mcp_servers", responses=McpServerSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return a page of servers with their tools."""
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(operation_id="create_mcp_server", responses={201: McpServerSerializer})
    def post(self, request: Request) -> Response:
        """Add a server and ask it for its tools; `error` says why it could not be asked."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        is_shared = serializer.validated_data.pop("is_shared", False)
        if is_shared and not request.user.has_perm("chatcore.add_mcpserver"):
            raise PermissionDenied("Only staff may share a server with everyone.")
        own_servers = McpServer.objects.owned_by(request.user)
        turn_rate.count_turn(request)
        with transaction.atomic():
            lock_person(request.user.pk)
            if not is_shared and own_servers.count() >= MAX_SERVERS:
                detail = f"There are already {MAX_SERVERS} servers, the most."
                raise InvalidFieldError("name", detail)
            server = serializer.save(owner=None if is_shared else request.user)
        refresh_server(server)
        return Response(self.get_serializer(server).data, status=201)


class McpServerDetailView(GenericAPIView[McpServer]):
    """One MCP server."""

    serializer_class = McpServerSerializer

    @extend_schema(operation_id="read_mcp_server")
    def get(self, request: Request, server_id: UUID) -> Response:
        """Return a server with its tools."""
        return Response(self.get_serializer(_get_server(request, server_id)).data)

    @extend_schema(operation_id="update_mcp_server")
    def patch(self, request: Request, server_id: UUID) -> Response:
        """Change a server. With another address it loses its headers, unless they come too."""
        server = _get_server(request, server_id, "chatcore.change_mcpserver")
        serializer = self.get_serializer(server, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changes_connection = not CONNECTION_FIELDS.isdisjoint(serializer.validated_data)
        if changes_connection:
            turn_rate.count_turn(request)
        server = serializer.save()
        if changes_connection:
            refresh_server(server)
        return Response(self.get_serializer(server).data)

    @extend_schema(operation_id="delete_mcp_server", responses={204: None})
    def delete(self, request: Request, server_id: UUID) -> Response:
        """Delete a server, with what was decided about its tools."""
        _get_server(request, server_id, "chatcore.delete_mcpserver").delete()
        return Response(status=204)


class McpServerRefreshView(GenericAPIView[McpServer]):
    """Asking a server for its tools again."""

    serializer_class = McpServerSerializer

    @extend_schema(operation_id="refresh_mcp_server", request=None)
    def post(self, request: Request, server_id: UUID) -> Response:
        """Ask the server for its tools; `error` says why it could not be asked."""
        server = _get_server(request, server_id, "chatcore.change_mcpserver")
        turn_rate.count_turn(request)
        refresh_server(server)
        return Response(self.get_serializer(server).data)


def _get_server(request: Request, server_id: UUID, permission: str = "") -> McpServer:
    """Return a server that the user may see, and with `permission` change if it is shared.

    Raises Http404, also where a shared one may be seen and not be changed.
    """
    user = request.user
    server = get_object_or_404(_query_servers(user), pk=server_id)
    if server.owner_id is None and permission and not user.has_perm(permission):
        raise Http404
    return server


def _query_servers(user: User | AnonymousUser) -> McpServerQuerySet:
    """Return the servers that a user may use, and for staff all shared ones."""
    servers = McpServer.objects.visible_to(user)
    if user.has_perm("chatcore.change_mcpserver"):
        servers = (servers | McpServer.objects.filter(owner=None).distinct()).distinct()
    return servers
