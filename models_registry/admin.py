"""The admin pages of providers and language models. No page shows a stored API key."""

import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from models_registry import catalog
from models_registry.audit import record_connection
from models_registry.models import AiModel, Provider
from models_registry.provider_form import CONNECT_PERMISSION, CONNECTION_FIELDS, ProviderForm

KEY_FIELDS = ("api_key", "clear_api_key", "api_key_env")


class ModelsInline(admin.TabularInline):
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
        return super().get_queryset(request).select_related("provider")


@admin.register(Provider)
class ProviderAdmin(admin.ModelAdmin):
    form = ProviderForm
    inlines = (ModelsInline,)
    list_display = ("name", "protocol", "base_url", "key", "model_count", "is_active")
    list_filter = ("is_active", "protocol")
    search_fields = ("name", "base_url")
    ordering = ("name",)
    readonly_fields: ClassVar[Any] = ("key",)
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

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the row, locked if it is to be changed: its key and its address must agree."""
        provider = super().get_object(request, *args, **kwargs)
        if provider is not None and request.method == "POST":
            Provider.objects.select_for_update().get(pk=provider.pk)
            provider = super().get_object(request, *args, **kwargs)
        return provider

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and _may_connect(request)

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return a form without keys for those who may not enter any."""
        if not _may_connect(request):
            kwargs["form"] = forms.ModelForm
        return super().get_form(request, *args, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if _may_connect(request):
            return self.readonly_fields
        return (*self.readonly_fields, *CONNECTION_FIELDS, "api_key_env")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if _may_connect(request):
            return self.fieldsets
        return (*self.fieldsets[:-1], ("Key", {"fields": ("key", "api_key_env")}))

    @admin.display(description="Models", ordering="model_count")
    def model_count(self, provider: Any) -> int:
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

    def save_model(self, request: HttpRequest, obj: Provider, form: Any, change: bool) -> None:
        """Save the provider, and let the catalog activate it if it has a key now."""
        super().save_model(request, obj, form, change)
        if change and {"api_key", "clear_api_key"} & {*form.changed_data}:
            obj.save(update_fields=["encrypted_api_key"])
        if not {*CONNECTION_FIELDS, *KEY_FIELDS}.isdisjoint(form.changed_data):
            record_connection(request.user, obj, "Set the address or key")
        catalog.sync()
        if not obj.is_active and Provider.objects.filter(pk=obj.pk, is_active=True).exists():
            self.message_user(request, f"{obj} has a key now and was switched on.", messages.INFO)


def describe_age(date: datetime.date) -> str:
    """Return the date and how long ago it is, as in 2026-10-01, 53 days ago."""
    days = (timezone.now().date() - date).days
    if days < 1:
        return f"{date}, today"
    return f"{date}, 1 day ago" if days == 1 else f"{date}, {days:,} days ago"


def _may_connect(request: HttpRequest) -> bool:
    return bool(request.user.has_perm(CONNECT_PERMISSION))


@admin.register(AiModel)
class AiModelAdmin(admin.ModelAdmin):
    list_display = (
        "name",
        "provider",
        "show_source",
        "context_window_size",
        "max_output_tokens",
        "output_reserve",
        "input_price",
        "output_price",
        "supports_tools",
        "is_active",
        "is_default",
    )
    list_filter = ("provider", "is_active", "supports_tools", "supports_images")
    list_select_related = ("provider",)
    search_fields = ("name", "provider__name")
    ordering = ("provider__name", "name")
    readonly_fields = ("is_default", "show_source")
    actions = ("make_default",)
    fieldsets = (
        (None, {"fields": ("provider", "name", "is_active", "is_default", "show_source")}),
        (
            "Limits",
            {
                "fields": (
                    "context_window_size",
                    "max_input_tokens",
                    "max_output_tokens",
                    "output_reserve",
                ),
                "description": "In tokens. Empty: unknown.",
            },
        ),
        ("Abilities", {"fields": ("supports_tools", "supports_images")}),
        (
            "Prices",
            {
                "fields": (
                    "input_price",
                    "cached_input_price",
                    "cache_write_price",
                    "output_price",
                    "price_tiers",
                ),
                "description": "Of a million tokens. Empty: unknown.",
            },
        ),
        ("Compaction", {"fields": ("policy", "summary_model")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AiModel]:
        return super().get_queryset(request).select_related("provider")

    def save_model(self, request: HttpRequest, obj: AiModel, form: Any, change: bool) -> None:
        """Save the model; fill what is empty of a new one from the catalog."""
        had_window = obj.context_window_size is not None
        if not change:
            self._fill_abilities(obj, form)
        super().save_model(request, obj, form, change)
        if not change and not had_window and obj.context_window_size is not None:
            message = f"The catalog knows {obj.name}: {obj.context_window_size:,} tokens."
            self.message_user(request, message, messages.INFO)

    @admin.display(description="Limits and prices from")
    def show_source(self, model: AiModel) -> str:
        """Say where a model's values are from, of which day, and how long ago that is."""
        if model.values_date:
            return f"{model.values_source} of {describe_age(model.values_date)}"
        if model.catalog_values:
            return f"the catalog of {describe_age(catalog.load_catalog().date)}"
        return "an operator"

    def _fill_abilities(self, model: AiModel, form: Any) -> None:
        catalog_model = catalog.look_up_model(model.name)
        if catalog_model is None:
            return
        if model.supports_tools is None:
            model.supports_tools = catalog_model.values.get("supports_tools")
        if model.supports_images is None:
            model.supports_images = catalog_model.values.get("supports_images")

    @admin.action(description="Make default for new sessions", permissions=["change"])
    def make_default(self, request: HttpRequest, queryset: QuerySet[AiModel]) -> None:
        """Make the selected model the default; refuse a selection of several."""
        selection = list(queryset[:2])
        if len(selection) != 1:
            self.message_user(request, "Select exactly one model.", messages.ERROR)
            return
        selection[0].make_default()
        self.message_user(request, f"New sessions start with {selection[0]}.")
