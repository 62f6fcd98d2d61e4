"""The admin pages of MCP servers, and of what was decided about their tools."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from chatcore.admin.read_only import ReadOnlyAdmin, render_preformatted
from chatcore.models import McpServer, ToolApproval
from chatcore.models.mcp_server import COMMAND_SCHEME
from chatcore.tools.mcp.addresses import check_address, check_headers
from chatcore.tools.mcp.refresh import refresh_server


class McpServerForm(forms.ModelForm):
    """The form of a server, with write-only headers that only its own address gets."""

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

    class Meta:
        model = McpServer
        fields = ("name", "url", "require_approval", "is_active", "groups")

    def clean_url(self) -> str:
        """Refuse what is neither an address nor a command."""
        url: str = self.cleaned_data["url"]
        if url.startswith(COMMAND_SCHEME):
            return url
        try:
            return check_address(url)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    def clean_new_headers(self) -> dict[str, str]:
        """Return the headers by name."""
        headers = {}
        for line in self.cleaned_data["new_headers"].splitlines():
            name, separator, value = line.partition(":")
            if line.strip() and not separator:
                raise forms.ValidationError("Each line is a name, a colon and a value.")
            if separator:
                headers[name.strip()] = value.strip()
        try:
            return check_headers(headers)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    def save(self, commit: bool = True) -> Any:
        """Encrypt typed headers, or clear those that were stored for another address."""
        if self.cleaned_data["new_headers"]:
            self.instance.headers = self.cleaned_data["new_headers"]
        elif self.cleaned_data["clear_headers"] or "url" in self.changed_data:
            self.instance.headers = {}
        return super().save(commit)


@admin.register(McpServer)
class McpServerAdmin(admin.ModelAdmin):
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

    @admin.display(description="Tools")
    def offered_tools(self, server: McpServer) -> str:
        return render_preformatted("\n".join(tool["name"] for tool in server.tools))

    @admin.action(description="Ask for the tools again", permissions=["change"])
    def refresh(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        for server in servers:
            self._refresh(request, server)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Ask a new server, or one at another address, for its tools."""
        super().save_related(request, form, formsets, change)
        if not change or {"url", "new_headers", "clear_headers"} & {*form.changed_data}:
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
    list_filter = ("decision", "created_at")
    list_select_related = ("session", "server")
    ordering = ("-created_at",)
