"""Note the summaries that programs ask for, to know a history that begins with one.

A program that compacts its conversation by itself asks for a summary, and goes on with a history
that begins with it. So the summaries that were written here are noted for a few days, with the
conversation that they are about. Equal summaries of several conversations are told apart by the
calls, or the answers, that the program sends behind them.
"""

import hashlib
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models.functions import Left
from django.utils import timezone

from chatcore.base.threads import run_in_thread
from chatcore.contrib.compat.chat_completions.client_summaries import MAX_MESSAGES
from chatcore.contrib.compat.chat_completions.matching import normalize_text
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.models import HistoryKey
from chatcore.contrib.compat.programs import Keeping
from chatcore.models import Message, Session
from chatcore.providers.base import StreamEnd, StreamPart, TextDelta

logger = logging.getLogger(__name__)

# How long a note counts.
KEPT_DAYS = 3
# Of a summary that a program asked for: what it has at least, and how much of it comes back.
MIN_SUMMARY_CHARS = 20
MIN_SUMMARY_RATIO = 0.3
MAX_NOTES = 32  # the newest ones that are looked at
NO_HEAD = (0, 0)
# A quote has the first line of messages, up to this length; so many of the newest are looked for.
QUOTED_CHARS = 200
MAX_QUOTED = 200
MAX_SESSIONS = 8  # conversations that are looked at for what is quoted, the newest ones
# Conversations with about as much in a quote as the best one: any of them may be meant.
MIN_QUOTED_RATIO = 0.8


@dataclass(frozen=True, kw_only=True)
class KnownSummary:
    """The conversation of a summary, and how many messages of a history end with that."""

    session_id: uuid.UUID
    length: int


def hash_client(user_id: object, keeping: Keeping) -> str:
    """Return the name under which the conversations of a user's token are noted."""
    return hashlib.sha256(f"{user_id} {keeping.token_id}".encode()).hexdigest()


async def remember_summary(
    client: str,
    parts: AsyncGenerator[StreamPart],
    find_sessions: Callable[[], Sequence[Session]],
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of a summary that a program asks for, and note its text at the end.

    `find_sessions` returns the sessions that it may be about, the most recently used one first.
    """
    text = ""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                text += part.text
            if isinstance(part, StreamEnd):
                await run_in_thread(_note_summary, client, text, find_sessions)
            yield part


def find_summarized(client: str, messages: Sequence[ClientMessage]) -> KnownSummary | None:
    """Return the conversation of a history that begins with a summary which was written here.

    None if summaries of several conversations match, and nothing behind them says which one.
    """
    notes = HistoryKey.objects.filter(client=client, used_at__gte=get_oldest())
    notes = notes.exclude(summary="").filter(session__discard_at=None).order_by("-used_at", "-pk")
    heads: dict[uuid.UUID, tuple[int, int]] = {}
    for note in notes[:MAX_NOTES]:
        head = measure_head(note.summary, messages)
        if note.session_id and head > heads.get(note.session_id, NO_HEAD):
            heads[note.session_id] = head
    heads = {key: head for key, head in heads.items() if _has_calls(key, messages[head[1] :])}
    longest = max((found_chars for found_chars, _ in heads.values()), default=0)
    heads = {key: head for key, head in heads.items() if head[0] == longest}
    session_id = _choose_session(heads, messages)
    if session_id is None:
        return None
    return KnownSummary(session_id=session_id, length=heads[session_id][1])


def choose_quoted(sessions: Iterable[Session], messages: Sequence[ClientMessage]) -> list[Session]:
    """Return the sessions of which most is in messages or quoted there, in the given order."""
    text = "\n".join(message.content for message in messages)
    chars_of: dict[Session, int] = {}
    for session in sessions:
        if not _has_calls(session.pk, messages):
            continue
        stored_messages = Message.objects.filter(session=session).exclude_superseded()
        beginnings = stored_messages.order_by("-seq").values_list(
            Left("content", QUOTED_CHARS), flat=True
        )
        lines = {beginning.strip().partition("\n")[0] for beginning in beginnings[:MAX_QUOTED]}
        chars_of[session] = sum(len(line) for line in lines if line in text)
    min_chars = max(chars_of.values(), default=0) * MIN_QUOTED_RATIO
    return [session for session, chars in chars_of.items() if chars and chars >= min_chars]


def get_oldest() -> datetime:
    """Return the time before which notes count no longer."""
    return timezone.now() - timedelta(days=KEPT_DAYS)


def _note_summary(client: str, text: str, find_sessions: Callable[[], Sequence[Session]]) -> None:
    text = normalize_text(text)
    if len(text) < MIN_SUMMARY_CHARS:
        return
    try:
        # The program summarizes what it is running, so the note of the session used last is newest.
        for session in reversed(find_sessions()):
            HistoryKey.objects.create(client=client, session=session, summary=text)
    except DatabaseError:
        logger.exception("The summary of a program is not noted")


def _choose_session(
    heads: Mapping[uuid.UUID, tuple[int, int]], messages: Sequence[ClientMessage]
) -> uuid.UUID | None:
    """Return the only session, or the first one with the calls or answers behind the summary."""
    session_ids = list(heads)
    if len(session_ids) > 1:
        tails = {key: messages[length:] for key, (_, length) in heads.items()}
        if not any(message.calls for tail in tails.values() for message in tail):
            session_ids = [key for key, tail in tails.items() if _has_an_answer(key, tail)]
            session_ids = session_ids if len(session_ids) == 1 else []
    return session_ids[0] if session_ids else None


def _has_calls(session_id: uuid.UUID, messages: Sequence[ClientMessage]) -> bool:
    """Return True if a session has all calls of these messages."""
    call_ids = {call.id for message in messages for call in message.calls}
    if not call_ids:
        return True
    stored_messages = Message.objects.filter(session=session_id).exclude_superseded()
    answered = stored_messages.filter(tool_call_id__in=call_ids)
    missing_ids = call_ids - set(answered.values_list("tool_call_id", flat=True))
    answers = stored_messages.filter(role=Message.Role.ASSISTANT).order_by("-seq")
    newest_answer = answers.first() if missing_ids else None
    newest_calls = newest_answer.tool_calls if newest_answer else []
    return missing_ids <= {call["id"] for call in newest_calls}


def _has_an_answer(session_id: uuid.UUID, messages: Sequence[ClientMessage]) -> bool:
    """Return True if an answer of these messages is one of a session."""
    texts = {normalize_text(each.content) for each in messages if each.role == "assistant"}
    answers = Message.objects.filter(session=session_id, role=Message.Role.ASSISTANT)
    newest_answers = answers.exclude_superseded().order_by("-seq")[:MAX_QUOTED]
    return any(normalize_text(each.content) in texts for each in newest_answers)


def measure_head(summary: str, messages: Sequence[ClientMessage]) -> tuple[int, int]:
    """Return how much of a summary is in a message, and how many messages end with that one.

    Programs leave out what the model thought, and write texts of their own around it.
    """
    lines = [line.strip() for line in summary.splitlines()]
    pieces = [line for line in lines if len(line) >= MIN_SUMMARY_CHARS] or [summary]
    min_chars = sum(map(len, pieces)) * MIN_SUMMARY_RATIO
    for index, message in enumerate(messages[:MAX_MESSAGES]):
        found_chars = sum(len(piece) for piece in pieces if piece in message.content)
        if message.role != "tool" and not message.calls and found_chars >= min_chars:
            return found_chars, index + 1
    return NO_HEAD
