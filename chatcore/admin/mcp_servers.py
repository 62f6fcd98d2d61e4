"""The admin pages of MCP servers, and of what was decided about their tools."""

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from chatcore.admin.base import ChatcoreAdmin, ReadOnlyAdmin
from chatcore.admin.texts import SESSION_TEXTS, render_preformatted
from chatcore.models import McpServer, ToolApproval
from chatcore.models.mcp_server import COMMAND_SCHEME
from chatcore.tools.mcp.refresh import refresh_server
from chatcore.tools.mcp.server_form import ServerForm


class McpServerForm(ServerForm):
    """The form of a server, which may be a command of this machine too."""

    new_headers = forms.CharField(
        label="Headers",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "class": "vLargeTextField"}),
        help_text=(
            "One a line, as Authorization: Bearer …. They are stored encrypted and never shown"
            " again. Empty keeps the stored ones, unless the address changes."
        ),
    )
    clear_headers = forms.BooleanField(label="Clear the stored headers", required=False)

    class Meta(ServerForm.Meta):
        fields = ("name", "url", "require_approval", "is_active", "groups")

    def clean_url(self) -> str:
        """Refuse what is neither an address nor a command."""
        url: str = self.cleaned_data["url"]
        return url if url.startswith(COMMAND_SCHEME) else super().clean_url()


@admin.register(McpServer)
class McpServerAdmin(ChatcoreAdmin):
    form = McpServerForm
    list_display = ("name", "owner", "url", "require_approval", "is_active", "refreshed_at")
    list_filter = ("is_active", ("owner", admin.EmptyFieldListFilter))
    list_select_related = ("owner",)
    search_fields = ("name", "url")
    filter_horizontal = ("groups",)
    actions = ("refresh",)
    readonly_fields = ("owner", "header_names", "offered_tools", "error", "refreshed_at")
    fields = (
        "name",
        "owner",
        "url",
        "new_headers",
        "clear_headers",
        "header_names",
        "require_approval",
        "groups",
        "is_active",
        "offered_tools",
        "error",
        "refreshed_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[McpServer]:
        # Those of single requests are no operator's business, and go with their turns.
        return super().get_queryset(request).filter(turn=None)

    @admin.display(description="Tools")
    def offered_tools(self, server: McpServer) -> str:
        return render_preformatted("\n".join(tool["name"] for tool in server.tools))

    @admin.action(description="Ask for the tools again", permissions=["change"])
    def refresh(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        for server in servers:
            self._refresh(request, server)

    def save_model(
        self, request: HttpRequest, obj: McpServer, form: McpServerForm, change: bool
    ) -> None:
        """Write the edited columns, and the headers with those that decide where they are sent."""
        super().save_model(request, obj, form, change)
        if change and form.changes_connection:
            obj.save(update_fields=["encrypted_headers", "header_names"])

    def save_related(
        self, request: HttpRequest, form: McpServerForm, formsets: object, change: bool
    ) -> None:
        """Ask a new server, or one at another address, for its tools."""
        super().save_related(request, form, formsets, change)
        if form.changes_connection:
            self._refresh(request, form.instance)

    def _refresh(self, request: HttpRequest, server: McpServer) -> None:
        if refresh_server(server):
            self.message_user(request, f"{server} offers {len(server.tools)} tools.")
        else:
            self.message_user(request, server.error, messages.WARNING)


@admin.register(ToolApproval)
class ToolApprovalAdmin(ReadOnlyAdmin):
    content_fields = ("tool_call_id",)  # and the titles of sessions
    list_display = ("created_at", "session", "server", "tool", "decision")
    narrow_filters = ("decision",)
    sortable_by = ()
    list_select_related = ("session", "server")
    list_defer = SESSION_TEXTS
    ordering = ("-pk",)
