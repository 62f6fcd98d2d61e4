"""The admin page of providers with a test of the connection, the one of the chat's settings."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chatcore.web.providers import call_provider
from models_registry.admin import ProviderAdmin
from models_registry.models import Provider
from models_registry.provider_form import CONNECT_PERMISSION

admin.site.unregister(Provider)


@admin.register(Provider)
class ConnectedProviderAdmin(ProviderAdmin):
    """Providers, which the registry cannot ask itself: it knows no protocol."""

    readonly_fields: ClassVar[Any] = (*ProviderAdmin.readonly_fields, "connection_test")

    def get_urls(self) -> list[Any]:
        """Add the address of the test."""
        page = path(
            "<int:pk>/test/",
            self.admin_site.admin_view(self.test_connection),
            name="models_registry_provider_test",
        )
        return [page, *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Add the test to the page of a stored provider, for those who may connect it."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or not request.user.has_perm(CONNECT_PERMISSION):
            return fieldsets
        return (*fieldsets, (_("Test"), {"fields": ("connection_test",)}))

    @admin.display(description="Connection")
    def connection_test(self, provider: Provider) -> SafeString:
        """Return a button that asks one of the provider's models for a word."""
        return format_html(
            '<button class="admin-button" formaction="{}" formmethod="post" formnovalidate>{}'
            '</button> <span class="admin-hint">{}</span>',
            reverse("admin:models_registry_provider_test", args=[provider.pk]),
            _("Test"),
            _("One tiny call with what is stored; save first what you have changed."),
        )

    def test_connection(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask the provider for a word, say how that went, and go back to its page."""
        if request.method != "POST" or not request.user.has_perm(CONNECT_PERMISSION):
            raise PermissionDenied
        provider = get_object_or_404(Provider, pk=pk)
        result = call_provider(provider, user=request.user)
        if "problem" in result:
            self.message_user(request, str(result["problem"]), messages.ERROR)
        else:
            sentence = _("%(model)s answered within %(seconds).1f seconds.")
            self.message_user(request, sentence % result, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:models_registry_provider_change", args=[pk]))
