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
from chatcore.search.index import MAX_RANK_CHARS, TABLE
from chatcore.sessions.truncation import clean_text

MAX_HITS = 100
MAX_TERMS = 8
MAX_TERM_CHARS = 64
SNIPPET_CHARS = 240
GRAM_CHARS = 3  # characters; the index knows no shorter piece of a word
MAX_RANK_MATCHES = 1_000  # the newest matches on PostgreSQL, of which the best are shown
SEARCH_TOOL_NAME = "search_history"  # its results repeat what other messages say


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """One message that holds every term, and the words around the first of them."""

    message_id: int
    session_id: UUID
    seq: int
    role: str
    snippet: str
    created_at: datetime


def search_messages(
    scope: Any, query: str, limit: int = 20, *, skip: int = 0, up_to_id: int | None = None
) -> list[SearchHit]:
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
    rows = Message.objects.exclude_superseded().exclude(tool_name=SEARCH_TOOL_NAME)
    rows = (
        rows.filter(session_id=scope)
        if isinstance(scope, UUID)
        else rows.filter(session__owner=scope)
    )
    rows = rows.filter(id__lte=up_to_id) if up_to_id is not None else rows
    match_rows = _rank_matches(rows, terms).values_list(
        "id", "session_id", "seq", "role", "content", "created_at"
    )
    return [
        SearchHit(
            message_id=pk,
            session_id=session_id,
            seq=seq,
            role=role,
            snippet=_build_snippet(content, terms),
            created_at=created_at,
        )
        for pk, session_id, seq, role, content, created_at in match_rows[
            skip : skip + min(max(limit, 0), MAX_HITS + 1)
        ]
    ]


def _rank_matches(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """Those that match, by worth and then by age."""
    matches: QuerySet[Any] = (
        _match_trigrams(rows, terms) if connection.vendor == "sqlite" else _match_words(rows, terms)
    )
    return matches.order_by("-worth", "-created_at", "-seq")


def _match_trigrams(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """SQLite: the index finds the longer terms, as quoted phrases; shorter ones are looked for in what it found."""
    indexed_terms = [term for term in terms if len(term) >= GRAM_CHARS]
    for term in terms:
        rows = rows if term in indexed_terms else rows.filter(content__icontains=term)
    if not indexed_terms:
        return rows.annotate(worth=Value(0.0))
    phrases = " AND ".join('"' + term.replace('"', '""') + '"' for term in indexed_terms)
    # The extra table is joined by hand: the ORM knows no virtual tables.
    matches = rows.extra(  # noqa: S610
        tables=[TABLE],
        where=[f"{TABLE}.rowid = chatcore_message.id", f"{TABLE} MATCH %s"],
        params=[phrases],
    )  # noqa: RUF100, S610
    return matches.annotate(worth=RawSQL(f"-bm25({TABLE})", (), output_field=FloatField()))  # noqa: S611


def _match_words(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """PostgreSQL: the trigram index finds, `tsvector` ranks; other databases have neither and look at every message."""
    for term in terms:
        rows = rows.filter(content__icontains=term)
    if connection.vendor != "postgresql":
        return rows.annotate(worth=Value(0.0))
    newest_ids = rows.order_by("-id").values("id")[:MAX_RANK_MATCHES]
    rank = f"ts_rank(to_tsvector('simple', left(chatcore_message.content, {MAX_RANK_CHARS})), plainto_tsquery('simple', %s), 1)"
    worth = RawSQL(rank, (" ".join(terms),), output_field=FloatField())  # noqa: S611
    return Message.objects.filter(id__in=newest_ids).annotate(worth=worth)


def _build_snippet(content: str, terms: list[str]) -> str:
    """SNIPPET_CHARS of the content around the first term in it, on one line, with an ellipsis where it was cut."""
    match = re.search("|".join(map(re.escape, terms)), content, re.IGNORECASE)
    start = max(0, (match.start() if match else 0) - SNIPPET_CHARS // 3)
    end = start + SNIPPET_CHARS
    snippet_text = " ".join(content[start:end].split())
    return f"{'…' if start else ''}{snippet_text}{'…' if end < len(content) else ''}"
