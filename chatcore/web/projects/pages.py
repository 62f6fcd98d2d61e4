"""The pages of projects: their list, and one with its words, rules, files and chats, and forms."""

from uuid import UUID

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from chatcore.accounts.rights import find_default_model
from chatcore.base.keeping import Kept
from chatcore.base.rest import limits
from chatcore.base.truncation import clean_text
from chatcore.models import Project, ProjectFile, Session
from chatcore.projects import changes
from chatcore.projects.changes import MAX_RULES, RULE_CHARS
from chatcore.projects.system_text import list_left_out
from chatcore.web.chat_list import load_sidebar
from chatcore.web.forms import LineField
from chatcore.web.own_chat import use_local_time
from chatcore.web.projects.chats import list_projects

MAX_NAME_CHARS = Project._meta.get_field("name").max_length or 0
MAX_CHATS = 100  # that the page of a project lists, the newest


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


def read_rules(data: QueryDict) -> tuple[list[str], str]:
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


@login_required
@require_GET
def show_projects(request: HttpRequest) -> HttpResponse:
    """Show the user's projects, and the form that makes one."""
    return _render_projects(request)


@login_required
@require_POST
def create_project(request: HttpRequest) -> HttpResponse:
    """Make a project and open its page."""
    form = NameForm(request.POST)
    if not form.is_valid():
        return _render_projects(request, {"refusal": _("A project needs a name.")}, status=400)
    try:
        project = changes.create_project(request.user, form.cleaned_data)
    except changes.TooManyProjects:
        detail = _("There are already %(count)s projects, the most. Delete some first.")
        refusal = detail % {"count": changes.MAX_PROJECTS}
        return _render_projects(request, {"refusal": refusal}, status=400)
    return redirect("project", project.pk)


@login_required
@require_GET
@use_local_time
def show_project(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show a project with everything in it."""
    project = get_own_project(request, pk)
    chats = Session.objects.list_for(request.user).filter(project=project)[: MAX_CHATS + 1]
    context = {
        "project": project,
        "form": ProjectForm(initial={"name": project.name, "instructions": project.instructions}),
        "rules": project.rules,
        "project_chats": chats[:MAX_CHATS],
        "has_more_chats": len(chats) > MAX_CHATS,
        "chats": load_sidebar(request.user),
        **_build_file_context(request, project),
    }
    return render(request, "chatcore/projects/project.html", context)


@login_required
@require_POST
def edit_project(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Store the name and the instructions; show the form again."""
    project = get_own_project(request, pk)
    form = ProjectForm(request.POST)
    is_saved = form.is_valid()
    if is_saved:
        try:
            project = changes.edit_project(project.pk, form.cleaned_data)
        except Kept as kept:
            return _refuse(kept)
    context = {"project": project, "form": form, "is_saved": is_saved}
    return render(request, "chatcore/projects/_words.html", context)


@login_required
@require_POST
def change_rules(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Store the whole list of rules; show it again."""
    project = get_own_project(request, pk)
    rules, refusal = read_rules(request.POST)
    if not refusal:
        try:
            changes.edit_project(project.pk, {"rules": rules})
        except Kept as kept:
            return _refuse(kept)
    context = {"project": project, "rules": rules, "refusal": refusal, "is_saved": not refusal}
    return render(request, "chatcore/projects/_rules.html", context)


@login_required
@require_GET
def show_files(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the list of a project's files."""
    return _render_files(request, get_own_project(request, pk))


@login_required
@require_POST
def delete_file(request: HttpRequest, pk: UUID, file_pk: UUID) -> HttpResponse:
    """Delete a file of a project; show the list of the others."""
    project = get_own_project(request, pk)
    try:
        changes.delete_file(get_object_or_404(ProjectFile, pk=file_pk, project=project))
    except Kept as refusal:
        return _refuse(refusal)
    return _render_files(request, project)


@login_required
@require_POST
def delete_project(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Delete a project, and say that its chats stay."""
    project = get_own_project(request, pk)
    try:
        count = changes.delete_project(project.pk)
    except Kept as refusal:
        return _refuse(refusal)
    sentence = ngettext(
        "The project %(name)s was deleted. Its %(count)s chat stays.",
        "The project %(name)s was deleted. Its %(count)s chats stay.",
        count,
    )
    notice = sentence % {"name": project.name, "count": count}
    return _render_projects(request, {"notice": notice})


def get_own_project(request: HttpRequest, pk: UUID) -> Project:
    """Return the user's project. Raises Http404 for the projects of other users too."""
    return get_object_or_404(list_projects(request.user), pk=pk)


def _render_projects(
    request: HttpRequest, values: dict[str, object] | None = None, *, status: int = 200
) -> HttpResponse:
    context = {"projects": list_projects(request.user), "chats": load_sidebar(request.user)}
    page = "chatcore/projects/projects.html"
    return render(request, page, context | (values or {}), status=status)


def _render_files(request: HttpRequest, project: Project) -> HttpResponse:
    context = {"project": project, **_build_file_context(request, project)}
    return render(request, "chatcore/projects/_files.html", context)


def _build_file_context(request: HttpRequest, project: Project) -> dict[str, object]:
    """Return the files, and those that do not fit into the user's default model."""
    model = find_default_model(request.user.pk)
    return {
        "files": project.files.defer("data", "text"),
        "model": model,
        "left_out_files": list_left_out(project, model.request_limit if model else None),
    }


def _refuse(refusal: Kept) -> HttpResponse:
    return HttpResponse(_(str(refusal)), status=409, content_type="text/plain; charset=utf-8")
