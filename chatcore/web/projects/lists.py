"""Find a user's projects, and say on the page of a chat what it is told of its project."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from chatcore.api.serializers.projects import parse_project_id
from chatcore.models import Project
from chatcore.projects.system_text import list_left_out
from models_registry.models import AiModel


def list_projects(user: Any) -> QuerySet[Project]:
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
