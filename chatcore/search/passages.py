"""Find the passages of a session that answer a question, each with a score between sessions."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from chatcore.models.statements import adapt_uuid
from chatcore.search.matching import PASSAGE_CHARS
from chatcore.search.question import read_question
from chatcore.search.ranking import rank_messages
from chatcore.search.rows import TextRow, load_neighbours
from chatcore.search.scope import Scope, find_newest_id
from chatcore.search.snippets import cut_passage


@dataclass(frozen=True, kw_only=True)
class Passage:
    """The part of a message that answers a question best.

    `score` is from 0 to 1 and comparable between sessions: the share of the question's informative
    words, weighted by rarity, that the passage and the messages next to it hold.
    """

    message_id: int
    seq: int
    role: str
    created_at: datetime
    text: str
    score: float


def find_passages(
    session_id: UUID,
    question: str,
    *,
    limit: int,
    up_to_seq: int | None = None,
    max_chars: int = PASSAGE_CHARS,
) -> list[Passage]:
    """Return the best passages of messages with `seq < up_to_seq`, best first.

    Each has at most `max_chars`, in whole sentences where that is possible.
    """
    terms_and_hints = read_question(question, timezone.now())
    if not (terms_and_hints.terms or terms_and_hints.phrases):
        return []
    ranked_messages, matcher = rank_messages(_build_scope(session_id, up_to_seq), terms_and_hints)
    texts = [(message, message.file_text or message.row.text) for message in ranked_messages]
    texts = [(message, text) for message, text in texts if text.strip()][: max(limit, 0)]
    return [
        _build_passage(
            message.row, cut_passage(text, matcher.find_start(text), max_chars), message.share
        )
        for message, text in texts
    ]


def load_next_passages(
    session_id: UUID, passages: list[Passage], *, up_to_seq: int | None = None, max_chars: int
) -> list[Passage]:
    """Return the beginnings of the messages before and after these, in the order of the talk.

    Their score is 0. Those that are among `passages` are left out.
    """
    session_key = adapt_uuid(session_id)
    centers = [(session_key, passage.seq) for passage in passages]
    rows = load_neighbours(_build_scope(session_id, up_to_seq), centers, 1).values()
    return [
        _build_passage(row, cut_passage(row.text, 0, max_chars), 0.0)
        for row in sorted(rows, key=lambda row: row.seq)
        if row.text.strip()
    ]


def _build_scope(session_id: UUID, up_to_seq: int | None) -> Scope:
    if up_to_seq is None:
        return Scope(session_id=session_id)
    return Scope(session_id=session_id, newest_id=find_newest_id(session_id, up_to_seq))


def _build_passage(row: TextRow, text: str, score: float) -> Passage:
    return Passage(
        message_id=row.id,
        seq=row.seq,
        role=row.role,
        created_at=row.created_at,
        text=text,
        score=score,
    )
