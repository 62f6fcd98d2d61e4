"""MCP servers in the REST API."""

from django.db import IntegrityError, transaction
from rest_framework import serializers

from chatcore.base.rest.fields import StrictBooleanField, StrictSerializer, StrictTextField
from chatcore.models import McpServer
from chatcore.models.mcp_server import MAX_NAME_CHARS, NAME_PATTERN
from chatcore.tools.mcp import catalog
from chatcore.tools.mcp.addresses import check_address, check_headers

NAME_TAKEN = "Another server has this name."


class McpToolSerializer(serializers.Serializer[object]):
    """A tool: what sessions call it, what its server calls it, and what it is for."""

    name = serializers.CharField(source="definition.name")
    tool = serializers.CharField(source="name")
    description = serializers.CharField(source="definition.description")


class McpServerSerializer(StrictSerializer, serializers.ModelSerializer[McpServer]):
    """An MCP server. Its headers are never shown again, only their names."""

    name = serializers.RegexField(
        NAME_PATTERN,
        max_length=MAX_NAME_CHARS,
        help_text="Lower-case letters and digits, and - inside. Tools are mcp__NAME__TOOL.",
    )
    url = StrictTextField(
        max_length=2000, help_text="Of its streamable HTTP; empty where others look after it."
    )
    headers = serializers.DictField(
        child=StrictTextField(),
        required=False,
        write_only=True,
        help_text="Sent with each request, as Authorization. They replace the stored ones.",
    )
    header_names = serializers.SerializerMethodField()
    is_shared = StrictBooleanField(
        required=False, help_text="For everyone, or for some groups. Only staff may set it."
    )
    require_approval = serializers.ChoiceField(McpServer.Approval.choices, required=False)
    is_active = StrictBooleanField(required=False)
    tools = McpToolSerializer(many=True, read_only=True, source="offered_tools")

    class Meta:
        model = McpServer
        fields = (
            "id",
            "name",
            "url",
            "headers",
            "header_names",
            "is_shared",
            "require_approval",
            "is_active",
            "tools",
            "error",
            "refreshed_at",
            "created_at",
        )
        read_only_fields = ("id", "tools", "error", "refreshed_at", "created_at")

    def get_header_names(self, server: McpServer) -> list[str]:
        """Return the names of the headers that are stored."""
        return server.header_names if self._may_look_into(server) else []

    def to_representation(self, server: McpServer) -> dict[str, object]:
        """Return what the user may know of the server."""
        server.offered_tools = catalog.list_tools_of(server)  # type: ignore[attr-defined]
        server.is_shared = server.owner_id is None  # type: ignore[attr-defined]
        fields = super().to_representation(server)
        return fields if self._may_look_into(server) else fields | {"url": "", "error": ""}

    def validate_url(self, text: str) -> str:
        """Refuse what is no address; whether it may be reached is checked at each connection."""
        try:
            return check_address(text)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None

    def validate_headers(self, headers: dict[str, str]) -> dict[str, str]:
        """Refuse headers that cannot be sent."""
        try:
            return check_headers(headers)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from None

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        """Refuse a name twice, and a server that changes its owner."""
        if self.instance is not None and "is_shared" in attrs:
            raise serializers.ValidationError({"is_shared": "Only set when the server is added."})
        if "name" in attrs:
            is_new_shared = attrs.get("is_shared", False)
            owner_id = None if is_new_shared else self.context["request"].user.pk
            if self.instance is not None:
                owner_id = self.instance.owner_id
            others = McpServer.objects.filter(owner_id=owner_id, name=attrs["name"], turn=None)
            if self.instance is not None:
                others = others.exclude(pk=self.instance.pk)
            if others.exists():
                raise serializers.ValidationError({"name": NAME_TAKEN})
        return attrs

    def save(self, **values: object) -> McpServer:
        """Store the server. Refuses a name that another request has taken meanwhile."""
        try:
            with transaction.atomic():
                server: McpServer = super().save(**values)
        except IntegrityError:
            raise serializers.ValidationError({"name": NAME_TAKEN}) from None
        return server

    def update(self, server: McpServer, values: dict[str, object]) -> McpServer:
        """Change the server; a new address does not get the headers of the old one."""
        if values.get("url", server.url) != server.url:
            values.setdefault("headers", {})
        return super().update(server, values)

    def _may_look_into(self, server: McpServer) -> bool:
        user = self.context["request"].user
        return server.owner_id == user.pk or user.has_perm("chatcore.change_mcpserver")
