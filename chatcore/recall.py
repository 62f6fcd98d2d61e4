"""Search over everything that was said, the compacted messages too."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from chatcore.models import Message

MAX_HITS = 50
MAX_TERMS = 8
MAX_TERM_CHARS = 64
SNIPPET_CHARS = 240
SEARCHING_TOOL = "search_history"  # its results repeat what other messages say


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One message that holds every term, and the words around the first of them."""

    message_id: int
    session_id: UUID
    seq: int
    role: str
    snippet: str
    created_at: datetime


def search(scope: Any, query: str, limit: int = 20) -> list[Hit]:
    """The newest messages that hold every term of `query`, in any case and order; `scope` is a session's id or a user.

    At most `limit` hits, MAX_HITS whatever is asked; a query without a term finds nothing.
    """
    terms = [term[:MAX_TERM_CHARS] for term in query.replace("\x00", " ").split()[:MAX_TERMS]]
    if not terms:
        return []
    rows = Message.objects.exclude(tool_name=SEARCHING_TOOL)
    rows = rows.filter(session_id=scope) if isinstance(scope, UUID) else rows.filter(session__owner=scope)
    for term in terms:
        rows = rows.filter(content__icontains=term)
    columns = rows.order_by("-created_at", "-seq").values_list("id", "session_id", "seq", "role", "content", "created_at")
    return [
        Hit(message_id=pk, session_id=session_id, seq=seq, role=role, snippet=_snippet(content, terms), created_at=created_at)
        for pk, session_id, seq, role, content, created_at in columns[: min(max(limit, 0), MAX_HITS)]
    ]


def _snippet(content: str, terms: list[str]) -> str:
    """SNIPPET_CHARS of the content around the first term in it, on one line, with an ellipsis where it was cut."""
    found = re.search("|".join(map(re.escape, terms)), content, re.IGNORECASE)
    start = max(0, (found.start() if found else 0) - SNIPPET_CHARS // 3)
    end = start + SNIPPET_CHARS
    words = " ".join(content[start:end].split())
    return f"{'…' if start else ''}{words}{'…' if end < len(content) else ''}"
