"""The form of an MCP server, with headers that are written and never shown. Pages add its look."""

from django import forms
from django.utils.translation import gettext_lazy as _

from chatcore.models import McpServer
from chatcore.tools.mcp.addresses import MAX_HEADERS, check_address, check_headers

CONNECTION_FIELDS = {"url", "new_headers", "clear_headers"}


class ServerForm(forms.ModelForm):
    """Check a server as the REST API does. Its headers go to the address they were typed for."""

    new_headers = forms.CharField(required=False)
    clear_headers = forms.BooleanField(required=False)

    class Meta:
        model = McpServer
        fields: tuple[str, ...] = ("name", "url", "require_approval", "is_active")

    @property
    def changes_connection(self) -> bool:
        """Return whether the server is new or must be asked for its tools again."""
        return not CONNECTION_FIELDS.isdisjoint(self.changed_data)

    def clean_url(self) -> str:
        """Refuse what is no address; whether it may be reached is checked at each connection."""
        try:
            return check_address(self.cleaned_data["url"])
        except ValueError:
            error = _("This is not an http or https address without credentials.")
            raise forms.ValidationError(error) from None

    def clean_new_headers(self) -> dict[str, str]:
        """Return the headers by name. An error names the line, never what stands in it."""
        headers: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["new_headers"].splitlines(), 1):
            name, _colon, value = line.partition(":")
            if not line.strip():
                continue
            try:
                headers |= check_headers({name.strip(): value.strip()})
            except ValueError:
                error = _("Line %(number)d is not the name of a header, a colon and a plain value.")
                raise forms.ValidationError(error, params={"number": number}) from None
        if len(headers) > MAX_HEADERS:
            error = _("At most %(count)d headers.")
            raise forms.ValidationError(error, params={"count": MAX_HEADERS})
        return headers

    def save(self, commit: bool = True) -> object:
        """Encrypt typed headers, or clear those that were stored for another address."""
        if self.cleaned_data["new_headers"]:
            self.instance.headers = self.cleaned_data["new_headers"]
        elif self.cleaned_data["clear_headers"] or "url" in self.changed_data:
            self.instance.headers = {}
        return super().save(commit)
