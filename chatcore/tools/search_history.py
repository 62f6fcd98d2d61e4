"""The tool `search_history`: find earlier messages, also those that a summary has replaced."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatcore.context.compactor import get_compactor
from chatcore.models import Session, Turn
from chatcore.search.passages import Passage, find_passages, load_next_passages
from chatcore.search.query import SEARCH_TOOL_NAME
from chatcore.tools.base import BuiltInTool

MAX_QUESTION_CHARS = 1_000
NOTHING_FOUND = "No earlier message holds any of these words. Try other words."
HIT_CHARS = 500
NEXT_CHARS = 240  # of the messages before and after a hit
# Length in seconds of each unit; a time is told in the largest one that it has one of.
_UNITS = (
    ("year", 365 * 86_400),
    ("month", 30 * 86_400),
    ("week", 7 * 86_400),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return the best messages of the session, each with those before and after it."""
    question_seq = _find_open_question(session_id)
    hits = find_passages(
        session_id,
        arguments["query"],
        limit=arguments["limit"],
        up_to_seq=question_seq,
        max_chars=HIT_CHARS,
    )
    if not hits:
        return NOTHING_FOUND
    next_messages = load_next_passages(
        session_id, hits, up_to_seq=question_seq, max_chars=NEXT_CHARS
    )
    hits, next_messages = _leave_out_forgotten(session_id, hits, next_messages)
    if not hits:
        return NOTHING_FOUND
    now = timezone.now()
    lines = []
    for hit in hits:
        lines.append(_describe_message(hit, now))
        # A message between two hits is shown with the better one.
        near_messages = [other for other in next_messages if abs(other.seq - hit.seq) == 1]
        for other in near_messages:
            place = "before" if other.seq < hit.seq else "after"
            lines.append(f"  {place}: {_describe_message(other, now)}")
            next_messages.remove(other)
    return "\n".join(lines)


def _leave_out_forgotten(session_id: UUID, *passages: list[Passage]) -> list[list[Passage]]:
    """Return the passages without what the user wants forgotten."""
    session = Session.objects.select_related("model").get(pk=session_id)
    policy = get_compactor().choose_policy(*session.policy_names)
    all_passages = [passage for part in passages for passage in part]
    texts = policy.leave_out_forgotten(
        session_id, [(passage.seq, passage.role, passage.text) for passage in all_passages]
    )
    rest = iter(texts)
    cleaned = [[replace(passage, text=next(rest)) for passage in part] for part in passages]
    return [[passage for passage in part if passage.text.strip()] for part in cleaned]


def describe_age(time: datetime, now: datetime) -> str:
    """Return how long ago something was, as "3 days ago"."""
    seconds = int((now - time).total_seconds())
    for unit, unit_seconds in _UNITS:
        count = seconds // unit_seconds
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _find_open_question(session_id: UUID) -> int | None:
    """Return the number of the message that is being answered: it would find itself."""
    turns = Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES)
    return turns.values_list("question__seq", flat=True).first()


def _describe_message(message: Passage, now: datetime) -> str:
    time = f"{message.created_at:%Y-%m-%d %H:%M} UTC, {describe_age(message.created_at, now)}"
    return f"[message {message.seq}, {message.role}, {time}] {' '.join(message.text.split())}"


TOOL = BuiltInTool(
    name=SEARCH_TOOL_NAME,
    title=_("Search in older messages"),
    description=(
        "Finds what was said earlier in this conversation, in summarized messages too. Takes a"
        " question in ordinary words; the messages that fit best come first, each with its number,"
        ' when it was said, and the messages before and after it. "Quoted words" must stand in'
        " a message as they are."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What to look for: a question, or the words to be expected.",
                "minLength": 1,
                "maxLength": MAX_QUESTION_CHARS,
            },
            "limit": {
                "type": "integer",
                "description": "How many messages at most.",
                "default": 8,
                "minimum": 1,
                "maximum": 20,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    run=run,
)
