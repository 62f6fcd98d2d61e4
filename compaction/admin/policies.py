"""The admin page of the operator's own policies: a field for each knob, and a trial."""

import html
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import Field
from typing import Any, ClassVar, cast
from uuid import UUID

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from chatcore.admin.setup_file import SetupFileAdmin
from chatcore.models import Session
from compaction import policies
from compaction.admin.base import find_session, note_act
from compaction.admin.timeline import REFUSALS
from compaction.core.knobs import (
    OTHER_GROUPS,
    KnobGroup,
    PolicyError,
    get_help,
    get_rule,
    list_knobs,
)
from compaction.core.policy import DEFAULT_SETTINGS, STAGES, Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.core.rules import FLAG, Rule
from compaction.core.systems import has_systems
from compaction.models import CompactionPolicy
from compaction.runs import engine
from compaction.summaries.templates import SUMMARY_TEMPLATES, TEMPLATE

MAX_SHOWN = 160  # characters of a base's value beside its field
STAGES_FIELD = "stages"

TRIAL_RIGHT = "compaction.change_compactionrun"
MAX_SESSIONS = 30  # that are proposed for a trial, the newest
MAX_NAMED = 6  # knobs in the list


def name_field(group: KnobGroup, knob: Field[object]) -> str:
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
    groups: dict[str, dict[str, object]] = {}
    errors: dict[str, str] = {}
    for group in ONECLAW.list_groups():
        for knob in list_knobs(type(group)):
            name = name_field(group, knob)
            text = str(values.get(name) or "").strip()
            if not text:
                continue
            value, complaint = _read_value(text, get_rule(knob))
            if complaint:
                errors[name] = complaint
            else:
                groups.setdefault(group.prefix, {})[knob.name] = value
    overrides: dict[str, object] = {**groups}
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
        if self.instance.pk and self.instance.base not in PRESETS:
            absent = (self.instance.base, f"{self.instance.base} (not installed)")
            base_field = cast("forms.ChoiceField", self.fields["base"])
            base_field.choices = [absent, *((name, name) for name in PRESETS)]
        for group in ONECLAW.list_groups():
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
        if unread := _list_unread(overrides):
            self.fields["unread"] = forms.CharField(
                required=False,
                label="not known here",
                widget=forms.Textarea(attrs={"rows": 3, "class": "run-knob"}),
                help_text="What no installed system knows, as JSON. The policy cannot be used with"
                " it. Install the system, or empty this field.",
            )
            self.initial["unread"] = json.dumps(unread, ensure_ascii=False)
        used = _name_knobs(overrides)
        if not has_systems() and STAGES_FIELD not in used:
            del self.fields[STAGES_FIELD]

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

    def clean_unread(self) -> dict[str, Any]:
        """Refuse what is no object of groups."""
        try:
            unread = json.loads(self.cleaned_data["unread"] or "{}")
        except ValueError:
            unread = None
        if not isinstance(unread, dict):
            raise ValidationError("It must be an object, as JSON has it.")
        return unread

    def merge_overrides(self) -> dict[str, Any]:
        """Return what was filled in, with what no installed system knows beside it."""
        overrides = dict(self.instance.overrides)
        for name, values in self.cleaned_data.get("unread", {}).items():
            is_group = isinstance(values, dict)
            overrides[name] = {**overrides.get(name, {}), **values} if is_group else values
        return overrides


def _list_unread(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored settings that have no field, in their groups."""
    known = policies.list_settings()
    unread: dict[str, Any] = {}
    for name, values in overrides.items():
        if name in known and isinstance(values, dict):
            rest = {each: value for each, value in values.items() if each not in known[name]}
        else:
            rest = {} if name == STAGES_FIELD else values
        if rest:
            unread[name] = rest
    return unread


def _build_field(knob: Field[object], label: str) -> forms.Field:
    rule = get_rule(knob)
    if choices := _list_choices(rule):
        options = [("", "as in the base"), *((name, name) for name in choices)]
        select = forms.Select(attrs={"class": "run-knob"})
        return forms.ChoiceField(choices=options, required=False, label=label, widget=select)
    is_long = "text" in rule.expectation
    widget = (
        forms.Textarea(attrs={"rows": 2, "class": "run-knob"})
        if is_long
        else forms.TextInput(attrs={"class": "run-knob", "autocomplete": "off"})
    )
    return forms.CharField(required=False, strip=False, label=label, widget=widget)


def _list_choices(rule: Rule) -> list[str]:
    if rule is FLAG:
        return ["true", "false"]
    if rule is TEMPLATE:
        return list(SUMMARY_TEMPLATES)
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


@admin.register(CompactionPolicy)
class CompactionPolicyAdmin(SetupFileAdmin):
    """A preset with other values for some knobs, under a name of its own."""

    form = PolicyForm
    setup_section = "policies"
    list_display = ("name", "base", "changed_knobs", "is_active", "problem")
    search_fields = ("name",)
    readonly_fields = ("trial",)

    class Media:
        css: ClassVar = {"all": ("chatcore/css/compaction_runs.css",)}

    def get_urls(self) -> list[URLPattern]:
        """Add the page of a trial."""
        page = path("try/", self.admin_site.admin_view(self.show_trial), name="compaction_trial")
        return [page, *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: CompactionPolicy | None = None) -> Any:
        """Return a section of what most policies set, and one for each group of the others.

        A group is open where the policy sets something in it. Where no other system is installed,
        only what the policy sets is there, so that it can be read and taken out.
        """
        if not self._may_edit(request, obj):
            first = ["name", "base", "overrides", "is_active"]
            return [
                (
                    None,
                    {"fields": [*(["setup_file"] if self.find_setup_entry(obj) else []), *first]},
                )
            ]
        first = [
            "name",
            "base",
            "is_active",
            *(["trial"] if request.user.has_perm(TRIAL_RIGHT) else []),
        ]
        default_fields = [name.replace(".", "__") for name in DEFAULT_SETTINGS]
        sections: list[object] = [
            (None, {"fields": first}),
            ("Settings", {"fields": default_fields}),
        ]
        if obj and isinstance(obj.overrides, dict) and _list_unread(obj.overrides):
            sections.append(("Not known here", {"fields": ["unread"]}))
        set_names = set(_name_knobs(obj.overrides)) if obj else set()
        for group in ONECLAW.list_groups():
            names = [name for name in list_field_names(group) if name not in default_fields]
            if not names:
                continue
            is_open = any(name.replace("__", ".") in set_names for name in names)
            options = {
                "fields": names,
                "description": " ".join((type(group).__doc__ or "").split()),
                "classes": () if is_open else ("collapse",),
            }
            kind = "Other systems" if type(group) in OTHER_GROUPS else "More"
            title = f"{kind}: {group.prefix.replace('_', ' ')}"
            sections.append((title, options))
        if has_systems() or STAGES_FIELD in set_names:
            classes = () if STAGES_FIELD in set_names else ("collapse",)
            options = {"fields": [STAGES_FIELD], "classes": classes}
            sections.append(("Other systems: stages", options))
        return sections

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Return the form, which adds the knobs itself; who may only look needs none."""
        if self._may_edit(request, obj):
            kwargs["fields"] = PolicyForm.Meta.fields
        else:
            kwargs |= {"form": forms.ModelForm, "fields": []}
        return super().get_form(request, obj, change, **kwargs)

    def save_model(
        self, request: HttpRequest, obj: CompactionPolicy, form: PolicyForm, change: bool
    ) -> None:
        """Save the policy with the knobs, which are one column."""
        super().save_model(request, obj, form, change)
        obj.overrides = form.merge_overrides()
        obj.save(update_fields=["overrides"])

    @admin.display(description="differs in")
    def changed_knobs(self, policy: CompactionPolicy) -> str:
        """Name the knobs that differ from the base."""
        names = list(_name_knobs(policy.overrides))
        rest = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return ", ".join(names[:MAX_NAMED]) + rest

    @admin.display(description="problem")
    def problem(self, policy: CompactionPolicy) -> str:
        """Say why the policy cannot be used, so that whatever names it goes on with another."""
        try:
            policies.read_row(policy)
        except PolicyError as error:
            return str(error)
        return ""

    @admin.display(description="try it on a session")
    def trial(self, policy: CompactionPolicy) -> SafeString:
        """Return a button that shows what a run with these values would do; nothing is saved."""
        sessions = Session.objects.all()[:MAX_SESSIONS]
        return format_html(
            '<div class="run-buttons"><input name="try_session" list="try-sessions"'
            ' class="run-knob" aria-label="Number of a session" autocomplete="off"'
            ' placeholder="Number of a session">'
            '<datalist id="try-sessions">{}</datalist>'
            '<button formaction="{}" formmethod="post" formtarget="_blank" formnovalidate>'
            "Try these values</button></div>",
            format_html_join(
                "", '<option value="{}">{}</option>', ((row.pk, str(row)) for row in sessions)
            ),
            reverse("admin:compaction_trial"),
        )

    def show_trial(self, request: HttpRequest) -> HttpResponse:
        """Show what a run with the values of the form would do with a session. Stores nothing."""
        if not (self.has_view_permission(request) and request.user.has_perm(TRIAL_RIGHT)):
            raise PermissionDenied
        base = request.POST.get("base", "")
        overrides, errors = read_overrides(request.POST, base)
        complaints = [f"{name.replace('__', '.')} {text}." for name, text in errors.items()]
        run = session = None
        session_id = _read_session_id(request.POST.get("try_session", ""))
        if base not in PRESETS:
            complaints.append("Choose a base first.")
        if session_id is not None:
            session = find_session(session_id)
        if session is None:
            complaints.append("There is no such session. Its number is in the address of its page.")
        if not complaints and session is not None:
            note_act("admin.policy_tried", session.pk)
            try:
                run = engine.preview_run(session.pk, policy=base, overrides=overrides)
            except REFUSALS as error:
                complaints.append(str(error))
        context = self.admin_site.each_context(request) | {
            "title": "A policy, tried",
            "opts": self.opts,
            "complaints": complaints,
            "session": session,
            "run": run,
            "base": base,
            "knobs": _name_knobs(overrides),
        }
        return TemplateResponse(request, "compaction/admin/policy_trial.html", context)

    def _may_edit(self, request: HttpRequest, policy: CompactionPolicy | None) -> bool:
        if policy is None:
            return self.has_add_permission(request)
        return self.has_change_permission(request, policy)


def _name_knobs(overrides: object) -> dict[str, object]:
    """Return the values of a policy by the full names of their knobs."""
    values: dict[str, object] = {}
    for group, knobs in (overrides if isinstance(overrides, dict) else {}).items():
        if isinstance(knobs, dict):
            values |= {f"{group}.{name}": value for name, value in knobs.items()}
        else:
            values[group] = knobs
    return values


def _read_session_id(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None
