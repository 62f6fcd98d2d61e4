"""The forms that the pages post. The templates draw the fields; a form checks and cleans them."""

from itertools import chain, count
from typing import Any, cast
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.utils.text import slugify
from django.utils.translation import check_for_language
from django.utils.translation import gettext_lazy as _

from chatcore.accounts.tokens import MAX_NAME_CHARS
from chatcore.base.rest.auth import PREFIXES
from chatcore.base.truncation import clean_text
from chatcore.base.visible_text import is_visible
from chatcore.models import McpServer, Session
from chatcore.models.mcp_server import MAX_NAME_CHARS as MAX_SERVER_NAME_CHARS
from chatcore.models.mcp_server import MAX_SERVERS, NAME_PATTERN
from chatcore.providers.protocols import load_protocol
from chatcore.setup.documents import PERSON, apply_document
from chatcore.tools.mcp.server_form import ServerForm
from models_registry.keys import recognize_key
from models_registry.models import AiModel, Provider

MAX_TITLE_CHARS = Session._meta.get_field("title").max_length or 0


class LineField(forms.CharField):
    """A text on one line. One that is too long is cut, not refused."""

    def __init__(self, *, max_chars: int, **options: Any) -> None:
        super().__init__(**options)
        self.max_chars = max_chars

    def to_python(self, value: object) -> str:
        """Return the cleaned text.

        NUL characters are removed here, because the validators that run next would refuse them.
        """
        words = clean_text(super().to_python(value) or "").split()
        line = " ".join(words)[: self.max_chars]
        return line if is_visible(line) else ""


class RenameForm(forms.Form):
    """The new title of a chat; it may be empty."""

    title = LineField(max_chars=MAX_TITLE_CHARS, required=False)


class TokenForm(forms.Form):
    """The name of a new API token, which may be empty, what it may do, and what is kept."""

    name = LineField(max_chars=MAX_NAME_CHARS, required=False)
    scope = forms.ChoiceField(choices=[(name, name) for name in PREFIXES], required=False)
    keeps_conversations = forms.BooleanField(required=False)


class SwitchForm(forms.Form):
    """One switch of a chat; only the text `true` means on."""

    on = forms.BooleanField(required=False)


class LanguageForm(forms.Form):
    """The language of the pages; empty for the one that the browser asks for."""

    language = forms.ChoiceField(choices=lambda: settings.LANGUAGES, required=False)

    def clean_language(self) -> str:
        """Refuse a language without a catalog of translations."""
        language: str = self.cleaned_data["language"]
        if language and not check_for_language(language):
            raise forms.ValidationError("There is no translation into this language.")
        return language


class DefaultModelForm(forms.Form):
    """The model of new chats, as `name` or `provider/name`; cleaned to its row."""

    model = forms.CharField()

    def clean_model(self) -> AiModel:
        """Return the usable model with this name."""
        model = AiModel.objects.find_by_name(self.cleaned_data["model"])
        if model is None:
            raise forms.ValidationError("There is no usable model with this name.")
        return model


class ProviderKeyForm(forms.Form):
    """An API key for a provider."""

    key = forms.CharField()


class KeyOfAnyProviderForm(forms.Form):
    """An API key, whose provider is recognized by how it begins, or chosen."""

    key = forms.CharField(strip=True)
    provider = forms.ModelChoiceField(Provider.objects.none(), required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = cast(forms.ModelChoiceField, self.fields["provider"])
        field.queryset = Provider.objects.exclude(api_key_env="").order_by("name")

    def clean(self) -> dict[str, Any]:
        """Find the provider of the key. Raises ValidationError where it has to be chosen."""
        values: dict[str, Any] = super().clean() or {}
        if "key" in values:
            name = recognize_key(values["key"])
            known = Provider.objects.exclude(api_key_env="").filter(name=name).first()
            values["provider"] = known or values.get("provider")
            if values["provider"] is None:
                self.add_error("provider", _("Which provider is this key of?"))
        return values


class WriteOnlyTextarea(forms.Textarea):
    """A text that the browser sends and the page never shows again."""

    def get_context(self, name: str, value: object, attrs: Any) -> dict[str, Any]:
        """Return the context without the value. A text that waits for a correction stays there."""
        return super().get_context(name, None, attrs)


class OwnServerForm(ServerForm):
    """An MCP server of a user, who is the owner of the form's instance."""

    name = forms.RegexField(
        NAME_PATTERN,
        max_length=MAX_SERVER_NAME_CHARS,
        strip=True,
        label=_("Name"),
        help_text=_("Lower-case letters and digits, and - inside."),
        error_messages={"invalid": _("This name has other characters.")},
    )
    new_headers = forms.CharField(
        required=False,
        label=_("Headers"),
        help_text=_("One a line, as Authorization: Bearer …. They are never shown again."),
        widget=WriteOnlyTextarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
    )
    clear_headers = forms.BooleanField(required=False, label=_("Forget the stored headers"))
    require_approval = forms.ChoiceField(
        label=_("Before a call"),
        choices=[
            (McpServer.Approval.ALWAYS, _("Ask me each time")),
            (McpServer.Approval.NEVER, _("Never ask")),
        ],
    )

    class Meta(ServerForm.Meta):
        labels = {"url": _("Address"), "is_active": _("Switched on")}
        widgets = {
            "url": forms.TextInput(attrs={"inputmode": "url", "placeholder": "https://…/mcp"})
        }
        help_texts = {"url": ""}

    NAME_IS_TAKEN = _("Another server has this name.")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = self.instance.header_names
        if names:
            sentence = _("Stored: %(names)s. Empty keeps them, unless the address changes.")
            self.fields["new_headers"].help_text = sentence % {"names": ", ".join(names)}

    def clean_name(self) -> str:
        """Refuse a name twice, and more servers than a user may have."""
        name: str = self.cleaned_data["name"]
        others = McpServer.objects.owned_by(self.instance.owner).exclude(pk=self.instance.pk)
        if others.filter(name=name).exists():
            raise forms.ValidationError(self.NAME_IS_TAKEN)
        if self.instance._state.adding and others.count() >= MAX_SERVERS:
            error = _("There are already %(count)d servers, the most.")
            raise forms.ValidationError(error, params={"count": MAX_SERVERS})
        return name

    def refuse_name(self) -> None:
        """Say that another request has just taken the name."""
        self.add_error("name", self.NAME_IS_TAKEN)

    def prepare_correction(self) -> None:
        """Put the focus on the first wrong field, and let the browser keep the typed headers."""
        self.fields["new_headers"].widget.attrs["hx-preserve"] = "true"
        self.fields[next(iter(self.errors))].widget.attrs["autofocus"] = True


class ServerAddressForm(forms.Form):
    """The address of a server, the protocol that it speaks, and its key if it wants one."""

    protocol = forms.ChoiceField(
        choices=Provider.Protocol.choices, initial=Provider.Protocol.OPENAI, required=False
    )
    address = LineField(max_chars=500)
    key = forms.CharField(required=False, strip=True)

    def clean_protocol(self) -> str:
        """Return the protocol, OpenAI's where none is named."""
        return str(self.cleaned_data["protocol"] or Provider.Protocol.OPENAI)

    def clean_address(self) -> str:
        """Return the address as the SDK wants it: with its scheme, and the protocol's path."""
        address = self.cleaned_data["address"].rstrip("/")
        if "://" not in address:
            address = f"http://{address}"
        protocol = self.cleaned_data.get("protocol", Provider.Protocol.OPENAI)
        try:
            parts = urlsplit(address)
            if not parts.path:
                address += load_protocol(protocol).capabilities.address_path
            Provider._meta.get_field("base_url").run_validators(address)
        except (ValueError, forms.ValidationError):
            error = _("This is not an http or https address without credentials.")
            raise forms.ValidationError(error) from None
        return address

    def save(self) -> Provider:
        """Create the provider. It is named after its host."""
        parts = urlsplit(self.cleaned_data["address"])
        host_name = slugify(parts.netloc.replace(".", "-").replace(":", "-"))[:50] or "server"
        taken_names = set(
            Provider.objects.filter(name__startswith=host_name).values_list("name", flat=True)
        )
        numbered_names = (f"{host_name}-{number}" for number in count(2))
        candidates = chain([host_name], numbered_names)
        name = next(name for name in candidates if name not in taken_names)
        values = {
            "protocol": self.cleaned_data["protocol"],
            "base_url": self.cleaned_data["address"],
            "api_key": self.cleaned_data["key"],
        }
        apply_document({"providers": {name: values}}, PERSON)
        return Provider.objects.get(name=name)


class DeleteAccountForm(forms.Form):
    """Confirms the deletion of an account by the name of its user."""

    name = forms.CharField(
        label=_("Your name, to be sure"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )

    def __init__(self, expected_name: str, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._expected_name = expected_name

    def clean_name(self) -> str:
        """Refuse another name."""
        name: str = self.cleaned_data["name"]
        if name != self._expected_name:
            raise forms.ValidationError(_("This is not the name of your account."))
        return name
