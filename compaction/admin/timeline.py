"""Show how a session's context came about, and act on it: compact, rewind, edit, clear."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise, zip_longest
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db import transaction
from django.db.models import Count
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatcore.accounts.spending import CallRefused
from chatcore.admin.base import ChatcoreAdmin
from chatcore.context import revisions
from chatcore.extension import build_page_parts
from chatcore.models import ContextEdit, ContextRevision, Message
from chatcore.sessions import changes
from compaction import policies
from compaction.admin.base import find_session, note_act, render_difference
from compaction.core.knobs import PolicyError
from compaction.models import CompactionRun
from compaction.runs import engine, history, queue
from compaction.sessions import session_context
from compaction.sessions.facts import load_session_facts

WIDTH, HEIGHT = 960, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 14, 24
MAX_DOTS = 60  # with more answers the line alone says enough
DROP_SHARE = 0.2  # a request that is so much smaller than the one before is a drop

PAGE_SIZE = 20  # entries of the timeline
CHART_TURNS = 200
MAX_SUMMARY_CHARS = 200_000  # of a version that is shown
REFUSALS = (
    session_context.NoSuchSession,
    queue.RunConflict,
    queue.TooManyRuns,
    CallRefused,
    policies.UnknownPolicy,
    PolicyError,
    history.NothingToMove,
)


class TurnSize(NamedTuple):
    """The tokens that were sent for an answer, as its provider counted them."""

    seq: int
    sent_tokens: int


def draw_sizes(sizes: Sequence[TurnSize], *, threshold: int | None) -> SafeString | str:
    """Return a picture of the sent tokens of each answer, in order, as SVG."""
    if not sizes:
        return ""
    top = max(threshold or 0, *(size.sent_tokens for size in sizes), 1) * 1.08
    width = WIDTH - LEFT - RIGHT

    def place_x(index: int) -> float:
        return LEFT + width * (index + 0.5) / len(sizes)

    def place_y(tokens: int) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tokens / top)

    points = [(place_x(index), place_y(size.sent_tokens)) for index, size in enumerate(sizes)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    floor = HEIGHT - BOTTOM
    drops = [
        (f"{points[index][0]:.1f}", TOP, floor, _describe_drop(before.sent_tokens, size))
        for index, (before, size) in enumerate(pairwise(sizes), start=1)
        if size.sent_tokens < before.sent_tokens * (1 - DROP_SHARE)
    ]
    return format_html(
        '<svg class="run-chart" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">{body}</svg>',
        w=WIDTH,
        h=HEIGHT,
        label=f"Tokens sent with {len(sizes)} answers",
        body=format_html(
            '<polygon class="area" points="{x0},{floor} {line} {x1},{floor}"/>'
            '<line class="axis" x1="{left}" y1="{floor}" x2="{right}" y2="{floor}"/>'
            '{drops}<polyline class="sent" points="{line}"/>{dots}{limit}{ends}',
            x0=f"{points[0][0]:.1f}",
            x1=f"{points[-1][0]:.1f}",
            left=LEFT,
            right=WIDTH - RIGHT,
            floor=floor,
            line=line,
            drops=format_html_join(
                "",
                '<line class="drop" x1="{0}" y1="{1}" x2="{0}" y2="{2}"><title>{3}</title></line>',
                drops,
            ),
            dots=_draw_dots(points, sizes) if len(sizes) <= MAX_DOTS else "",
            limit=_draw_limit(threshold, place_y(threshold)) if threshold else "",
            ends=_draw_texts(sizes, place_y(max(size.sent_tokens for size in sizes))),
        ),
    )


def _draw_dots(points: Sequence[tuple[float, float]], sizes: Sequence[TurnSize]) -> SafeString:
    """Return a dot for each answer; a line of one point would not be seen."""
    dots = [
        (f"{x:.1f}", f"{y:.1f}", f"message {size.seq}: {size.sent_tokens:,} tokens")
        for (x, y), size in zip(points, sizes, strict=True)
    ]
    return format_html_join(
        "", '<circle class="dot" cx="{}" cy="{}" r="3"><title>{}</title></circle>', dots
    )


def _describe_drop(before: int, size: TurnSize) -> str:
    return f"message {size.seq}: {before:,} → {size.sent_tokens:,} tokens"


def _draw_limit(threshold: int, y: float) -> SafeString:
    return format_html(
        '<line class="limit" x1="{}" y1="{}" x2="{}" y2="{}"/>'
        '<text x="{}" y="{}" text-anchor="end">threshold {}</text>',
        LEFT,
        f"{y:.1f}",
        WIDTH - RIGHT,
        f"{y:.1f}",
        WIDTH - RIGHT,
        f"{y - 4:.1f}",
        f"{threshold:,}",
    )


def _draw_texts(sizes: Sequence[TurnSize], top_y: float) -> SafeString:
    largest = max(size.sent_tokens for size in sizes)
    texts = [
        (LEFT - 6, f"{top_y + 4:.1f}", "end", f"{largest:,}"),
        (LEFT - 6, HEIGHT - BOTTOM, "end", "0"),
        (LEFT, HEIGHT - 6, "start", f"message {sizes[0].seq}"),
        (WIDTH - RIGHT, HEIGHT - 6, "end", f"message {sizes[-1].seq}"),
    ]
    return format_html_join("", '<text x="{}" y="{}" text-anchor="{}">{}</text>', texts)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A version of the context with what changed, or a run that made none."""

    at: datetime
    step: ContextRevision | None = None
    actor: str = ""  # empty: it was automatic
    edit_count: int = 0  # messages that are sent in another form from this version on
    run: CompactionRun | None = None
    difference: SafeString | str = ""


def show_timeline(page: ChatcoreAdmin, request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show a page of the timeline, or do what a button of it asks for."""
    if not page.has_view_permission(request):
        raise PermissionDenied
    session = find_session(session_id)
    context = session_context.load_session_context(session_id)
    if session is None or context is None:
        raise Http404
    may_see = page.may_see_contents(request)
    may_act = page.has_change_permission(request)
    if request.method == "POST":
        if not may_act or (request.POST.get("act") == "edit" and not may_see):
            raise PermissionDenied
        _act(request, session_id)
        return HttpResponseRedirect(reverse("admin:compaction_session_timeline", args=[session_id]))
    if may_see and session.owner_id != request.user.pk:
        note_act("content.read", session_id, detail="timeline")
    sizes = _load_turn_sizes(session_id, before_seq=_read_number(request, "seq"))
    entries = _list_entries(session_id, _read_time(request), with_texts=may_see)
    return TemplateResponse(
        request,
        "compaction/admin/timeline.html",
        page.admin_site.each_context(request)
        | {
            "title": str(session),
            "opts": page.opts,
            "original": session,  # which is what a page's head names
            "session": session,
            "currency": settings.CHATCORE["CURRENCY"],
            "facts": context.facts,
            "budget": context.budget,
            "policy": context.policy_name,
            "policies": list(policies.list_policies()),
            "chart": draw_sizes(
                sizes, threshold=context.budget.threshold if context.budget else None
            ),
            "earlier_seq": sizes[0].seq if len(sizes) == CHART_TURNS else None,
            "entries": entries,
            "earlier": entries[-1].at.isoformat() if len(entries) == PAGE_SIZE else None,
            "parts": build_page_parts("timeline", request, session_id) if may_see else (),
            "trial": _try_policy(request, session_id) if may_act else None,
            "may_see": may_see,
            "may_act": may_act,
        },
    )


def _load_turn_sizes(session_id: UUID, *, before_seq: int | None) -> list[TurnSize]:
    """Return the newest answers that a provider counted, superseded ones too, in order."""
    answers = Message.objects.filter(
        session=session_id, role=Message.Role.ASSISTANT, token_count_input__isnull=False
    )
    if before_seq is not None:
        answers = answers.filter(seq__lt=before_seq)
    rows = answers.order_by("-seq").values_list("seq", "token_count_input")[:CHART_TURNS]
    return [TurnSize(seq, sent_tokens or 0) for seq, sent_tokens in reversed(rows)]


def _list_entries(session_id: UUID, before: datetime | None, *, with_texts: bool) -> list[Entry]:
    """Return versions and other runs, the newest first; no more is read than is shown."""
    steps = _load_steps(session_id, before)
    runs = CompactionRun.objects.filter(session_id=session_id).defer(
        "policy_snapshot", "edits", "targets", "state_after"
    )
    if before is not None:
        runs = runs.filter(created_at__lt=before)
    found_runs = {str(run.pk): run for run in runs.order_by("-created_at")[:PAGE_SIZE]}
    found_runs |= {
        str(run.pk): run
        for run in runs.model.objects.filter(
            session_id=session_id,
            pk__in=[step.run for step in steps if step.run and step.run not in found_runs],
        )
    }
    summaries = _load_summaries(steps) if with_texts else {}
    actors = get_user_model()._default_manager.in_bulk({step.actor_id for step in steps} - {None})
    edits = ContextEdit.objects.filter(
        session=session_id, from_version__in=[step.version for step in steps]
    )
    edit_counts = dict(edits.order_by().values_list("from_version").annotate(count=Count("pk")))
    entries = []
    for step, earlier in zip_longest(steps, steps[1:]):
        summary = summaries.get(step.pk, "")
        earlier_summary = summaries.get(earlier.pk, "") if earlier else ""
        entries.append(
            Entry(
                at=step.created_at,
                step=step,
                actor=_name_actor(step.actor_id, actors),
                edit_count=edit_counts.get(step.version, 0),
                run=found_runs.pop(step.run, None),
                difference=render_difference(earlier_summary, summary)
                if summary != earlier_summary
                else "",
            )
        )
    entries += [Entry(at=run.created_at, run=run) for run in found_runs.values()]
    return sorted(entries, key=lambda entry: entry.at, reverse=True)[:PAGE_SIZE]


def _load_steps(session_id: UUID, before: datetime | None) -> list[ContextRevision]:
    """Return the newest versions, without their texts, and one more than a page shows."""
    steps = ContextRevision.objects.filter(session=session_id)
    if before is not None:
        steps = steps.filter(created_at__lt=before)
    steps = steps.defer("summary", "background", "kept_seqs").order_by("-version")
    return list(steps[: PAGE_SIZE + 1])


def _load_summaries(steps: Sequence[ContextRevision]) -> dict[int, str]:
    """Return the beginnings of the summaries of versions, by their keys."""
    rows = ContextRevision.objects.filter(pk__in=[step.pk for step in steps]).order_by()
    texts = rows.annotate(text=Left("summary", MAX_SUMMARY_CHARS)).values_list("pk", "text")
    return {pk: text or "" for pk, text in texts}


def _name_actor(actor_id: int | None, actors: Mapping[int, object]) -> str:
    if actor_id is None:
        return ""
    return str(actors.get(actor_id) or f"user {actor_id}, erased")


def _try_policy(request: HttpRequest, session_id: UUID) -> CompactionRun | str | None:
    """Return what a run would do under the policy that is tried, or why there can be none."""
    name = request.GET.get("try")
    if name is None:
        return None
    options: queue.RunOptions = {"instructions": request.GET.get("instructions", "")}
    if name:
        options["policy"] = name
    try:
        return engine.preview_run(session_id, **options)
    except REFUSALS as error:
        return str(error)


def _act(request: HttpRequest, session_id: UUID) -> None:
    """Do what the button asks for; the audit log has it even if it is refused."""
    name = request.POST.get("act", "")
    if name not in ACTS:
        messages.error(request, "There is no such act.")
        return
    note_act(f"admin.{name}", session_id)
    try:
        text = ACTS[name](request, session_id)
    except REFUSALS as error:
        messages.error(request, str(error))
    except (ObjectDoesNotExist, ValueError):
        messages.error(request, "There is no such version of this session.")
    else:
        messages.success(request, text)


def _compact(request: HttpRequest, session_id: UUID) -> str:
    queue.use_allowance(session_id, user_pk=request.user.pk)
    options: queue.RunOptions = {"instructions": request.POST.get("instructions", "")[:4000]}
    if name := request.POST.get("policy"):
        options["policy"] = name
    run = engine.request_run(session_id, trigger="manual", **options)
    return f"Run {run.pk} is requested; a worker executes it."


def _rewind(request: HttpRequest, session_id: UUID) -> str:
    version = int(request.POST.get("version", ""))
    history.go_to_version(session_id, version)
    return f"The model sees version {version} again."


def _edit(request: HttpRequest, session_id: UUID) -> str:
    text = request.POST.get("summary", "").replace("\r\n", "\n").replace("\0", "").strip()
    facts = load_session_facts(session_id)
    if facts is None or facts.summary is None or not text:
        return "Nothing was changed: a summary is edited, and not begun or emptied, here."
    with transaction.atomic():
        version = revisions.reword_summary(session_id, summary=text).version
        changes.announce_context_change(session_id, version)
    return f"The summary is edited; that is version {version}."


def _clear(request: HttpRequest, session_id: UUID) -> str:
    with transaction.atomic():
        version = revisions.reset_context(session_id).version
        changes.announce_context_change(session_id, version)
    return "The whole history is sent again."


ACTS = {"compact": _compact, "rewind": _rewind, "edit": _edit, "clear": _clear}


def _read_number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _read_time(request: HttpRequest) -> datetime | None:
    try:
        moment = parse_datetime(request.GET.get("before", ""))
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo else None
