"""Store an answer while it is streamed: deltas go to the event log, the message is written once."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from chatcore.events import log as event_log
from chatcore.events.types import (
    DeltaPayload,
    DeltaType,
    EventType,
    MessageCompletedPayload,
    MessageCreatedPayload,
    UsagePayload,
)
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import ReasoningDelta, StreamEnd, TextDelta
from chatcore.sessions.truncation import clean_text
from chatcore.threads import run_in_thread
from chatcore.turns.leases import TurnLost, renew_lease

FLUSH_SECONDS = 0.12  # how long deltas are collected before they are written together


def append_message(session_id: UUID, turn: Turn | None, **fields: Any) -> Message:
    """Store a message with the next number of its session; call it inside a transaction.

    The UPDATE of the counter locks the session's row until the transaction ends, so no other
    message takes the same number.
    """
    session_row = Session.objects.filter(pk=session_id)
    session_row.update(last_seq=F("last_seq") + 1, message_count=F("message_count") + 1)
    seq = session_row.values_list("last_seq", flat=True).get()
    return Message.objects.create(session_id=session_id, turn=turn, seq=seq, **fields)


class AnswerRecorder:
    """Stores one answer of a model.

    `texts` holds everything that has arrived, and `log_offsets` how many characters of it are in
    the event log. `message` is None until the first text arrives. `is_closed` is True when the
    message is complete or interrupted, and then nothing more is stored.
    """

    def __init__(self, turn: Turn, *, model: str, context_version: int | None) -> None:
        self.turn = turn
        self.model = model
        self.context_version = context_version
        self.message: Message | None = None
        self.texts: dict[DeltaType, str] = {
            EventType.MESSAGE_DELTA: "",
            EventType.REASONING_DELTA: "",
        }
        self.log_offsets: dict[DeltaType, int] = dict.fromkeys(self.texts, 0)
        self.is_closed = False
        self._write_lock = threading.Lock()
        self._wake_event = asyncio.Event()
        self._is_closing = False
        self._flusher: asyncio.Task[None] | None = None

    @property
    def has_text(self) -> bool:
        """Return True if any text or reasoning has arrived."""
        return any(self.texts.values())

    def record_delta(self, part: TextDelta | ReasoningDelta) -> None:
        """Collect a delta, which is written within FLUSH_SECONDS.

        Raises the exception of the background task if that has failed, so that a turn which lost
        its lease stops reading the stream.
        """
        if self._flusher and self._flusher.done():
            self._flusher.result()
        delta_type: DeltaType = (
            EventType.MESSAGE_DELTA if isinstance(part, TextDelta) else EventType.REASONING_DELTA
        )
        self.texts[delta_type] += clean_text(part.text)
        self._wake_event.set()

    @contextlib.asynccontextmanager
    async def flush_in_background(self) -> AsyncIterator[None]:
        """Write deltas in the background: the first at once, then every FLUSH_SECONDS.

        All deltas are written when the context ends.
        """
        self._flusher = asyncio.create_task(self._flush_periodically())
        try:
            yield
        finally:
            self._is_closing = True
            self._wake_event.set()
            await self._flusher

    async def _flush_periodically(self) -> None:
        while not self._is_closing:
            await self._wake_event.wait()
            self._wake_event.clear()
            await run_in_thread(self._flush_deltas)
            if not self._is_closing:
                await asyncio.sleep(FLUSH_SECONDS)
        await run_in_thread(self._flush_deltas)

    @contextlib.contextmanager
    def open_transaction(self) -> Iterator[None]:
        """Open a transaction that has renewed the turn's lease. Raises TurnLost.

        Two threads may write at once: when a task is cancelled while a thread stores something for
        it, the task goes on to store the end of the answer, and Python cannot stop the thread. The
        lock, taken before the transaction, lets the thread finish its own first.
        """
        with self._write_lock:
            message = self.message
            log_offsets = dict(self.log_offsets)
            is_closed = self.is_closed
            try:
                with transaction.atomic():
                    renew_lease(self.turn.pk)
                    yield
            except BaseException:
                # The rollback has taken back rows that these attributes describe. With the new
                # values, the next write would refer to a message that does not exist, or leave out
                # deltas that were never stored. So they are restored with the rows.
                self.message = message
                self.log_offsets = log_offsets
                self.is_closed = is_closed
                raise

    def _flush_deltas(self) -> None:
        if any(len(text) > self.log_offsets[name] for name, text in self.texts.items()):
            with self.open_transaction():
                self._append_new_deltas()

    def _append_new_deltas(self) -> None:
        new_deltas = [
            (name, self.log_offsets[name], full_text[self.log_offsets[name] :])
            for name, full_text in self.texts.items()
        ]
        new_deltas = [delta for delta in new_deltas if delta[2]]
        if self.is_closed or not new_deltas:
            return
        message = self._ensure_message()
        delta_events = (
            (name, DeltaPayload(message=message.pk, offset=start, text=text))
            for name, start, text in new_deltas
        )
        event_log.append_events(self.turn.session_id, *delta_events)
        for name, start, text in new_deltas:
            self.log_offsets[name] = start + len(text)

    def _ensure_message(self) -> Message:
        """Return the message; store it at first, so that pages show it from its first word on."""
        if self.message is None:
            fields = {
                "role": Message.Role.ASSISTANT,
                "status": Message.Status.STREAMING,
                "model": self.model,
            }
            self.message = append_message(
                self.turn.session_id, self.turn, **fields, replaces_id=self.turn.replaces_id
            )
            event_log.append_events(
                self.turn.session_id,
                (EventType.MESSAGE_CREATED, build_created_payload(self.message)),
            )
        return self.message

    def complete_message(self, completion: StreamEnd) -> Message:
        """Store the complete answer with its usage, inside `open_transaction`.

        Raises TurnLost if the answer was closed as interrupted meanwhile.
        """
        if self.is_closed:
            raise TurnLost(str(self.turn.pk))
        message = self._ensure_message()
        message.tool_calls = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in completion.tool_calls
        ]
        if message.tool_calls:
            # Not this message but the answer after the tool results is the new version.
            message.replaces = None
        message.provider_data = completion.provider_data
        message.context_version = self.context_version
        if completion.usage:
            message.token_count_input = completion.usage.input
            message.token_count_output = completion.usage.output
            message.token_count_cache_read = completion.usage.cache_read
            message.token_count_cache_write = completion.usage.cache_write
        return self._close_message(message, Message.Status.COMPLETE)

    def interrupt_message(self) -> Message | None:
        """Store the text that has arrived as interrupted, inside `open_transaction`.

        Returns None and stores nothing if no text has arrived, or if the answer is closed already.
        """
        if self.is_closed or not self.has_text:
            return None
        return self._close_message(self._ensure_message(), Message.Status.INTERRUPTED)

    def _close_message(self, message: Message, status: str) -> Message:
        self._append_new_deltas()
        self.is_closed = True
        message.content = self.texts[EventType.MESSAGE_DELTA]
        message.reasoning = self.texts[EventType.REASONING_DELTA]
        message.status = status
        message.save()
        event_log.append_events(
            self.turn.session_id, (EventType.MESSAGE_COMPLETED, build_completed_payload(message))
        )
        return message


def build_created_payload(message: Message) -> MessageCreatedPayload:
    """Return the data of `message.created`."""
    payload = MessageCreatedPayload(
        message=message.pk,
        role=str(message.role),
        message_seq=message.seq,
        turn=_format_turn_id(message),
    )
    if message.replaces_id:
        payload["replaces"] = message.replaces_id
    return payload


def build_completed_payload(message: Message) -> MessageCompletedPayload:
    """Return the data of `message.completed`."""
    usage: UsagePayload | None = None
    if message.token_count_input is not None:
        usage = UsagePayload(
            input=message.token_count_input,
            output=message.token_count_output,
            cache_read=message.token_count_cache_read,
            cache_write=message.token_count_cache_write,
        )
    return MessageCompletedPayload(
        message=message.pk,
        role=message.role,
        status=message.status,
        usage=usage,
        turn=_format_turn_id(message),
    )


def _format_turn_id(message: Message) -> str | None:
    return str(message.turn_id) if message.turn_id else None
