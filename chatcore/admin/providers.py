"""The admin page of providers, with their models and a test of the connection. It shows no key."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chatcore.admin.base import ChatcoreInline
from chatcore.admin.setup_file import SetupFileAdmin
from chatcore.models import SetupEntry
from chatcore.setup.connection_test import call_provider
from models_registry import catalog
from models_registry.audit import record_connection
from models_registry.models import AiModel, Provider
from models_registry.provider_form import CONNECT_PERMISSION, CONNECTION_FIELDS, ProviderForm

KEY_FIELDS = ("api_key", "clear_api_key", "api_key_env")


class ModelsInline(ChatcoreInline):
    """The models of a provider, on the provider's page. Prices are of a million tokens."""

    model = AiModel
    fields = (
        "name",
        "context_window_size",
        "max_input_tokens",
        "max_output_tokens",
        "output_reserve",
        "input_price",
        "cached_input_price",
        "output_price",
        "supports_tools",
        "supports_images",
        "is_active",
    )
    extra = 0
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[AiModel]:
        """Read the provider with its models, whose names begin with its own."""
        rows: QuerySet[AiModel] = super().get_queryset(request)
        return rows.select_related("provider")

    def has_change_permission(self, request: HttpRequest, obj: Provider | None = None) -> bool:
        """Leave models to their own pages where the file sets some of this provider."""
        may_change: bool = super().has_change_permission(request, obj)
        return may_change and not _has_models_of_file(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Provider | None = None) -> bool:
        may_delete: bool = super().has_delete_permission(request, obj)
        return may_delete and not _has_models_of_file(obj)


@admin.register(Provider)
class ProviderAdmin(SetupFileAdmin):
    setup_section = "providers"
    form = ProviderForm
    inlines = (ModelsInline,)
    list_display = ("name", "protocol", "base_url", "key", "model_count", "is_active")
    list_filter = ("is_active", "protocol")
    search_fields = ("name", "base_url")
    ordering = ("name",)
    readonly_fields = ("key", "connection_test")
    fieldsets = (
        (
            None,
            {
                "fields": ("name", "is_active"),
                "description": (
                    "Switch off what you do not want: the catalog brings deleted rows back."
                ),
            },
        ),
        (
            "Connection",
            {"fields": ("protocol", "base_url", "timeout_seconds", "family", "options", "learned")},
        ),
        ("Key", {"fields": ("key", "api_key", "clear_api_key", "api_key_env")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Provider]:
        return super().get_queryset(request).annotate(model_count=Count("models"))

    def get_object(self, request: HttpRequest, *args: object, **kwargs: object) -> Provider | None:
        """Return the row, locked if it is to be changed: its key and its address must agree."""
        provider: Provider | None = super().get_object(request, *args, **kwargs)
        if provider is not None and request.method == "POST":
            Provider.objects.select_for_update().get(pk=provider.pk)
            provider = super().get_object(request, *args, **kwargs)
        return provider

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and _may_connect(request)

    def get_form(
        self, request: HttpRequest, *args: object, **kwargs: object
    ) -> type[forms.ModelForm]:
        """Return a form without keys for those who may not enter any."""
        if not _may_connect(request):
            kwargs["form"] = forms.ModelForm
        form: type[forms.ModelForm] = super().get_form(request, *args, **kwargs)
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Sequence[str]:
        names: Sequence[str] = super().get_readonly_fields(request, obj)
        return names if _may_connect(request) else (*names, *CONNECTION_FIELDS, "api_key_env")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Add the test to the page of a stored provider; without the right, take the keys away."""
        fieldsets = super().get_fieldsets(request, obj)
        if not _may_connect(request) or self.find_setup_entry(obj):
            fieldsets = [*fieldsets[:-1], ("Key", {"fields": ("key", "api_key_env")})]
        if obj is None or not _may_connect(request):
            return fieldsets
        return [*fieldsets, (_("Test"), {"fields": ("connection_test",)})]

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the test."""
        page = path(
            "<int:pk>/test/",
            self.admin_site.admin_view(self.test_connection),
            name="models_registry_provider_test",
        )
        return [page, *super().get_urls()]

    @admin.display(description="Models", ordering="model_count")
    def model_count(self, provider: Any) -> int:  # annotated
        return int(provider.model_count)

    @admin.display(description="Key in use")
    def key(self, provider: Provider) -> str:
        """Say where the key comes from."""
        if provider.encrypted_api_key:
            return "stored"
        if provider.has_key():
            return f"from {provider.api_key_env}"
        if provider.api_key_env:
            return f"none; {provider.api_key_env} is not set"
        return "none"

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
        if request.method != "POST" or not _may_connect(request):
            raise PermissionDenied
        provider = get_object_or_404(Provider, pk=pk)
        result = call_provider(provider, user=request.user)
        if "problem" in result:
            self.message_user(request, str(result["problem"]), messages.ERROR)
        else:
            sentence = _("%(model)s answered within %(seconds).1f seconds.")
            self.message_user(request, sentence % result, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:models_registry_provider_change", args=[pk]))

    def save_model(
        self, request: HttpRequest, obj: Provider, form: forms.ModelForm, change: bool
    ) -> None:
        """Save the provider, and let the catalog activate it if it has a key now."""
        super().save_model(request, obj, form, change)
        if change and {"api_key", "clear_api_key"} & {*form.changed_data}:
            obj.save(update_fields=["encrypted_api_key"])
        if not {*CONNECTION_FIELDS, *KEY_FIELDS}.isdisjoint(form.changed_data):
            record_connection(request.user, obj, "Set the address or key")
        catalog.sync()
        if not obj.is_active and Provider.objects.filter(pk=obj.pk, is_active=True).exists():
            self.message_user(request, f"{obj} has a key now and was switched on.", messages.INFO)


def _has_models_of_file(provider: Provider | None) -> bool:
    start = f"{provider}/"
    return any(name.startswith(start) for name in SetupEntry.objects.list_names("models"))


def _may_connect(request: HttpRequest) -> bool:
    return bool(request.user.has_perm(CONNECT_PERMISSION))
