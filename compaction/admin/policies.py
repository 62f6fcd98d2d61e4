"""The admin page of the operator's own policies: a field for each knob, and a trial."""

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.apps import apps
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatcore.admin.setup_file import SetupFileAdmin
from compaction.admin.policy_form import (
    STAGES_FIELD,
    PolicyForm,
    list_field_names,
    list_groups,
    read_overrides,
)
from compaction.admin.timeline import REFUSALS
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy
from compaction.runs import engine
from compaction.sessions.records import name_session, note_act

TRIAL_RIGHT = "compaction.change_compactionrun"
MAX_SESSIONS = 30  # that are proposed for a trial, the newest
MAX_NAMED = 6  # knobs in the list


@admin.register(CompactionPolicy)
class CompactionPolicyAdmin(SetupFileAdmin):
    """A preset with other values for some knobs, under a name of its own."""

    form = PolicyForm
    setup_section = "policies"
    list_display = ("name", "base", "changed_knobs", "is_active")
    search_fields = ("name",)
    readonly_fields = ("trial",)

    class Media:
        css: ClassVar = {"all": ("chatcore/css/compaction_runs.css",)}

    def get_urls(self) -> list[Any]:
        """Add the page of a trial."""
        page = path("try/", self.admin_site.admin_view(self.show_trial), name="compaction_trial")
        return [page, *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: CompactionPolicy | None = None) -> Any:
        """Return a section for each group of knobs, open where a knob differs from the base."""
        if not self._may_edit(request, obj):
            first = ["name", "base", "overrides", "is_active"]
            return [
                (
                    None,
                    {"fields": [*(["setup_file"] if self.find_setup_entry(obj) else []), *first]},
                )
            ]
        overrides = obj.overrides if obj and isinstance(obj.overrides, dict) else {}
        first = [
            "name",
            "base",
            "is_active",
            *(["trial"] if request.user.has_perm(TRIAL_RIGHT) else []),
        ]
        sections: list[object] = [(None, {"fields": first})]
        for group in list_groups():
            options = {
                "fields": list_field_names(group),
                "description": " ".join((type(group).__doc__ or "").split()),
                "classes": () if overrides.get(group.prefix) else ("collapse",),
            }
            sections.append((group.prefix.replace("_", " ").capitalize(), options))
        sections.append(("Stages", {"fields": [STAGES_FIELD]}))
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
        self, request: HttpRequest, obj: CompactionPolicy, form: Any, change: bool
    ) -> None:
        """Save the policy with the knobs, which are one column."""
        super().save_model(request, obj, form, change)
        if change:
            obj.save(update_fields=["overrides"])

    @admin.display(description="differs in")
    def changed_knobs(self, policy: CompactionPolicy) -> str:
        """Name the knobs that differ from the base."""
        names = list(_name_knobs(policy.overrides))
        rest = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return ", ".join(names[:MAX_NAMED]) + rest

    @admin.display(description="try it on a session")
    def trial(self, policy: CompactionPolicy) -> SafeString:
        """Return a button that shows what a run with these values would do; nothing is saved."""
        model = apps.get_model("chatcore.Session")
        sessions = model._default_manager.all()[:MAX_SESSIONS]
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
        run = label = None
        session_id = _read_session_id(request.POST.get("try_session", ""))
        if base not in PRESETS:
            complaints.append("Choose a base first.")
        if session_id is not None:
            label = name_session(session_id)
        if label is None:
            complaints.append("There is no such session. Its number is in the address of its page.")
        if not complaints and session_id is not None:
            note_act("admin.policy_tried", session_id)
            try:
                run = engine.preview_run(session_id, policy=base, overrides=overrides)
            except REFUSALS as error:
                complaints.append(str(error))
        context = self.admin_site.each_context(request) | {
            "title": "A policy, tried",
            "opts": self.opts,
            "complaints": complaints,
            "label": label,
            "session_id": session_id,
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
