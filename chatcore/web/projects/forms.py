"""The forms of a project: its words, and its rules as one list."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatcore.base.rest import limits
from chatcore.base.truncation import clean_text
from chatcore.models import Project
from chatcore.projects.changes import MAX_RULES, RULE_CHARS
from chatcore.web.forms import LineField

MAX_NAME_CHARS = Project._meta.get_field("name").max_length or 0


class NameForm(forms.Form):
    """The name of a new project."""

    name = LineField(max_chars=MAX_NAME_CHARS, label=gettext_lazy("Name"))


class ProjectForm(NameForm):
    """The name and the instructions of a project."""

    instructions = forms.CharField(required=False, strip=False, label=gettext_lazy("Instructions"))

    def clean_instructions(self) -> str:
        """Return the text as it was written. Refuse one that is longer than a system prompt."""
        # Browsers send line breaks as CR LF.
        text = clean_text(self.cleaned_data["instructions"]).replace("\r\n", "\n")
        if limits.exceeds_bytes(text, limits.MESSAGE_BYTES):
            kilobytes = limits.MESSAGE_BYTES // limits.KB
            raise forms.ValidationError(
                _("At most %(kilobytes)s KB of text.") % {"kilobytes": kilobytes}
            )
        return text


def read_rules(data: Any) -> tuple[list[str], str]:
    """Return the rules that the page sent, after its act, and what is wrong with them.

    The act is empty, or `up`, `down` or `remove` with the place of a rule, as in `up 2`. Empty
    lines are dropped.
    """
    texts = [" ".join(clean_text(text).split()) for text in data.getlist("rule")]
    texts = _act(texts, data.get("act", ""))
    rules = [text for text in texts if text]
    if any(len(rule) > RULE_CHARS for rule in rules):
        return rules, _("A rule has at most %(count)s characters.") % {"count": RULE_CHARS}
    if len(rules) > MAX_RULES:
        return rules, _("A project has at most %(count)s rules.") % {"count": MAX_RULES}
    return rules, ""


def _act(texts: list[str], act: str) -> list[str]:
    name, _space, number = act.partition(" ")
    place = int(number) if number.isdecimal() and len(number) < 4 else -1
    if not 0 <= place < len(texts):
        return texts
    other = {"up": place - 1, "down": place + 1}.get(name, -1)
    if name == "remove":
        return texts[:place] + texts[place + 1 :]
    if 0 <= other < len(texts):
        texts[place], texts[other] = texts[other], texts[place]
    return texts
