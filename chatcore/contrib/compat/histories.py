"""Find the conversation of a client that names none, by the whole history that it sends.

The history up to its last answer must be all that was sent in that conversation so far, by the same
token. Its first words alone say nothing: many conversations begin alike. So an edit of an earlier
message, and a history without its beginning, begin another conversation. Of several conversations
that are equal so far, the one with the same answer is meant, or else the newest.

A first question is answered without a session, because most of them are never continued. What
comes after it, also the result of a call, is stored with it, as the client sends both.

What follows the summary of a program that compacts by itself is found by `summary_notes`, if it
was known as such when it was written, and else by `rewritten_histories`.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from chatcore.contrib.compat import summary_notes
from chatcore.contrib.compat.chat_completions.client_summaries import MAX_MESSAGES
from chatcore.contrib.compat.chat_completions.matching import (
    count_first_messages,
    normalize_text,
)
from chatcore.contrib.compat.chat_completions.messages import normalize_arguments
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.content_parts import find_lasting_text
from chatcore.contrib.compat.models import HistoryKey
from chatcore.contrib.compat.programs import Keeping
from chatcore.contrib.compat.rewritten_histories import find_rewritten
from chatcore.models import Message, Session, Turn
from chatcore.sessions.deletion import delete_session

logger = logging.getLogger(__name__)

MAX_CANDIDATES = 8  # conversations that are equal so far, of which the newest are looked at


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
    if not messages:
        return None
    client = summary_notes.hash_client(user.pk, keeping)
    if messages[-1].role == "assistant":
        _follow_summary(user, keeping, client, messages)
        return None
    answer_index = _find_last_answer(messages)
    key = _extend_key(f"{user.pk} {keeping.token_id}", messages[:answer_index])
    whole_key = _extend_key(key, messages[answer_index:])
    row = _choose_row(key, messages[answer_index:]) if answer_index else None
    if row and _take(row, whole_key):
        summary_length = 0
        if row.session and messages[0].role == "assistant":
            summary = summary_notes.find_summarized(client, messages[:answer_index])
            summary_length = summary.length if summary else 0
        return KnownHistory(row=row, session=row.session, summary_length=summary_length)
    if row is None and len(messages) > 1:
        known = _find_summarized(client, messages)
        known = known or _find_rewritten(user, keeping, client, messages)
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
        Q(session=None) | ~Q(summary=""), used_at__lt=summary_notes.get_oldest()
    )
    return old_rows.delete()[0]


def find_asked_session(
    user: User, keeping: Keeping, messages: Sequence[ClientMessage]
) -> Session | None:
    """Return the session of the history that a last message asks something beside."""
    history = messages[:-1]
    answer_index = _find_last_answer(history)
    if not answer_index:
        return None
    key = _extend_key(f"{user.pk} {keeping.token_id}", history[:answer_index])
    row = _choose_row(key, history[answer_index:])
    return row.session if row else None


def find_summarized_sessions(
    user: User, keeping: Keeping, messages: Sequence[ClientMessage]
) -> list[Session]:
    """Return the sessions that a summary may be about, the most recently used one first.

    It is of the whole history of one, or of a part or a quote of it.
    """
    session = find_asked_session(user, keeping, messages)
    if session:
        return [session]
    rows = _load_newest_rows(summary_notes.hash_client(user.pk, keeping))
    return summary_notes.choose_quoted((row.session for row in rows if row.session), messages)


def _load_newest_rows(client: str) -> list[HistoryKey]:
    """Return the rows of a client's conversations, the most recently used one first."""
    rows = HistoryKey.objects.filter(client=client, session__discard_at=None, summary="")
    rows = rows.exclude(session=None).select_related("session__model__provider")
    return list(rows.order_by("-used_at", "-pk")[: summary_notes.MAX_SESSIONS])


def _follow_summary(
    user: User, keeping: Keeping, client: str, messages: Sequence[ClientMessage]
) -> None:
    """Note that a history is a program's summary alone, behind which its conversation goes on.

    The answer to that is not stored; what follows it brings it along.
    """
    if len(messages) > MAX_MESSAGES:
        return
    known = _find_summarized(client, messages)
    if known and known.summary_length == len(messages):
        _take(known.row, _extend_key(f"{user.pk} {keeping.token_id}", messages))


def _find_summarized(client: str, messages: Sequence[ClientMessage]) -> KnownHistory | None:
    """Return the conversation of a history that begins with a summary which was written here."""
    summary = summary_notes.find_summarized(client, messages)
    if summary is None:
        return None
    rows = HistoryKey.objects.filter(session=summary.session_id, summary="")
    row = rows.select_related("session__model__provider").first()
    if row is None:
        return None
    return KnownHistory(row=row, session=row.session, summary_length=summary.length)


def _find_rewritten(
    user: User, keeping: Keeping, client: str, messages: Sequence[ClientMessage]
) -> KnownHistory | None:
    """Return the conversation of a history that has a summary in place of older messages."""
    rows = {row.session: row for row in _load_newest_rows(client)}
    sessions = [session for session in rows if session]
    found = find_rewritten(sessions, messages)
    if found is None:
        return None
    session, summary_length = found
    first_key = _extend_key(f"{user.pk} {keeping.token_id}", messages[:1])
    was_asked = HistoryKey.objects.filter(client=client, key=first_key).exists()
    if was_asked and not count_first_messages(session, messages):
        return None  # the first message came alone before: it is a question and no summary
    return KnownHistory(row=rows[session], session=session, summary_length=summary_length)


def _find_last_answer(messages: Sequence[ClientMessage]) -> int:
    """Return the index of the last answer; 0 if there is none."""
    roles = [message.role for message in messages]
    return max((index for index, role in enumerate(roles) if role == "assistant"), default=0)


def _choose_row(key: str, messages: Sequence[ClientMessage]) -> HistoryKey | None:
    """Return the row of the conversation that a history continues.

    `key` is of what comes before the last answer, and `messages` are that and what follows it. A
    request that comes again because its answer failed belongs to the same conversation, and so does
    a message behind a question whose answer the user has stopped.
    """
    keys = accumulate(messages, lambda key, message: _extend_key(key, [message]), initial=key)
    keys_of_stopped = list(keys)[2:][-MAX_CANDIDATES:]
    rows = HistoryKey.objects.filter(key__in=(key, *keys_of_stopped)).order_by("-pk")
    candidates = [
        row
        for row in rows.select_related("session__model__provider")[:MAX_CANDIDATES]
        if row.session is None or row.session.discard_at is None
    ]
    for row in candidates:
        if row.key in keys_of_stopped and row.session and _has_failed(row.session):
            return row
    candidates = [row for row in candidates if row.key == key]
    if len(candidates) > 1:
        for row in candidates:
            if row.session and _has_answer(row.session, messages[0]):
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

    Programs move marks of the cache, add and remove reminders and other blocks around the words of
    the user, leave out what a model thought, and write arguments in another order, so none of these
    count. Conversations that differ only in such blocks are told apart by their answers.
    """
    for message in messages:
        text = find_lasting_text(message.role, normalize_text(message.content))
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
