"""What pages show of memory."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.extension import Place
from compaction.memory.models import LedgerLine

TEMPLATES = {
    "context_panel": "memory/_ledger.html",
    "summary_card": "memory/_missing.html",
    "timeline": "memory/_timeline.html",
}
TIMELINE_LINES = 100


def build_parts(place: Place, request: HttpRequest, subject: Any) -> list[SafeString]:
    """Render what a place shows: the ledger, or what a summary leaves out."""
    if place not in TEMPLATES:
        return []
    context: dict[str, Any] = {}
    if place == "timeline":
        context["ledger"] = _list_newest_lines(subject)
        if not context["ledger"]:
            return []
    return [render_to_string(TEMPLATES[place], context, request)]


def _list_newest_lines(session_id: UUID) -> list[LedgerLine]:
    """Return the newest lines, each text once: people repeat their rules, and models too."""
    lines = LedgerLine.objects.filter(session_id=session_id, is_withdrawn=False)
    newest: dict[tuple[str, str], LedgerLine] = {}
    for line in lines.order_by("-seq", "-pk")[: TIMELINE_LINES * 4]:
        newest.setdefault((line.kind, " ".join(line.text.casefold().split())), line)
    return list(newest.values())[:TIMELINE_LINES]
