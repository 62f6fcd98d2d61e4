"""Search all messages, compacted ones too, and return the best with the words around the match."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection
from django.db.models import FloatField, QuerySet, Value
from django.db.models.expressions import RawSQL

from chatcore.models import Message
from chatcore.search.index import MAX_RANK_CHARS, TABLE
from chatcore.sessions.truncation import clean_text

if TYPE_CHECKING:  # models of users cannot be imported before the apps are ready
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MAX_HITS = 100
MAX_TERMS = 8
MAX_TERM_CHARS = 64
SNIPPET_CHARS = 240
GRAM_CHARS = 3  # the length in characters of the pieces that the index holds
MAX_RANK_MATCHES = 1_000  # how many of the newest matches PostgreSQL ranks
SEARCH_TOOL_NAME = "search_history"  # not searched: its results repeat other messages


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """A message that contains every term, with the words around the first of them."""

    message_id: int
    session_id: UUID
    seq: int
    role: str
    snippet: str
    created_at: datetime


def search_messages(
    scope: "UUID | AbstractBaseUser | AnonymousUser",
    query: str,
    limit: int = 20,
    *,
    skip: int = 0,
    up_to_id: int | None = None,
) -> list[SearchHit]:
    """Return messages that contain every term of `query`, the best first, then the newest.

    Upper and lower case and the order of terms do not matter. `scope` is the id of a session, or a
    user whose sessions are searched. Returns at most `limit` hits after the first `skip`, and never
    more than MAX_HITS + 1 (one more tells the caller that there is another page). Messages newer
    than `up_to_id` are left out, so that pages do not shift. Superseded messages are never found,
    and a query without a term finds nothing.
    """
    terms = _split_terms(query)
    if not terms:
        return []
    rows = Message.objects.exclude_superseded().exclude(tool_name=SEARCH_TOOL_NAME)
    if isinstance(scope, UUID):
        rows = rows.filter(session_id=scope)
    else:
        rows = rows.filter(session__owner=scope.pk)
    if up_to_id is not None:
        rows = rows.filter(id__lte=up_to_id)
    page_size = min(max(limit, 0), MAX_HITS + 1)
    return [_build_hit(row, terms) for row in _rank_matches(rows, terms)[skip : skip + page_size]]


def _split_terms(query: str) -> list[str]:
    words = clean_text(query.replace("\x00", " ")).split()
    return [word[:MAX_TERM_CHARS] for word in words[:MAX_TERMS]]


def _build_hit(message: Message, terms: list[str]) -> SearchHit:
    return SearchHit(
        message_id=message.pk,
        session_id=message.session_id,
        seq=message.seq,
        role=message.role,
        snippet=_build_snippet(message.content, terms),
        created_at=message.created_at,
    )


def _rank_matches(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """Return the matching rows, with the columns of a hit, by rank and then by age."""
    match_rows = _match_trigrams if connection.vendor == "sqlite" else _match_words
    matches: QuerySet[Any] = match_rows(rows, terms)
    columns = ("id", "session_id", "seq", "role", "content", "created_at")
    return matches.only(*columns).order_by("-relevance", "-created_at", "-seq")


def _match_trigrams(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """Match on SQLite: longer terms by the index, as quoted phrases; shorter ones row by row."""
    indexed_terms = [term for term in terms if len(term) >= GRAM_CHARS]
    for term in terms:
        if term not in indexed_terms:
            rows = rows.filter(content__icontains=term)
    if not indexed_terms:
        return rows.annotate(relevance=Value(0.0))
    phrases = " AND ".join('"' + term.replace('"', '""') + '"' for term in indexed_terms)
    # The table of the index is joined by hand, because the ORM knows no virtual tables.
    # (FTS5 has a hidden column `rank`, so the annotation has another name.)
    matches = rows.extra(  # noqa: S610
        tables=[TABLE],
        where=[f"{TABLE}.rowid = chatcore_message.id", f"{TABLE} MATCH %s"],
        params=[phrases],
    )  # noqa: RUF100, S610
    return matches.annotate(relevance=RawSQL(f"-bm25({TABLE})", (), output_field=FloatField()))  # noqa: S611


def _match_words(rows: QuerySet[Message], terms: list[str]) -> QuerySet[Message]:
    """Match on PostgreSQL by the trigram index, and rank by `tsvector`.

    Other databases have neither: they look at every message, and all matches rank the same.
    """
    for term in terms:
        rows = rows.filter(content__icontains=term)
    if connection.vendor != "postgresql":
        return rows.annotate(relevance=Value(0.0))
    # Ranking reads the whole text of each match, so it is limited to the newest ones.
    newest_ids = rows.order_by("-id").values("id")[:MAX_RANK_MATCHES]
    vector = f"to_tsvector('simple', left(chatcore_message.content, {MAX_RANK_CHARS}))"
    relevance = RawSQL(  # noqa: S611
        f"ts_rank({vector}, plainto_tsquery('simple', %s), 1)",
        (" ".join(terms),),
        output_field=FloatField(),
    )
    return Message.objects.filter(id__in=newest_ids).annotate(relevance=relevance)


def _build_snippet(content: str, terms: list[str]) -> str:
    """Return SNIPPET_CHARS of the content around the first term, on one line.

    An ellipsis marks an end that was cut.
    """
    match = re.search("|".join(map(re.escape, terms)), content, re.IGNORECASE)
    match_start = match.start() if match else 0
    start = max(0, match_start - SNIPPET_CHARS // 3)
    end = start + SNIPPET_CHARS
    snippet = " ".join(content[start:end].split())
    if start:
        snippet = "…" + snippet
    if end < len(content):
        snippet += "…"
    return snippet
