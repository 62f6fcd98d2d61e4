"""The admin's page of what is set for the whole installation."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from chatcore.admin.base import ChatcoreAdmin
from chatcore.base.environment import parse_search_service
from chatcore.context.compactor import get_compactor
from chatcore.models import InstallationSettings
from models_registry import keys

# Without mail, an account that anybody may make would have no address that was checked.
CHOICES_OF_STAFF = ("closed", "invitation")


def list_variables() -> dict[str, tuple[str, object]]:
    """Return by the names of fields which variable wins over each, and its value."""
    service = settings.CHATCORE["WEB_SEARCH"]
    hosts = settings.CHATCORE["FETCH_ALLOW_HOSTS"]
    return {
        "sign_up": ("CHATCORE_SIGN_UP", settings.SIGN_UP),
        "allowed_hosts": ("CHATCORE_FETCH_ALLOW_HOSTS", "\n".join(hosts)),
        "policy": ("CHATCORE_POLICY", settings.COMPACTION.get("POLICY")),
        "web_search": ("CHATCORE_WEB_SEARCH", service and service[0]),
    }


class InstallationSettingsForm(forms.ModelForm):
    """What no variable of the environment sets."""

    sign_up = forms.ChoiceField(required=False, help_text="Who may make an account.")
    policy = forms.ChoiceField(
        required=False,
        help_text=(
            "The compaction policy of chats for which neither they nor their model name one."
        ),
    )
    web_search = forms.CharField(
        required=False,
        strip=True,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "class": "vTextField"}),
        help_text=(
            "The address of a SearXNG whose settings allow the format json, or a key of Brave,"
            " Tavily or Exa: chats have the tool that searches the web. Stored encrypted and never"
            " shown again. Leave it empty to keep what is stored."
        ),
    )
    clear_web_search = forms.BooleanField(label="No web search", required=False)

    class Meta:
        model = InstallationSettings
        fields = ("sign_up", "allowed_hosts", "policy")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = {
            "sign_up": [each for each in settings.SIGN_UP_CHOICES if each in CHOICES_OF_STAFF],
            "policy": list(get_compactor().list_policies()),
        }
        usual = {"sign_up": "closed", "policy": get_compactor().choose_policy("").name}
        for name in choices.keys() & self.fields.keys():
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", f"({usual[name]})"), *((each, each) for each in choices[name])]
        if "web_search" in self.fields and self.instance.encrypted_web_search:
            self.fields["web_search"].help_text += " A service is stored."
        for name, (variable, value) in list_variables().items():
            if value and name in self.fields:
                self.fields[name].disabled = True
                self.fields[name].help_text = f"Set by {variable}."
                self.initial[name] = value

    def clean_web_search(self) -> str:
        """Refuse what is neither an address nor a key."""
        value: str = self.cleaned_data["web_search"]
        try:
            if value:
                parse_search_service(value)
        except ValueError as error:
            raise forms.ValidationError(f"This must be {error}") from None
        return value

    def save(self, commit: bool = True) -> Any:
        """Store a typed address or key in place of the one before."""
        if value := self.cleaned_data.get("web_search"):
            self.instance.encrypted_web_search = keys.encrypt(value)
        elif self.cleaned_data.get("clear_web_search"):
            self.instance.encrypted_web_search = ""
        return super().save(commit)


@admin.register(InstallationSettings)
class InstallationSettingsAdmin(ChatcoreAdmin):
    form = InstallationSettingsForm
    sidebar = ("models", "sliders")
    fields = ("sign_up", "allowed_hosts", "policy", "web_search", "clear_web_search")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Show the only row, which is made at its first use."""
        InstallationSettings.objects.get_or_create(pk=1)
        return self.changeform_view(request, "1", extra_context=extra_context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write the edited columns, and the service for searches if it was edited."""
        super().save_model(request, obj, form, change)
        if {"web_search", "clear_web_search"}.intersection(form.changed_data):
            obj.save(update_fields=["encrypted_web_search"])
