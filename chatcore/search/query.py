"""Search all messages, compacted ones too, and return the best with the words around the match."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.utils import timezone

from chatcore.search.matching import Matcher
from chatcore.search.question import Kind, read_question
from chatcore.search.ranking import RankedMessage, rank_messages
from chatcore.search.rows import SEARCH_TOOL_NAME
from chatcore.search.scope import Scope
from chatcore.search.snippets import cut_snippet

if TYPE_CHECKING:  # models of users cannot be imported before the apps are ready
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

__all__ = ["MAX_HITS", "SEARCH_TOOL_NAME", "SearchHit", "search_messages"]

MAX_HITS = 100
MIN_WORDS_FOR_NEIGHBOURS = 3  # with fewer, only messages that hold a word themselves are hits


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """A message that may answer a question, with the words around the best place in it.

    `marks` are the start and end of each of the question's words in the snippet, and `score` is
    from 0 to 1 and comparable between sessions.
    """

    message_id: int
    session_id: UUID
    seq: int
    role: str
    snippet: str
    marks: tuple[tuple[int, int], ...]
    score: float
    created_at: datetime


def search_messages(
    scope: "UUID | AbstractBaseUser | AnonymousUser",
    query: str,
    limit: int = 20,
    *,
    skip: int = 0,
    up_to_id: int | None = None,
) -> list[SearchHit]:
    """Return the messages that answer a question best, the best first, then the newest.

    `query` is a question in ordinary words, or any words: a message is a hit if it holds one of
    them. Words between quotation marks must stand in it as they are. Upper and lower case, endings
    and the order of words do not matter. `scope` is the id of a session, or a user whose sessions
    are searched. Returns at most `limit` hits after the first `skip`, and never more than
    MAX_HITS + 1 (one more tells the caller that there is another page). Messages newer than
    `up_to_id` are left out, so that pages do not shift. Superseded messages are never found, and a
    query without a term finds nothing.
    """
    question = read_question(query, timezone.now())
    if not (question.terms or question.phrases):
        return []
    if isinstance(scope, UUID):
        message_scope = Scope(session_id=scope)
    else:
        message_scope = Scope(owner_id=scope.pk)
    if up_to_id is not None:
        message_scope = replace(message_scope, newest_id=up_to_id)
    ranked_messages, matcher = rank_messages(message_scope, question)
    if sum(term.kind is Kind.WORD for term in question.terms) < MIN_WORDS_FOR_NEIGHBOURS:
        ranked_messages = [
            message for message in ranked_messages if message.match.strengths or question.phrases
        ]
    page_size = min(max(limit, 0), MAX_HITS + 1)
    return [_build_hit(message, matcher) for message in ranked_messages[skip : skip + page_size]]


def _build_hit(message: RankedMessage, matcher: Matcher) -> SearchHit:
    text = message.file_text or message.row.text
    snippet, marks = cut_snippet(text, matcher.find_start(text), list(matcher.find_marks(text)))
    return SearchHit(
        message_id=message.row.id,
        session_id=message.row.session_id,
        seq=message.row.seq,
        role=message.row.role,
        snippet=snippet,
        marks=tuple(marks),
        score=message.share,
        created_at=message.row.created_at,
    )
