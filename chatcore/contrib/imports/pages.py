"""The page of an import: how far it is, and at its end what came in and what did not."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from chatcore.contrib.imports.chat_storing import count_projects
from chatcore.contrib.imports.jobs import KEPT_FOR, measure_upload
from chatcore.contrib.imports.models import Import
from chatcore.models import Session
from chatcore.web.chat_list import load_sidebar

SHOWN_PROBLEMS = 500


@login_required
def show_import(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show an import; a page that asks for its news by htmx gets the part that changes."""
    row = get_object_or_404(Import.objects.filter(owner=request.user.pk), pk=pk)
    received, size = measure_upload(row)
    problems = row.problems.defer("original")
    context = {
        "row": row,
        "is_open": row.status in Import.OPEN_STATUSES,
        "percent": round(100 * received / size) if size else 100,
        "done": row.came + row.partly + row.refused + row.known,
        "projects": count_projects(row),
        "partly": problems.exclude(session=None)[:SHOWN_PROBLEMS],
        "refused": problems.filter(session=None)[:SHOWN_PROBLEMS],
        "shown_problems": SHOWN_PROBLEMS,
        "days": KEPT_FOR.days,
        "newest": Session.objects.list_for(request.user)
        .filter(imported_as__belongs_to=row)
        .first(),
    }
    if request.headers.get("HX-Request"):
        context["has_just_ended"] = not context["is_open"]
        return render(request, "imports/_import.html", context)
    return render(request, "imports/import.html", {**context, "chats": load_sidebar(request.user)})
