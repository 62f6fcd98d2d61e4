"""The admin's form of a session, which holds by the rules of the API."""

import copy
from collections.abc import Iterator

from django import forms

from chatcore.api.serializers.sessions import SessionSerializer
from chatcore.base.keeping import Kept, refuse_lost_words
from chatcore.models import Session
from chatcore.sessions.changes import HELD_FIELDS

CHECKED_FIELDS = ("policy", "tools", "params")


class SessionForm(forms.ModelForm):
    """Refuses what the API would refuse: it would stop every later turn of the session."""

    class Meta:
        model = Session
        fields = (
            "title",
            "model",
            "system_prompt",
            "policy",
            "auto_compact",
            "tools",
            "params",
            "pinned",
            "archived",
        )

    def clean(self) -> dict[str, object]:
        """Check the fields whose values the database cannot check, also those not edited now."""
        form_data = super().clean() or self.cleaned_data
        try:
            texts = {name: form_data[name] for name in HELD_FIELDS if name in form_data}
            refuse_lost_words(self.instance.owner_id, self.instance, texts)
        except Kept as refusal:
            raise forms.ValidationError(str(refusal)) from None
        session = copy.copy(self.instance)
        session.model = form_data.get("model")
        new_values = {name: form_data[name] for name in CHECKED_FIELDS if name in form_data}
        serializer = SessionSerializer(session, data=new_values, partial=True)
        if not serializer.is_valid():
            for name, detail in serializer.errors.items():
                for text in _list_texts(detail):
                    self.add_error(name if name in self.fields else None, text)
        return form_data


def _list_texts(detail: object) -> Iterator[str]:
    """Yield the texts of an error, with the names of the values that they are about."""
    if isinstance(detail, dict):
        for name, part in detail.items():
            yield from (f"{name}: {text}" for text in _list_texts(part))
    elif isinstance(detail, list):
        for part in detail:
            yield from _list_texts(part)
    else:
        yield str(detail)
