"""The project of a chat: find it, move the chat there, and say on its page what it is told."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import trigger_client_event

from chatcore.api.serializers.projects import parse_project_id
from chatcore.base.actors import Person
from chatcore.models import Project, Session
from chatcore.projects.system_text import list_left_out
from chatcore.sessions.changes import record_session_change
from chatcore.web.own_chat import get_own_chat
from models_registry.models import AiModel


def list_projects(user: Person) -> QuerySet[Project]:
    """Return the user's projects by name."""
    return Project.objects.owned_by(user)


def choose_project(request: HttpRequest) -> Project | None:
    """Return the project that a new chat is to begin in, by the parameter `project`.

    Raises Http404 for one that the user does not have.
    """
    if "project" not in request.GET:
        return None
    project_id = parse_project_id(request.GET["project"])
    return get_object_or_404(list_projects(request.user), pk=project_id)


def describe_project(project: Project | None, model: AiModel | None) -> dict[str, object] | None:
    """Return what the page of a chat says of its project; None without one."""
    if project is None:
        return None
    window = model.request_limit if model else None
    return {"project": project, "left_out_files": list_left_out(project, window)}


@login_required
@require_http_methods(["GET", "POST"])
def move_chat(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the dialog that chooses the project of a chat, or move the chat."""
    session = get_own_chat(request, pk)
    if request.method == "GET":
        context = {"chat": session, "projects": list_projects(request.user)}
        return render(request, "chatcore/projects/_move_dialog.html", context)
    project = None
    if request.POST.get("project"):
        project_id = parse_project_id(request.POST["project"])
        project = get_object_or_404(list_projects(request.user), pk=project_id)
    # No act of the conversation: the chat keeps its place in the list.
    record_session_change(pk, {"project": project}, is_user_act=False)
    session.project = project
    response = HttpResponse()
    if _is_shown(request, session):
        of_project = describe_project(project, session.model)
        fields: dict[str, object] = {"of_project": of_project, "is_moved": True}
        response = render(request, "chatcore/projects/_of_chat.html", fields)
    return trigger_client_event(response, "refresh")


def _is_shown(request: HttpRequest, session: Session) -> bool:
    """Return whether the browser shows the page of this chat."""
    current_path = request.htmx.current_url_abs_path or ""  # type: ignore[attr-defined]
    return bool(current_path.startswith(reverse("chat", args=[session.pk])))
