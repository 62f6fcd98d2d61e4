"""The form of an operator's policy: a field for each knob, in place of JSON."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import Field, fields
from typing import Any

from django import forms
from django.utils.safestring import SafeString, mark_safe

from compaction.core.knobs import FLAG, KnobGroup, PolicyError, Rule, get_help, get_rule, list_knobs
from compaction.core.policy import STAGES, Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.models import CompactionPolicy

MAX_SHOWN = 160  # characters of a base's value beside its field
STAGES_FIELD = "stages"


def list_groups() -> Iterator[KnobGroup]:
    """Yield the groups of knobs in their order, with the values of the first preset."""
    for field in fields(Policy):
        group = getattr(ONECLAW, field.name)
        if isinstance(group, KnobGroup):
            yield group


def name_field(group: KnobGroup, knob: Field[Any]) -> str:
    """Return the name of a knob's field in the form."""
    return f"{group.prefix}__{knob.name}"


def list_field_names(group: KnobGroup) -> list[str]:
    """Return the names of a group's fields in the form."""
    return [name_field(group, knob) for knob in list_knobs(type(group))]


def read_overrides(
    values: Mapping[str, object], base: str
) -> tuple[dict[str, object], dict[str, str]]:
    """Return the knobs that were filled in, as a policy has them, and what is wrong by field.

    An empty field leaves a knob to the base.
    """
    overrides: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for group in list_groups():
        for knob in list_knobs(type(group)):
            name = name_field(group, knob)
            text = str(values.get(name) or "").strip()
            if not text:
                continue
            value, complaint = _read_value(text, get_rule(knob))
            if complaint:
                errors[name] = complaint
            else:
                overrides.setdefault(group.prefix, {})[knob.name] = value
    stages = str(values.get(STAGES_FIELD) or "").strip()
    if stages:
        overrides[STAGES_FIELD] = [part.strip() for part in stages.split(",") if part.strip()]
    if not errors and base in PRESETS:
        try:
            Policy.parse(overrides, PRESETS[base])
        except PolicyError as error:
            errors[error.field.replace(".", "__")] = error.message
    return overrides, errors


class PolicyForm(forms.ModelForm):
    """A field for each knob, read into the policy's overrides and shown again."""

    base = forms.ChoiceField(
        choices=[(name, name) for name in PRESETS],
        widget=forms.Select(attrs={"class": "run-knob"}),
        help_text="The preset that has all values which are not filled in here.",
    )
    stages = forms.CharField(
        required=False,
        label="stages",
        widget=forms.TextInput(attrs={"class": "run-knob", "autocomplete": "off"}),
        help_text=f"In the order in which they run, with commas: some of {', '.join(STAGES)}.",
    )

    class Meta:
        model = CompactionPolicy
        fields = ("name", "base", "is_active")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        overrides = self.instance.overrides if isinstance(self.instance.overrides, dict) else {}
        base = PRESETS.get(self.instance.base, ONECLAW).to_dict()
        for group in list_groups():
            values = overrides.get(group.prefix)
            for knob in list_knobs(type(group)):
                name = name_field(group, knob)
                field = self.fields[name] = _build_field(knob, f"{group.prefix}.{knob.name}")
                field.help_text = _describe_knob(
                    get_help(knob), get_rule(knob), base[group.prefix][knob.name], self.instance
                )
                if isinstance(values, dict) and knob.name in values:
                    self.initial[name] = _show_value(values[knob.name])
        if STAGES_FIELD in overrides:
            self.initial[STAGES_FIELD] = ", ".join(map(str, overrides[STAGES_FIELD]))

    def clean(self) -> dict[str, object]:
        """Refuse what the engine would refuse, beside the knob that it is about."""
        form_data = super().clean() or self.cleaned_data
        overrides, errors = read_overrides(form_data, form_data.get("base", ""))
        for name, complaint in errors.items():
            knob = name.replace("__", ".")
            self.add_error(name if name in self.fields else None, f"{knob} {complaint}.")
        if not errors:
            self.instance.overrides = overrides
        return form_data


def _build_field(knob: Field[Any], label: str) -> forms.Field:
    rule = get_rule(knob)
    if choices := _list_choices(rule):
        options = [("", "as in the base"), *((name, name) for name in choices)]
        select = forms.Select(attrs={"class": "run-knob"})
        return forms.ChoiceField(choices=options, required=False, label=label, widget=select)
    is_long = isinstance(knob.default, str) or "text" in rule.expectation
    widget = (
        forms.Textarea(attrs={"rows": 2, "class": "run-knob"})
        if is_long
        else forms.TextInput(attrs={"class": "run-knob", "autocomplete": "off"})
    )
    return forms.CharField(required=False, strip=False, label=label, widget=widget)


def _list_choices(rule: Rule) -> list[str]:
    if rule is FLAG:
        return ["true", "false"]
    if rule.expectation.startswith("one of "):
        return rule.expectation.removeprefix("one of ").split(", ")
    return []


def _read_value(text: str, rule: Rule) -> tuple[object, str | None]:
    """Return the value that a text means to a knob: JSON, the text itself, or a list of names."""
    candidates: list[object] = [text, [part.strip() for part in text.split(",")]]
    with suppress(ValueError, RecursionError):
        candidates.insert(0, json.loads(text))
    for value in candidates:
        frozen_value = tuple(value) if isinstance(value, list) else value
        if rule.accepts(frozen_value):
            return value, None
    return None, rule.find_complaint(candidates[0])


def _show_value(value: object) -> str:
    if isinstance(value, str):
        # What would be read as something else is written as JSON.
        return json.dumps(value) if _is_json(value) else value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "[]"
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return not text
    return True


def _describe_knob(
    help_text: str, rule: Rule, default: object, policy: CompactionPolicy
) -> SafeString:
    default_text = _show_value(default)
    if len(default_text) > MAX_SHOWN:
        default_text = default_text[:MAX_SHOWN] + "…"
    name = policy.base if policy.base in PRESETS else "oneclaw"
    text = html.escape(
        f"{help_text} Takes {rule.expectation}. In {name}: `{default_text or 'nothing'}`"
    )
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", text))  # noqa: S308 - escaped above
