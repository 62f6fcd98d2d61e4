"""The prompts in the settings: a list, a form for each, and one for a new one."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chatcore.base.truncation import clean_text
from chatcore.contrib.prompts.changes import (
    NameTaken,
    TextsTooLong,
    TooManyPrompts,
    delete_prompt,
    save_prompt,
)
from chatcore.contrib.prompts.models import MAX_NAME_CHARS, MAX_TEXT_CHARS, NAME, Prompt, lower_name
from chatcore.models import Project


class PromptForm(forms.Form):
    """What a person writes of a prompt; the project is one of their own."""

    name = forms.CharField(max_length=MAX_NAME_CHARS, validators=[NAME])
    text = forms.CharField(max_length=MAX_TEXT_CHARS)

    def __init__(self, data: Any, projects: QuerySet[Project]) -> None:
        super().__init__(data)
        self.fields["project"] = forms.ModelChoiceField(projects, required=False)

    def clean_name(self) -> str:
        """Return the name in lower case."""
        return lower_name(self.cleaned_data["name"])

    def clean_text(self) -> str:
        """Return the text without what no database takes."""
        return clean_text(self.cleaned_data["text"])


def render_prompts(request: HttpRequest, problem: str = "", values: object = None) -> SafeString:
    """Render the section; `values` are those of a form that was not stored, for `problem`."""
    context = {
        "prompts": Prompt.objects.filter(owner=request.user.pk).select_related("project"),
        "projects": Project.objects.owned_by(request.user),
        "problem": problem,
        "values": values or {},
    }
    return render_to_string("prompts/prompts.html", context, request)


@login_required
@require_POST
def create_prompt(request: HttpRequest) -> HttpResponse:
    """Store a new prompt and show the section again."""
    owner_id: Any = request.user.pk
    return _store(request, Prompt(owner_id=owner_id))


@login_required
@require_POST
def edit_prompt(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Change a prompt and show the section again."""
    return _store(request, _get_prompt(request, pk))


@login_required
@require_POST
def remove_prompt(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Delete a prompt and show the section again."""
    delete_prompt(_get_prompt(request, pk))
    return HttpResponse(render_prompts(request))


def _get_prompt(request: HttpRequest, pk: UUID) -> Prompt:
    return get_object_or_404(Prompt.objects.filter(owner=request.user.pk), pk=pk)


def _store(request: HttpRequest, prompt: Prompt) -> HttpResponse:
    form = PromptForm(request.POST, Project.objects.owned_by(request.user))
    problem = ""
    if not form.is_valid():
        problem = " ".join(str(error) for errors in form.errors.values() for error in errors)
    else:
        try:
            save_prompt(prompt, form.cleaned_data)
        except NameTaken:
            problem = _("Another prompt has this name.")
        except TooManyPrompts:
            problem = _("There are as many prompts as there may be. Delete some first.")
        except TextsTooLong:
            problem = _("Your prompts are too long together. Delete some, or make one shorter.")
    return HttpResponse(render_prompts(request, problem, request.POST if problem else None))
