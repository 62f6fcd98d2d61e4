"""What pages show of memory, and "What it knows about me" in the settings."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from chatcore.base.keeping import Kept, refuse_lost_text
from chatcore.base.truncation import clean_text
from chatcore.extension import Place
from chatcore.models import Session
from chatcore.web.own_chat import get_own_chat
from compaction.memory.core.ledger.corrections import find_corrected, find_forgotten, get_place
from compaction.memory.core.ledger.lines import LINE_CHARS
from compaction.memory.ledger import changes, rules, store
from compaction.memory.models import LedgerLine, StandingRule
from compaction.sessions.facts import list_session_ids

TEMPLATES = {
    "context_panel": "memory/_ledger.html",
    "summary_card": "memory/_missing.html",
}
TIMELINE_LINES = 100
CHATS_A_PAGE = 10
LINES_A_CHAT = 20


class LineForm(forms.Form):
    """What a user writes of a rule or a line."""

    kind = forms.ChoiceField(choices=LedgerLine.Kind.choices)
    text = forms.CharField(max_length=LINE_CHARS)

    def clean_text(self) -> str:
        """Return the text without what no database takes."""
        return clean_text(self.cleaned_data["text"])


def build_parts(place: Place, request: HttpRequest, subject: Any) -> list[SafeString]:
    """Render what a place shows of memory."""
    if place == "settings":
        return [render_to_string("memory/about_me.html", _describe_rules(request), request)]
    if place == "timeline":
        lines = _list_newest_lines(subject)
        return [render_to_string("memory/_timeline.html", {"ledger": lines})] if lines else []
    if place == "chat_settings":
        return _build_choice(request, subject)
    return [render_to_string(TEMPLATES[place], {}, request)] if place in TEMPLATES else []


def _list_newest_lines(session_id: UUID) -> list[LedgerLine]:
    """Return the newest lines, each text once: users repeat their rules, and models too."""
    lines = LedgerLine.objects.filter(session_id=session_id, is_withdrawn=False)
    newest: dict[tuple[str, str], LedgerLine] = {}
    for line in lines.order_by("-seq", "-pk")[: TIMELINE_LINES * 4]:
        newest.setdefault((line.kind, " ".join(line.text.casefold().split())), line)
    return _mark_taken_back(session_id, list(newest.values())[:TIMELINE_LINES])


def _mark_taken_back(session_id: UUID, lines: list[LedgerLine]) -> list[LedgerLine]:
    """Give each line `taken_back`: "corrected", "forgotten", or nothing."""
    all_lines = store.load_lines(session_id)
    states = dict.fromkeys(find_corrected(all_lines), "corrected")
    states |= dict.fromkeys(find_forgotten(all_lines), "forgotten")
    for line in lines:
        line.taken_back = states.get(get_place(store.to_core_line(line)), "")  # type: ignore[attr-defined]
    return lines


def _build_choice(request: HttpRequest, session: Session) -> list[SafeString]:
    """Offer to leave the rules out of a stored chat that would have them."""
    is_stored = list_session_ids(request.user).filter(pk=session.pk).exists()
    if not is_stored:
        return []
    context = {"chat": session.pk, "are_left_out": rules.are_left_out(session.pk)}
    return [render_to_string("memory/_left_out.html", context, request)]


@login_required
@require_POST
def leave_rules_out(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Let a chat do without the rules, or not."""
    rules.set_left_out(get_own_chat(request, pk).pk, bool(request.POST.get("left_out")))
    return HttpResponse(status=204)


@login_required
@require_POST
def add_rule(request: HttpRequest) -> HttpResponse:
    """Store a new rule and show all of them again."""

    def store_rule(fields: Mapping[str, str]) -> None:
        rules.add_rule(request.user, fields)

    return _show_rules(request, _try_to_change(request, store_rule))


@login_required
@require_POST
def edit_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a rule and show all of them again."""
    rule = get_object_or_404(_select_rules(request), pk=pk)

    def change_rule(fields: Mapping[str, str]) -> None:
        refuse_lost_text(rule.owner_id, rule.text, fields["text"])
        _select_rules(request).filter(pk=pk).update(**fields)

    return _show_rules(request, _try_to_change(request, change_rule))


@login_required
@require_POST
def forget_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a rule and show the others."""
    rule = get_object_or_404(_select_rules(request), pk=pk)
    try:
        refuse_lost_text(rule.owner_id, rule.text, "")
    except Kept as refusal:
        return _show_rules(request, _(str(refusal)))
    rule.delete()
    return _show_rules(request)


@login_required
@require_GET
def list_chats(request: HttpRequest) -> HttpResponse:
    """Show a page of the chats that remember something, the newest first, with their lines."""
    return _show_chats(request)


@login_required
@require_POST
def edit_line(request: HttpRequest, chat: UUID, line: int) -> HttpResponse:
    """Change a line of a chat and show the page of chats again."""
    old = get_object_or_404(store.select_lines(get_own_chat(request, chat).pk), pk=line)

    def change_line(fields: Mapping[str, str]) -> None:
        refuse_lost_text(request.user.pk, old.text, fields["text"])
        changes.change_line(chat, line, fields)

    return _show_chats(request, _try_to_change(request, change_line))


@login_required
@require_POST
def forget_line(request: HttpRequest, chat: UUID, line: int) -> HttpResponse:
    """Delete a line of a chat and show the page of chats again."""
    old = get_object_or_404(store.select_lines(get_own_chat(request, chat).pk), pk=line)
    try:
        refuse_lost_text(request.user.pk, old.text, "")
    except Kept as refusal:
        return _show_chats(request, _(str(refusal)))
    changes.delete_line(chat, line)
    return _show_chats(request)


def _try_to_change(request: HttpRequest, change: Callable[[Mapping[str, str]], None]) -> str:
    """Store what the form says; return why it was not stored, for the user."""
    form = LineForm(request.POST)
    if not form.is_valid():
        return " ".join(str(error) for errors in form.errors.values() for error in errors)
    try:
        change(form.cleaned_data)
    except Kept as refusal:
        return _(str(refusal))
    except rules.TooManyRules:
        return _("There are as many rules as there may be. Forget some first.")
    return ""


def _select_rules(request: HttpRequest) -> QuerySet[StandingRule]:
    return StandingRule.objects.filter(owner=request.user.pk)


def _describe_rules(request: HttpRequest) -> dict[str, object]:
    sources = _select_rules(request).select_related("line__session").order_by("id")
    return {
        "rules": sources,
        "kinds": _name_kinds(),
        "max_chars": LINE_CHARS,
        "chats_without": rules.list_sessions_without(request.user.pk),
    }


def _show_rules(request: HttpRequest, problem: str = "") -> HttpResponse:
    context = _describe_rules(request) | {"problem": problem}
    if problem:
        context["values"] = request.POST
    return render(request, "memory/about_me.html", context)


def _show_chats(request: HttpRequest, problem: str = "") -> HttpResponse:
    """Show the page of chats that the address or the form names."""
    lines = LedgerLine.objects.filter(
        session__in=list_session_ids(request.user),
        status=LedgerLine.Status.CURRENT,
        is_withdrawn=False,
    ).exclude(text="")
    chats = Session.objects.filter(pk__in=lines.values("session")).order_by("-updated_at", "pk")
    page = Paginator(chats, CHATS_A_PAGE).get_page(
        request.POST.get("page") or request.GET.get("page")
    )
    context = {
        "page": page,
        "chats": [_describe_chat(chat) for chat in page],
        "kinds": _name_kinds(),
        "max_chars": LINE_CHARS,
        "problem": problem,
    }
    return render(request, "memory/_chats.html", context)


def _describe_chat(chat: Session) -> dict[str, object]:
    lines = store.select_distinct_lines(chat.pk).filter(status=LedgerLine.Status.CURRENT)
    newest = list(lines.order_by("-id")[: LINES_A_CHAT + 1])
    return {
        "chat": chat,
        "lines": _mark_taken_back(chat.pk, newest[:LINES_A_CHAT]),
        "has_more": len(newest) > LINES_A_CHAT,
    }


def _name_kinds() -> list[tuple[str, str]]:
    """Return the kinds of lines with the words that pages have for them."""
    return [
        ("rule", _("Rule")),
        ("preference", _("Preference")),
        ("decision", _("Decision")),
        ("commitment", _("Commitment")),
        ("fact", _("Fact")),
        ("value", _("Exact value")),
    ]
