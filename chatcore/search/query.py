"""Search over everything that was said, the compacted messages too: ranked, with the words around what was found."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import FloatField, QuerySet, Value
from django.db.models.expressions import RawSQL

from chatcore.models import Message
from chatcore.search.index import RANKED_CHARS, TABLE
from chatcore.sessions.truncation import clean_text

MAX_HITS = 100
MAX_TERMS = 8
MAX_TERM_CHARS = 64
SNIPPET_CHARS = 240
GRAM = 3  # characters; the index knows no shorter piece of a word
RANKED = 1_000  # the newest matches on PostgreSQL, of which the best are shown
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


def search(
    scope: Any, query: str, limit: int = 20, *, skip: int = 0, up_to_id: int | None = None
) -> list[Hit]:
    """The messages that hold every term of `query`, in any case and order, the best first, then the newest.

    `scope` is a session's id or a user. At most `limit` hits after the first `skip`, and one more than MAX_HITS whatever is asked;
    messages newer than `up_to_id` are left out, so that pages do not shift. Superseded messages are not found. A query without a term
    finds nothing.
    """
    terms = [
        term[:MAX_TERM_CHARS] for term in clean_text(query.replace("\x00", " ")).split()[:MAX_TERMS]
    ]
    if not terms:
        return []
    rows = Message.objects.current().exclude(tool_name=SEARCHING_TOOL)
    rows = (
        rows.filter(session_id=scope)
        if isinstance(scope, UUID)
        else rows.filter(session__owner=scope)
    )
    rows = rows.filter(id__lte=up_to_id) if up_to_id is not None else rows
    columns = _ranked(rows, terms).values_list(
        "id", "session_id", "seq", "role", "content", "created_at"
    )
    return [
        Hit(
            message_id=pk,
            session_id=session_id,
            seq=seq,
            role=role,
            snippet=_snippet(content, terms),
            created_at=created_at,
        )
        for pk, session_id, seq, role, content, created_at in columns[
            skip : skip + min(max(limit, 0), MAX_HITS + 1)
        ]
    ]


def _ranked(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """Those that match, by worth and then by age."""
    ranked: QuerySet[Any] = (
        _by_trigrams(rows, terms) if connection.vendor == "sqlite" else _by_words(rows, terms)
    )
    return ranked.order_by("-worth", "-created_at", "-seq")


def _by_trigrams(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """SQLite: the index finds the longer terms, as quoted phrases; shorter ones are looked for in what it found."""
    indexed = [term for term in terms if len(term) >= GRAM]
    for term in terms:
        rows = rows if term in indexed else rows.filter(content__icontains=term)
    if not indexed:
        return rows.annotate(worth=Value(0.0))
    phrases = " AND ".join('"' + term.replace('"', '""') + '"' for term in indexed)
    # The extra table is joined by hand: the ORM knows no virtual tables.
    matched = rows.extra(  # noqa: S610
        tables=[TABLE],
        where=[f"{TABLE}.rowid = chatcore_message.id", f"{TABLE} MATCH %s"],
        params=[phrases],
    )  # noqa: RUF100, S610
    return matched.annotate(worth=RawSQL(f"-bm25({TABLE})", (), output_field=FloatField()))  # noqa: S611


def _by_words(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """PostgreSQL: the trigram index finds, `tsvector` ranks; other databases have neither and look at every message."""
    for term in terms:
        rows = rows.filter(content__icontains=term)
    if connection.vendor != "postgresql":
        return rows.annotate(worth=Value(0.0))
    newest = rows.order_by("-id").values("id")[:RANKED]
    rank = f"ts_rank(to_tsvector('simple', left(chatcore_message.content, {RANKED_CHARS})), plainto_tsquery('simple', %s), 1)"
    worth = RawSQL(rank, (" ".join(terms),), output_field=FloatField())  # noqa: S611
    return Message.objects.filter(id__in=newest).annotate(worth=worth)


def _snippet(content: str, terms: list[str]) -> str:
    """SNIPPET_CHARS of the content around the first term in it, on one line, with an ellipsis where it was cut."""
    found = re.search("|".join(map(re.escape, terms)), content, re.IGNORECASE)
    start = max(0, (found.start() if found else 0) - SNIPPET_CHARS // 3)
    end = start + SNIPPET_CHARS
    words = " ".join(content[start:end].split())
    return f"{'…' if start else ''}{words}{'…' if end < len(content) else ''}"
