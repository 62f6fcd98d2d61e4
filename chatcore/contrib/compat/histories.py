"""Find the conversation of a client that names none, by the whole history that it sends.

The history up to its last answer must be all that was sent in that conversation so far, by the same
token. Its first words alone say nothing: many conversations begin alike. So an edit of an earlier
message, and a history without its beginning, begin another conversation. Of several conversations
that are equal so far, the one with the same answer is meant, or else the newest.

A first question is answered without a session, because most of them are never continued. What
comes after it, also the result of a call, is stored with it, as the client sends both.

A program that compacts its conversation by itself asks for a summary, and goes on with a history
that begins with it. So the summaries that were written here are noted for a few days, with the
conversation whose history came with the request. Equal summaries of several conversations are told
apart by the calls, or the answers, that the program sends behind them.
"""

import hashlib
import json
import logging
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.models import Q
from django.db.models.functions import Left
from django.utils import timezone

from chatcore.base.threads import run_in_thread
from chatcore.contrib.compat.chat_completions.client_summaries import MAX_MESSAGES
from chatcore.contrib.compat.chat_completions.matching import normalize_text
from chatcore.contrib.compat.chat_completions.messages import normalize_arguments
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.content_parts import strip_reminders
from chatcore.contrib.compat.models import HistoryKey
from chatcore.contrib.compat.programs import Keeping
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import StreamEnd, StreamPart, TextDelta
from chatcore.sessions.deletion import delete_session

logger = logging.getLogger(__name__)

MAX_CANDIDATES = 8  # conversations that are equal so far, of which the newest are looked at
# How long a question that was answered without a session may wait for what comes after it.
KEPT_DAYS = 3
# Of a summary that a program asked for: what it has at least, and how much of it comes back.
MIN_SUMMARY_CHARS = 20
MIN_SUMMARY_RATIO = 0.3
MAX_NOTES = 32  # the newest ones that are looked at
NO_HEAD = (0, 0)
# A quote has the first line of messages, up to this length; so many of the newest are looked for.
QUOTED_CHARS = 200
MAX_QUOTED = 200
# Conversations with about as much in a quote as the best one: any of them may be meant.
MIN_QUOTED_RATIO = 0.8


@dataclass(kw_only=True)
class KnownHistory:
    """A conversation that a request continues; without `session` one that begins to be stored.

    The first `summary_length` messages are a summary that its program has asked for.
    """

    row: HistoryKey
    session: Session | None
    summary_length: int = 0


def find_known_history(
    user: User, keeping: Keeping, messages: Sequence[ClientMessage]
) -> KnownHistory | None:
    """Return the conversation that a whole history continues, if there is one.

    It is then taken: of two equal requests at once, the other one finds none. What is not known is
    noted for the next request.
    """
    if not messages or messages[-1].role == "assistant":
        return None
    answer_index = _find_last_answer(messages)
    client = _hash_client(user, keeping)
    key = _extend_key(f"{user.pk} {keeping.token_id}", messages[:answer_index])
    whole_key = _extend_key(key, messages[answer_index:])
    row = _choose_row(key, whole_key, messages[answer_index]) if answer_index else None
    if row and _take(row, whole_key):
        return KnownHistory(row=row, session=row.session)
    if row is None and len(messages) > 1:
        known = _find_summarized(client, messages)
        if known and _take(known.row, whole_key):
            return known
    try:
        HistoryKey.objects.create(key=whole_key, client=client)
    except DatabaseError:
        logger.exception("The history of a request is not noted")
    return None


@contextmanager
def begin_answer(history: KnownHistory) -> Iterator[None]:
    """Give a history back, and delete a session that was made for it, if no answer begins."""
    old_session, old_key = history.row.session, history.row.key
    try:
        yield
    except BaseException:
        HistoryKey.objects.filter(pk=history.row.pk).update(key=old_key, session=old_session)
        if history.session and old_session is None:
            delete_session(history.session.pk)
        raise
    if old_session is None:
        HistoryKey.objects.filter(pk=history.row.pk).update(session=history.session)


def delete_old_histories() -> int:
    """Delete the notes of old requests that were never continued; return how many."""
    old_rows = HistoryKey.objects.filter(
        Q(session=None) | ~Q(summary=""), used_at__lt=_get_oldest()
    )
    return old_rows.delete()[0]


async def remember_summary(
    user: User,
    keeping: Keeping,
    messages: Sequence[ClientMessage],
    parts: AsyncGenerator[StreamPart],
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of a summary that a program asks for, and note its text at the end.

    The program goes on with a history that begins with it. `messages` are what it asked with: its
    whole history and a text, or one message that quotes the conversation.
    """
    text = ""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                text += part.text
            if isinstance(part, StreamEnd):
                await run_in_thread(_note_summary, user, keeping, messages, text)
            yield part


def find_asked_session(
    user: User, keeping: Keeping, messages: Sequence[ClientMessage]
) -> Session | None:
    """Return the session of the history that a last message asks something beside."""
    history = messages[:-1]
    answer_index = _find_last_answer(history)
    if not answer_index:
        return None
    key = _extend_key(f"{user.pk} {keeping.token_id}", history[:answer_index])
    row = _choose_row(key, _extend_key(key, history[answer_index:]), history[answer_index])
    return row.session if row else None


def find_summarized_sessions(
    user: User, keeping: Keeping, messages: Sequence[ClientMessage]
) -> list[Session]:
    """Return the sessions that a summary may be about, the most recently used one first.

    It is of the whole history of one, or of a part or a quote of it.
    """
    session = find_asked_session(user, keeping, messages)
    return [session] if session else _find_quoted_sessions(_hash_client(user, keeping), messages)


def _note_summary(
    user: User, keeping: Keeping, messages: Sequence[ClientMessage], text: str
) -> None:
    text = normalize_text(text)
    if len(text) < MIN_SUMMARY_CHARS:
        return
    client = _hash_client(user, keeping)
    # The program summarizes what it is running, so the note of the session used last is the newest.
    sessions = reversed(find_summarized_sessions(user, keeping, messages))
    try:
        for session in sessions:
            HistoryKey.objects.create(client=client, session=session, summary=text)
    except DatabaseError:
        logger.exception("The summary of a program is not noted")


def _find_summarized(client: str, messages: Sequence[ClientMessage]) -> KnownHistory | None:
    """Return the conversation of a history that begins with a summary which was written here.

    None if summaries of several conversations match, and nothing behind them says which one.
    """
    notes = HistoryKey.objects.filter(client=client, used_at__gte=_get_oldest())
    notes = notes.exclude(summary="").filter(session__discard_at=None).order_by("-used_at", "-pk")
    heads: dict[uuid.UUID, tuple[int, int]] = {}
    for note in notes[:MAX_NOTES]:
        head = _measure_head(note.summary, messages)
        if note.session_id and head > heads.get(note.session_id, NO_HEAD):
            heads[note.session_id] = head
    heads = {key: head for key, head in heads.items() if _has_calls(key, messages[head[1] :])}
    longest = max((found_chars for found_chars, _ in heads.values()), default=0)
    heads = {key: head for key, head in heads.items() if head[0] == longest}
    session_id = _choose_session(heads, messages)
    if session_id is None:
        return None
    rows = HistoryKey.objects.filter(session=session_id, summary="")
    row = rows.select_related("session__model__provider").first()
    if row is None:
        return None
    return KnownHistory(row=row, session=row.session, summary_length=heads[session_id][1])


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


def _measure_head(summary: str, messages: Sequence[ClientMessage]) -> tuple[int, int]:
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


def _find_quoted_sessions(client: str, messages: Sequence[ClientMessage]) -> list[Session]:
    """Return the sessions of which most is in messages or quoted there, last used ones first."""
    text = "\n".join(message.content for message in messages)
    rows = HistoryKey.objects.filter(client=client, session__discard_at=None, summary="")
    rows = rows.exclude(session=None)
    chars_of: dict[Session, int] = {}
    for row in rows.select_related("session").order_by("-used_at", "-pk")[:MAX_CANDIDATES]:
        if row.session is None or not _has_calls(row.session.pk, messages):
            continue
        stored_messages = Message.objects.filter(session=row.session).exclude_superseded()
        beginnings = stored_messages.order_by("-seq").values_list(
            Left("content", QUOTED_CHARS), flat=True
        )
        lines = {beginning.strip().partition("\n")[0] for beginning in beginnings[:MAX_QUOTED]}
        chars_of[row.session] = sum(len(line) for line in lines if line in text)
    min_chars = max(chars_of.values(), default=0) * MIN_QUOTED_RATIO
    return [session for session, chars in chars_of.items() if chars and chars >= min_chars]


def _find_last_answer(messages: Sequence[ClientMessage]) -> int:
    """Return the index of the last answer; 0 if there is none."""
    roles = [message.role for message in messages]
    return max((index for index, role in enumerate(roles) if role == "assistant"), default=0)


def _hash_client(user: User, keeping: Keeping) -> str:
    return hashlib.sha256(f"{user.pk} {keeping.token_id}".encode()).hexdigest()


def _get_oldest() -> datetime:
    return timezone.now() - timedelta(days=KEPT_DAYS)


def _choose_row(key: str, whole_key: str, answer: ClientMessage) -> HistoryKey | None:
    """Return the row of the conversation that a history continues.

    A request that comes again because its answer failed belongs to the same conversation.
    """
    rows = HistoryKey.objects.filter(key__in=(key, whole_key)).order_by("-pk")
    candidates = [
        row
        for row in rows.select_related("session__model__provider")[:MAX_CANDIDATES]
        if row.session is None or row.session.discard_at is None
    ]
    for row in candidates:
        if row.key == whole_key and row.session and _has_failed(row.session):
            return row
    candidates = [row for row in candidates if row.key == key]
    if len(candidates) > 1:
        for row in candidates:
            if row.session and _has_answer(row.session, answer):
                return row
        # The answer is of none of the stored ones, so this is another conversation.
        candidates = [row for row in candidates if row.session is None] or candidates
    return candidates[0] if candidates else None


def _take(row: HistoryKey, whole_key: str) -> bool:
    """Make a history the newest one of its conversation; False if another request was faster."""
    same_rows = HistoryKey.objects.filter(pk=row.pk, key=row.key, session=row.session)
    return bool(same_rows.update(key=whole_key, used_at=timezone.now()))


def _has_failed(session: Session) -> bool:
    newest_turn = session.turns.order_by("-first_event_seq").first()
    return newest_turn is not None and newest_turn.status in (
        Turn.Status.FAILED,
        Turn.Status.INTERRUPTED,
        Turn.Status.CANCELLED,
    )


def _has_answer(session: Session, answer: ClientMessage) -> bool:
    messages = session.messages.exclude_superseded().filter(role=Message.Role.ASSISTANT)
    newest_message = messages.order_by("-seq").first()
    if newest_message is None:
        return False
    stored_ids = [call["id"] for call in newest_message.tool_calls]
    if stored_ids or answer.calls:
        return stored_ids == [call.id for call in answer.calls]
    return normalize_text(newest_message.content) == normalize_text(answer.content)


def _extend_key(key: str, messages: Iterable[ClientMessage]) -> str:
    """Return the hash of a history, given that of its beginning and the messages after it.

    Programs move marks of the cache, add and remove reminders, leave out what a model thought, and
    write arguments in another order, so none of these count.
    """
    for message in messages:
        text = strip_reminders(normalize_text(message.content))
        parts = [
            key,
            message.role,
            text,
            [[call.id, call.name, normalize_arguments(call.arguments)] for call in message.calls],
            message.call_id,
            sorted(file.size for file in message.files),
        ]
        if text or message.calls or message.call_id or message.files:
            key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return key
