"""A user's own MCP servers on the settings page: add, test, edit and delete them.

No page shows a stored header, only its name.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chatcore.base.databases.person_lock import lock_person
from chatcore.base.rest import turn_rate
from chatcore.base.rest.problems import Problem, build_headers
from chatcore.models import McpServer
from chatcore.models.mcp_server import McpServerQuerySet
from chatcore.tools.mcp.refresh import refresh_server
from chatcore.web.forms import OwnServerForm

View = Callable[..., HttpResponse]


def list_servers(request: HttpRequest) -> McpServerQuerySet:
    """Return the servers that the user has added, by name."""
    return McpServer.objects.owned_by(request.user)


def build_new_form(request: HttpRequest, data: QueryDict | None = None) -> OwnServerForm:
    """Return the form that adds a server; `data` is what it was sent."""
    owner: Any = request.user
    return OwnServerForm(data, instance=McpServer(owner=owner), auto_id="server-new-%s")


def answer_busy(view: View) -> View:
    """Let a view answer 429 with a sentence where the user has asked for too much this minute."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **options: object) -> HttpResponse:
        try:
            return view(request, *args, **options)
        except Problem as problem:
            headers = build_headers(problem)
            sentence = _("That was too much for one minute. Try again in %(seconds)s seconds.")
            text = sentence % {"seconds": headers["Retry-After"]}
            return HttpResponse(text, status=429, headers=headers, content_type="text/plain")

    return answer


@login_required
@require_POST
@answer_busy
def create_server(request: HttpRequest) -> HttpResponse:
    """Add a server and ask it for its tools. One that cannot be asked is kept, and says why."""
    form = build_new_form(request, request.POST)
    context: dict[str, object] = {"server_form": form}
    if _save(request, form):
        new_form = build_new_form(request)
        context = {"server_form": new_form, "server": form.instance, "is_new": True}
    return render(request, "chatcore/_new_tool_server.html", context)


@login_required
@require_GET
def show_server(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show a server's row again, after a form was left."""
    context = {"server": _get_server(request, pk), "focus": "edit"}
    return render(request, "chatcore/_tool_server.html", context)


@login_required
@require_http_methods(["GET", "POST"])
@answer_busy
def edit_server(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show the form of a server in the place of its row, or change the server.

    With another address it loses its headers, unless new ones come too.
    """
    server = _get_server(request, pk)
    is_sent = request.method == "POST"
    data = request.POST if is_sent else None
    form = OwnServerForm(data, instance=server, auto_id=f"server-{pk}-%s")
    if is_sent and _save(request, form):
        context = {"server": server, "focus": "edit"}
        return render(request, "chatcore/_tool_server.html", context)
    context = {"server": server, "server_form": form}
    return render(request, "chatcore/_edited_tool_server.html", context)


@login_required
@require_POST
@answer_busy
def check_server(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Ask a server for its tools and show them, or why it could not be asked."""
    server = _get_server(request, pk)
    turn_rate.count_turn(request)
    refresh_server(server)
    return render(request, "chatcore/_tool_server_test.html", {"server": server, "is_open": True})


@login_required
@require_POST
def delete_server(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Delete a server, with what was decided about its tools."""
    _get_server(request, pk).delete()
    return HttpResponse()


def _get_server(request: HttpRequest, pk: UUID) -> McpServer:
    return get_object_or_404(list_servers(request), pk=pk)


def _save(request: HttpRequest, form: OwnServerForm) -> bool:
    """Save the server if the form is right, and ask it for its tools if it is not the same one."""
    if not _store(request, form):
        form.prepare_correction()
        return False
    if form.changes_connection:
        refresh_server(form.instance)
    return True


def _store(request: HttpRequest, form: OwnServerForm) -> bool:
    try:
        with transaction.atomic():
            lock_person(request.user.pk)
            if not form.is_valid():
                return False
            if form.changes_connection:
                turn_rate.count_turn(request)
            form.save()
    except IntegrityError:
        form.refuse_name()
        return False
    return True
