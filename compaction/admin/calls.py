"""Show what was asked of the model in a run: the tree of its calls, and one of them whole."""

import json
from itertools import groupby
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatcore.admin.base import ChatcoreAdmin
from compaction.admin.base import find_session, note_act
from compaction.models import CompactionRun, ModelCall

MAX_CALLS = 500  # that the tree shows
KINDS = {
    "messages": "Summaries of messages",
    "leaf": "Segments of summaries",
    "merge": "Summaries of summaries",
    "rollup": "Shortening of the summary",
    "memory": "Folding of the memory",
}


def render_calls(run: CompactionRun) -> SafeString | str:
    """Return the run's calls as a tree: levels, their parts, and the attempts at each."""
    calls = list(run.calls.defer("request", "answer").order_by("number")[:MAX_CALLS])
    if not calls:
        return "none is stored"
    levels = [
        (_name_level(kind, level), _render_parts(list(group)))
        for (kind, level), group in groupby(calls, key=lambda call: (call.kind, call.level))
    ]
    body = format_html_join("", "<li>{}<ul>{}</ul></li>", levels)
    rest = run.provider_calls - len(calls)
    more = f"{rest} calls more are not shown or no longer stored." if rest > 0 else ""
    return format_html('<ul class="run-tree">{}</ul><span class="run-quiet">{}</span>', body, more)


def show_call(page: ChatcoreAdmin, request: HttpRequest, run_id: UUID, number: int) -> HttpResponse:
    """Show a call with its request and answer, to those who may see contents."""
    if not (page.has_view_permission(request) and page.may_see_contents(request)):
        raise PermissionDenied
    call = get_object_or_404(ModelCall.objects.select_related("run"), run=run_id, number=number)
    session = find_session(call.run.session_id)
    if session is not None and session.owner_id != request.user.pk:
        detail = f"call {number} of run {run_id}"
        note_act("content.read", call.run.session_id, detail=detail)
    context = page.admin_site.each_context(request) | {
        "title": f"Call {number}",
        "call": call,
        "facts": _describe_call(call),
        "request_text": _indent(call.request_text),
        "answer_text": call.answer_text,
        "session": session,
        "opts": page.opts,
    }
    return TemplateResponse(request, "compaction/admin/call.html", context)


def _name_level(kind: str, level: int) -> str:
    name = KINDS.get(kind, kind)
    return f"{name}, level {level}" if level > 1 else name


def _render_parts(calls: list[ModelCall]) -> SafeString:
    parts = []
    for (claim, part), group in groupby(calls, key=lambda call: (call.claim, call.part)):
        attempts = list(group)
        claim_text = f", claim {claim}" if claim > 1 else ""
        parts.append((f"Part {part}{claim_text}", _render_attempts(attempts)))
    return format_html_join("", "<li>{}<ul>{}</ul></li>", parts)


def _render_attempts(calls: list[ModelCall]) -> SafeString:
    rows = [
        (
            reverse("admin:compaction_call", args=[call.run_id, call.number]),
            f"Call {call.number}",
            _describe_use(call),
            "run-refused" if call.refusal else "run-quiet",
            _describe_end(call),
        )
        for call in calls
    ]
    return format_html_join("", '<li><a href="{}">{}</a> {} <span class="{}">{}</span></li>', rows)


def _describe_use(call: ModelCall) -> str:
    cache_text = f" ({call.cached_tokens:,} from a cache)" if call.cached_tokens else ""
    sizes = f"{call.input_tokens:,} tokens in{cache_text}, {call.output_tokens:,} out"
    return f"{sizes}, {call.seconds:.1f} s"


def _describe_end(call: ModelCall) -> str:
    # The reason may quote the answer, and who may see the tree need not see contents.
    return call.get_refusal_display().lower() if call.refusal else "used"


def _describe_call(call: ModelCall) -> list[tuple[str, object]]:
    return [
        ("Model", call.model),
        ("Place", f"{_name_level(call.kind, call.level)}, part {call.part}"),
        ("Attempt", f"{call.attempt} (claim {call.claim})"),
        ("Tokens", _describe_use(call)),
        ("Until its first word", f"{call.first_word_seconds:.1f} s"),
        ("Cost", "unknown" if call.cost is None else call.cost),
        ("Ended", f"{call.ended_at:%Y-%m-%d %H:%M:%S}, {call.finish or 'without an answer'}"),
        ("Used", f"no: {call.reason or call.refusal}" if call.refusal else "yes"),
    ]


def _indent(text: str | None) -> str | None:
    """Return a JSON text with line breaks; anything else as it is."""
    try:
        return json.dumps(json.loads(text or ""), indent=2, ensure_ascii=False)
    except ValueError:
        return text
