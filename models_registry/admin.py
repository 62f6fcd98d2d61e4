"""Providers and language models, for operators; a key goes in and never comes out."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from models_registry import catalog
from models_registry.models import AiModel, Provider


class ProviderForm(forms.ModelForm):
    """A provider with a write-only key: typing one replaces it, leaving the field empty keeps it, the box clears it."""

    api_key = forms.CharField(
        label="API key",
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "class": "vTextField"}),
        help_text="Stored encrypted and never shown again. Leave it empty to keep the stored key.",
    )
    clear_api_key = forms.BooleanField(label="Clear the stored key", required=False)

    class Meta:
        model = Provider
        fields = (
            "name",
            "protocol",
            "family",
            "base_url",
            "api_key_env",
            "options",
            "timeout_seconds",
            "is_active",
        )

    def clean(self) -> dict[str, Any]:
        """A key cannot be set and cleared at once."""
        form_data = super().clean() or self.cleaned_data
        if form_data.get("api_key") and form_data.get("clear_api_key"):
            self.add_error("clear_api_key", "Either enter a new key or clear the stored one.")
        return form_data

    def save(self, commit: bool = True) -> Any:
        """Encrypt what was typed."""
        if self.cleaned_data["clear_api_key"]:
            self.instance.api_key = ""
        elif self.cleaned_data["api_key"]:
            self.instance.api_key = self.cleaned_data["api_key"]
        return super().save(commit)


class ModelsInline(admin.TabularInline):
    """A provider's models at a glance."""

    model = AiModel
    fields = (
        "name",
        "context_window_size",
        "max_output_tokens",
        "output_reserve",
        "supports_tools",
        "supports_images",
        "is_active",
    )
    extra = 0
    show_change_link = True


@admin.register(Provider)
class ProviderAdmin(admin.ModelAdmin):
    form = ProviderForm
    inlines = (ModelsInline,)
    list_display = ("name", "protocol", "base_url", "key", "model_count", "is_active")
    list_filter = ("is_active", "protocol")
    search_fields = ("name", "base_url")
    ordering = ("name",)
    readonly_fields = ("key",)
    fieldsets = (
        (
            None,
            {
                "fields": ("name", "is_active"),
                "description": "Switch off what is not wanted: the catalog brings deleted rows back.",
            },
        ),
        (
            "Connection",
            {"fields": ("protocol", "base_url", "timeout_seconds", "family", "options")},
        ),
        ("Key", {"fields": ("key", "api_key", "clear_api_key", "api_key_env")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Provider]:
        return super().get_queryset(request).annotate(model_count=Count("models"))

    @admin.display(description="Models", ordering="model_count")
    def model_count(self, provider: Any) -> int:
        return int(provider.model_count)

    @admin.display(description="Key in use")
    def key(self, provider: Provider) -> str:
        """Where the key comes from, in words."""
        if provider.encrypted_api_key:
            return "stored"
        if provider.has_key():
            return f"from {provider.api_key_env}"
        return f"none; {provider.api_key_env} is not set" if provider.api_key_env else "none"

    def save_model(self, request: HttpRequest, obj: Provider, form: Any, change: bool) -> None:
        """Save, and switch on a provider that has just got its key."""
        super().save_model(request, obj, form, change)
        catalog.sync()
        if not obj.is_active and Provider.objects.filter(pk=obj.pk, is_active=True).exists():
            self.message_user(request, f"{obj} has a key now and was switched on.", messages.INFO)


@admin.register(AiModel)
class AiModelAdmin(admin.ModelAdmin):
    list_display = (
        "name",
        "provider",
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
    readonly_fields = ("is_default",)
    actions = ("make_default",)
    fieldsets = (
        (None, {"fields": ("provider", "name", "is_active", "is_default")}),
        (
            "Limits",
            {
                "fields": ("context_window_size", "max_output_tokens", "output_reserve"),
                "description": "In tokens. Empty: unknown.",
            },
        ),
        ("Abilities", {"fields": ("supports_tools", "supports_images")}),
        ("Prices", {"fields": ("input_price", "output_price")}),
        ("Compaction", {"fields": ("policy", "summary_model")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AiModel]:
        return super().get_queryset(request).select_related("provider")

    def save_model(self, request: HttpRequest, obj: AiModel, form: Any, change: bool) -> None:
        """Fill the limits that a new row leaves empty, if the catalog knows the model."""
        catalog_model = None if change else catalog.look_up_model(obj.name)
        if (
            catalog_model
            and obj.context_window_size is None
            and "context_window_size" in catalog_model.values
        ):
            obj.context_window_size = catalog_model.values["context_window_size"]
            self.message_user(
                request,
                f"The catalog knows {catalog_model.name}: {obj.context_window_size:,} tokens.",
                messages.INFO,
            )
        if catalog_model and obj.output_reserve is None:
            obj.output_reserve = catalog_model.values.get("output_reserve")
        super().save_model(request, obj, form, change)

    @admin.action(description="Make default for new sessions", permissions=["change"])
    def make_default(self, request: HttpRequest, queryset: QuerySet[AiModel]) -> None:
        """Make the one selected model the default."""
        selection = list(queryset[:2])
        if len(selection) != 1:
            self.message_user(request, "Select exactly one model.", messages.ERROR)
            return
        selection[0].make_default()
        self.message_user(request, f"New sessions start with {selection[0]}.")
