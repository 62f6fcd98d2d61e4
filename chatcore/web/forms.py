"""The forms that the pages post. The templates draw the fields; a form checks and cleans them."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import check_for_language

from chatcore.accounts.tokens import MAX_NAME_CHARS
from chatcore.models import Session
from chatcore.rest.scopes import PREFIXES
from chatcore.sessions.truncation import clean_text
from models_registry.models import AiModel

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
        return " ".join(words)[: self.max_chars]


class RenameForm(forms.Form):
    """The new title of a chat; it may be empty."""

    title = LineField(max_chars=MAX_TITLE_CHARS, required=False)


class TokenForm(forms.Form):
    """The name of a new API token, which may be empty, and what it may do."""

    name = LineField(max_chars=MAX_NAME_CHARS, required=False)
    scope = forms.ChoiceField(choices=[(name, name) for name in PREFIXES], required=False)


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
