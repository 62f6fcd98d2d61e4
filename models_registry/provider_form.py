"""The admin's form of a provider, with a write-only API key that only its own address gets."""

from typing import Any

from django import forms

from models_registry import keys
from models_registry.models import Provider
from models_registry.provider_options import ProviderOptions, find_problems

CONNECTION_FIELDS = ("protocol", "base_url", "options")
CONNECT_PERMISSION = "models_registry.connect_provider"


class ProviderForm(forms.ModelForm):
    """The form of a provider for those who may change its address and key.

    A typed key replaces the stored one and an empty field keeps it. The checkbox clears it. A new
    address does not get the stored key: it must be typed again.
    """

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What decides where a key goes is compared with the row, not with what the page had shown:
        # whoever sends the form could say anything about that.
        for name in {*CONNECTION_FIELDS, "api_key_env"}.intersection(self.fields):
            self.fields[name].show_hidden_initial = False

    @property
    def changes_connection(self) -> bool:
        """Return whether the address, or what is sent to it besides the messages, is changed."""
        return not set(self.changed_data).isdisjoint(CONNECTION_FIELDS)

    def clean_options(self) -> ProviderOptions:
        """Refuse an option that is unknown, misspelt or of another type."""
        options: ProviderOptions = self.cleaned_data["options"]
        if problems := find_problems(options):
            raise forms.ValidationError(problems)
        return options

    def clean_api_key_env(self) -> str:
        """Refuse a variable that may hold something else than a provider's key."""
        name: str = self.cleaned_data["api_key_env"]
        if name and "api_key_env" in self.changed_data and not keys.is_allowed(name):
            raise forms.ValidationError(
                "A key can be read from the variables that the catalog names, and from those"
                " that CHATCORE_PROVIDER_KEY_VARIABLES lists. Or enter the key itself."
            )
        return name

    def clean(self) -> dict[str, object]:
        """Refuse to set a key and to clear it at once, or to send a key to another address."""
        form_data = super().clean() or self.cleaned_data
        if form_data.get("api_key"):
            if form_data.get("clear_api_key"):
                self.add_error("clear_api_key", "Either enter a new key or clear the stored one.")
        elif self.instance.encrypted_api_key and not form_data.get("clear_api_key"):
            if self.changes_connection:
                self.add_error(
                    "api_key",
                    "Enter the key again, or clear it: the stored one was entered for the"
                    " address, protocol and options that you are changing.",
                )
        elif self._sends_machines_credentials(form_data):
            self.add_error(
                "api_key",
                "Without a key, this client sends the credentials of the machine, and those only"
                " to the service's own address. Enter a key, or leave the address empty.",
            )
        elif self.changes_connection or {"api_key_env", "clear_api_key"} & {*self.changed_data}:
            self._check_variable(form_data)
        return form_data

    def save(self, commit: bool = True) -> Provider:
        """Encrypt the typed key, or clear the stored one, and save the provider."""
        if self.cleaned_data["clear_api_key"]:
            self.instance.api_key = ""
        elif self.cleaned_data["api_key"]:
            self.instance.api_key = self.cleaned_data["api_key"]
        provider: Provider = super().save(commit)
        return provider

    def _sends_machines_credentials(self, form_data: dict[str, Any]) -> bool:
        """Return whether a client that signs in by itself would do so at a named address."""
        options = form_data.get("options") or {}
        return bool(options.get("client") and form_data.get("base_url"))

    def _check_variable(self, form_data: dict[str, Any]) -> None:
        """Refuse to send the value of a variable to an address that it is not for."""
        name = form_data.get("api_key_env")
        if name and not keys.may_go_to(
            name,
            protocol=form_data.get("protocol", ""),
            base_url=form_data.get("base_url", ""),
        ):
            self.add_error(
                "api_key_env",
                "This variable is sent only to the address that the catalog has for it, unless"
                " CHATCORE_PROVIDER_KEY_VARIABLES lists it. Enter the key itself instead.",
            )
