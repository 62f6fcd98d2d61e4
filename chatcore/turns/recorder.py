"""Writing an answer down while it is being said: deltas to the log as they come, the message once at its end."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

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

FLUSH_SECONDS = 0.12


def append_message(session_id: Any, turn: Turn | None, **fields: Any) -> Message:
    """Add a message under the next `seq`, which the session's row lock gives; call inside a transaction."""
    session_row = Session.objects.filter(pk=session_id)
    session_row.update(last_seq=F("last_seq") + 1, message_count=F("message_count") + 1)
    seq = session_row.values_list("last_seq", flat=True).get()
    return Message.objects.create(session_id=session_id, turn=turn, seq=seq, **fields)


class AnswerRecorder:
    """One answer of one model. `said` is all that was said; what is `flushed` is in the log; `closed`, the message is at its end."""

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
        """Whether a word, thought or spoken, has come from the model."""
        return any(self.texts.values())

    def record_delta(self, part: TextDelta | ReasoningDelta) -> None:
        """Keep a delta; the flusher writes it within FLUSH_SECONDS. Raises what made the flusher end."""
        if self._flusher and self._flusher.done():
            self._flusher.result()
        delta_type: DeltaType = (
            EventType.MESSAGE_DELTA if isinstance(part, TextDelta) else EventType.REASONING_DELTA
        )
        self.texts[delta_type] += clean_text(part.text)
        self._wake_event.set()

    @contextlib.asynccontextmanager
    async def flush_in_background(self) -> AsyncIterator[None]:
        """While inside, deltas go to the log at once, then every FLUSH_SECONDS. All are there when it is left."""
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
        """A transaction that holds the turn. One after the other: a thread whose caller was canceled goes on with its own."""
        with self._write_lock:
            previous_state = self.message, dict(self.log_offsets), self.is_closed
            try:
                with transaction.atomic():
                    renew_lease(self.turn.pk)
                    yield
            except BaseException:
                self.message, self.log_offsets, self.is_closed = (
                    previous_state  # as the rollback left the rows
                )
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
        """The message, which exists from its first word on."""
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
        """Store the whole answer with its usage; call while `writing`. Raises TurnLost when it was interrupted meanwhile."""
        if self.is_closed:
            raise TurnLost(str(self.turn.pk))
        message = self._ensure_message()
        message.tool_calls = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in completion.tool_calls
        ]
        if message.tool_calls:
            message.replaces = None  # the answer that follows the results does
        message.provider_data = completion.provider_data
        message.context_version = self.context_version
        if completion.usage:
            message.token_count_input = completion.usage.input
            message.token_count_output = completion.usage.output
            message.token_count_cache_read = completion.usage.cache_read
            message.token_count_cache_write = completion.usage.cache_write
        return self._close_message(message, Message.Status.COMPLETE)

    def interrupt_message(self) -> Message | None:
        """Keep what was said as `interrupted`, while `writing`; nothing is stored when nothing was said, or all of it was."""
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
