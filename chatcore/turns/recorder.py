"""Store an answer while it is streamed: deltas go to the event log, the message is written once."""

import asyncio
import contextlib
import copy
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from django.db import connection, transaction

from chatcore.accounts.spending import Reservation, settle_call
from chatcore.base.threads import give_back_connection, run_until_stored
from chatcore.base.truncation import clean_text
from chatcore.events import log as event_log
from chatcore.events.types import (
    ContextUsagePayload,
    DeltaPayload,
    DeltaType,
    EventType,
    NewEvent,
    ToolCallStartedPayload,
    TurnReadingPayload,
)
from chatcore.models import Message, Turn
from chatcore.models.statements import Numbers
from chatcore.providers import overflow
from chatcore.providers.base import ReasoningDelta, Request, StreamEnd, TextDelta, Usage
from chatcore.signals import answer_stored
from chatcore.turns.delta_writer import delta_writer
from chatcore.turns.leases import LockedTurn, TurnLost, lock_running_turn
from chatcore.turns.messages import (
    append_message,
    build_completed_payload,
    build_created_payload,
)

TELL_SECONDS = 2.0  # between two events; a shorter reading has none


@dataclass
class StreamedText:
    """A text that grows. What is in the event log is in `stored_parts`, the rest in `new_parts`.

    The event loop appends new parts; whoever holds the recorder's lock moves them.
    """

    stored_parts: list[str] = field(default_factory=list)
    new_parts: list[str] = field(default_factory=list)
    stored_chars: int = 0

    def join(self) -> str:
        """Return the whole text."""
        return "".join((*self.stored_parts, *self.new_parts))

    def has_words(self) -> bool:
        """Return True if a character of the text is not white space."""
        return any(part.strip() for part in (*self.stored_parts, *self.new_parts))

    def mark_stored(self, part_count: int, text: str) -> None:
        """Note that the first new parts, joined as `text`, are in the log."""
        del self.new_parts[:part_count]
        self.stored_parts.append(text)
        self.stored_chars += len(text)

    def mark_stored_chars(self, char_count: int) -> None:
        """Note that the first characters of the text, of this number, are in the log."""
        part_count = len(self.new_parts)
        new_text = "".join(self.new_parts[:part_count])
        split_at = char_count - self.stored_chars
        # One assignment, because the event loop may append meanwhile.
        self.new_parts[:part_count] = [new_text[split_at:]]
        self.stored_parts.append(new_text[:split_at])
        self.stored_chars = char_count


@dataclass(frozen=True)
class NewDelta:
    """The new parts of one text, joined, as the event log takes them."""

    delta_type: DeltaType
    offset: int
    part_count: int
    text: str


class AnswerRecorder:
    """Stores one answer of a model.

    `texts` holds everything that has arrived. `message` is None until the first text is stored.
    `is_closed` is True when the message is complete or interrupted, and then nothing more is
    stored. `failure` is what the delta writer could not get over. `is_uncertain` is True after a
    write of which nobody knows whether it was committed. `request` is what the answer comes from,
    and `left_out` the numbers of messages that are not in it; `left_out_count` is how many did not
    fit, None if it was not trimmed. `sent_tokens` is its estimated size, None if it was not
    measured. `measure_answer` is that of its FittedRequest. `call` is what is held for it.
    """

    def __init__(
        self,
        turn: Turn,
        *,
        model: str,
        context_version: int | None,
        request: Request,
        left_out: Sequence[int] = (),
        left_out_count: int | None = None,
        sent_tokens: int | None = None,
        measure_answer: Callable[[Message], Mapping[str, Any] | None] | None = None,
        call: Reservation,
    ) -> None:
        self.turn = turn
        self.model = model
        self.context_version = context_version
        self.request = request
        self.left_out = left_out
        self.left_out_count = left_out_count
        self.sent_tokens = sent_tokens
        self.measure_answer = measure_answer
        self.call = call
        self.message: Message | None = None
        self.texts: dict[DeltaType, StreamedText] = {
            # In this order they are written: a model reasons before it answers.
            EventType.REASONING_DELTA: StreamedText(),
            EventType.MESSAGE_DELTA: StreamedText(),
        }
        self.char_count = 0
        self.first_delta_at: float | None = None  # on the monotonic clock
        self.is_closed = False
        self.is_uncertain = False
        self.failure: Exception | None = None
        # Two threads may write for an answer at once: the delta writer, and the one that stores its
        # end; also a thread whose task was cancelled, because Python cannot stop it. The lock is
        # held around the transaction, so that each finishes its own first.
        self.write_lock = threading.Lock()

    @property
    def has_text(self) -> bool:
        """Return True if any text or reasoning has arrived."""
        return self.char_count > 0

    def record_delta(self, part: TextDelta | ReasoningDelta) -> None:
        """Collect a delta, which the delta writer stores soon.

        Raises what the delta writer could not get over, so that a turn which was closed by another
        process stops reading the stream.
        """
        if self.failure:
            raise self.failure
        text = clean_text(part.text)
        if not text:
            return
        is_text = isinstance(part, TextDelta)
        delta_type: DeltaType = EventType.MESSAGE_DELTA if is_text else EventType.REASONING_DELTA
        self.texts[delta_type].new_parts.append(text)
        if not self.char_count:
            self.first_delta_at = time.monotonic()
        self.char_count += len(text)
        delta_writer.submit(self)

    @contextlib.contextmanager
    def open_transaction(self) -> Iterator[LockedTurn]:
        """Open a transaction that has locked the running turn, and yield it. Raises TurnLost."""
        with self._take_lock_and_connection(), contextlib.ExitStack() as undo:
            # A rollback takes back rows that these attributes describe. With the new values,
            # the next write would refer to a message that does not exist.
            undo.callback(self._note_doubt, copy.copy(self.message), is_closed=self.is_closed)
            with transaction.atomic():
                locked_turn = lock_running_turn(self.turn.pk)
                self.read_back_if_uncertain()
                yield locked_turn
            undo.pop_all()

    def _note_doubt(self, message: Message | None, *, is_closed: bool) -> None:
        self.message = message
        self.is_closed = is_closed
        self.is_uncertain = True

    @contextlib.contextmanager
    def _take_lock_and_connection(self) -> Iterator[None]:
        """Hold the lock, and a connection to write with.

        Neither is waited for with the other in hand. A hundred answers that end at once would
        otherwise hold all connections of the pool while they wait for the delta writer, and keep
        everybody else of this process waiting.
        """
        while True:
            give_back_connection()
            with self.write_lock:
                pass  # whoever wrote for this answer is done
            connection.ensure_connection()
            if self.write_lock.acquire(blocking=False):
                break
        try:
            yield
        finally:
            self.write_lock.release()

    def read_back_if_uncertain(self) -> None:
        """Find out what the log has after a write that may have been committed or not.

        A connection can break in the middle of a commit. Without this, the deltas of such a write
        could be stored twice. The caller holds the lock and the turn.
        """
        if not self.is_uncertain:
            return
        self.message = self._find_stored_message()
        if self.message is not None:
            self.is_closed = self.message.status != Message.Status.STREAMING
            for delta_type, char_count in event_log.count_delta_chars(self.message.pk).items():
                self.texts[delta_type].mark_stored_chars(char_count)
        self.is_uncertain = False

    def collect_new_deltas(self) -> list[NewDelta]:
        """Return what is not in the log yet. The caller holds the lock."""
        if self.is_closed:
            return []
        new_deltas = []
        for delta_type, text in self.texts.items():
            part_count = len(text.new_parts)
            if part_count:
                new_text = "".join(text.new_parts[:part_count])
                new_deltas.append(NewDelta(delta_type, text.stored_chars, part_count, new_text))
        return new_deltas

    def mark_stored(self, new_deltas: list[NewDelta]) -> None:
        """Note that these deltas are committed."""
        for delta in new_deltas:
            self.texts[delta.delta_type].mark_stored(delta.part_count, delta.text)

    def begin_message(self, numbers: Numbers) -> Message:
        """Return the message of the answer, which has the last of these numbers, to be stored.

        It is stored with its first text, so that pages show it from its first word on.
        """
        self.message = Message(
            session_id=self.turn.session_id,
            owner_id=numbers.owner_id,
            turn=self.turn,
            seq=numbers.seq,
            **self._describe_new_message(),
        )
        return self.message

    def build_events(self, new_deltas: list[NewDelta], *, is_new: bool) -> list[NewEvent]:
        """Return the events of these deltas, after that of the message itself if it is new."""
        message = self.message
        assert message is not None
        events: list[NewEvent] = []
        if is_new:
            events.append((EventType.MESSAGE_CREATED, build_created_payload(message)))
        for delta in new_deltas:
            payload = DeltaPayload(message=message.pk, offset=delta.offset, text=delta.text)
            events.append((delta.delta_type, payload))
        return events

    def complete_message(self, completion: StreamEnd) -> tuple[Message, list[NewEvent]]:
        """Store the complete answer with its usage, inside `open_transaction`.

        Returns its events too, for the caller to append. An earlier attempt may have stored the
        message although its commit was not confirmed: then it is returned without events. Raises
        TurnLost if the answer was closed as interrupted meanwhile.
        """
        if self.is_closed:
            if self.message is not None and self.message.status == Message.Status.COMPLETE:
                return self.message, []
            raise TurnLost(str(self.turn.pk))
        tool_calls = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in completion.tool_calls
        ]
        usage = completion.usage
        cost = settle_call(self.call, usage, turn=self.turn)
        if usage and not self._may_believe(usage):
            usage = None
        return self._close_message(
            Message.Status.COMPLETE,
            tool_calls=tool_calls,
            # Not this message but the answer after the tool results is the new version.
            replaces_id=None if tool_calls else self.turn.replaces_id,
            finish_reason=completion.reason,
            finish_detail=_get_finish_detail(completion),
            provider_data=completion.provider_data,
            context_version=self.context_version,
            cost=cost,
            token_count_input=usage.input if usage else None,
            token_count_output=usage.output if usage else None,
            token_count_cache_read=usage.cache_read if usage else None,
            token_count_cache_write=usage.cache_write if usage else None,
        )

    def _may_believe(self, usage: Usage) -> bool:
        """Return whether a count can be that of the request; the turn tells where it was cut."""
        model = self.turn.session.model
        window = model.context_window_size if model else None
        if overflow.is_possible(self.request, usage, window):
            return True
        is_told = any(notice.startswith(overflow.SHORTFALL) for notice in self.turn.notices)
        if overflow.is_far_below(self.request, usage) and not is_told:
            notice = overflow.describe_shortfall(self.request, usage)
            self.turn.notices = [*self.turn.notices, notice]
            self.turn.save(update_fields=["notices"])
        return False

    def list_usage_events(self, message: Message, locked_turn: LockedTurn) -> list[NewEvent]:
        """Return `context.usage` after this answer, if it follows from what its request held.

        Otherwise the check after the response announces it.
        """
        turn = self.turn
        has_own_parts = turn.tools or turn.has_servers or turn.model_id or turn.clearing
        if self.measure_answer is None or has_own_parts:
            return []
        if not locked_turn.is_session_as(turn.session, context_version=self.context_version):
            return []
        usage = self.measure_answer(message)
        return [(EventType.CONTEXT_USAGE, cast(ContextUsagePayload, usage))] if usage else []

    def interrupt_message(self) -> list[NewEvent]:
        """Store the text that has arrived as interrupted, inside `open_transaction`.

        Returns the events, for the caller to append. Stores nothing if no text has arrived, or if
        the answer is closed already.
        """
        if self.is_closed or not self.has_text:
            return []
        return self._close_message(Message.Status.INTERRUPTED)[1]

    def _find_stored_message(self) -> Message | None:
        """Return the turn's newest message, if it is an answer and not a question or a result."""
        message = self.turn.messages.order_by("-seq").first()
        if message is None or message.role != Message.Role.ASSISTANT:
            return None
        return message

    def _describe_new_message(self) -> dict[str, object]:
        if self.sent_tokens is None:
            self.sent_tokens = overflow.measure_request(self.request).tokens
        return {
            "role": Message.Role.ASSISTANT,
            "status": Message.Status.STREAMING,
            "model": self.model,
            "left_out_count": self.left_out_count,
            "sent_tokens": self.sent_tokens,
            "replaces_id": self.turn.replaces_id,
        }

    def _close_message(self, status: str, **fields: object) -> tuple[Message, list[NewEvent]]:
        is_new = self.message is None
        if self.message is None:
            self.message = append_message(
                self.turn.session_id, self.turn, **self._describe_new_message()
            )
        message = self.message
        events = self.build_events(self.collect_new_deltas(), is_new=is_new)
        message.content = self.texts[EventType.MESSAGE_DELTA].join()
        message.reasoning = self.texts[EventType.REASONING_DELTA].join()
        message.status = status
        for name, value in fields.items():
            setattr(message, name, value)
        names = ("content", "reasoning", "status", "token_estimate", *fields)
        message.save(update_fields=names)
        events.append((EventType.MESSAGE_COMPLETED, build_completed_payload(message)))
        events.extend(_build_call_events(message))
        answer_stored.send(None, message=message, request=self.request, left_out=self.left_out)
        self.is_closed = True
        return message, events


def _get_finish_detail(completion: StreamEnd) -> str:
    if completion.reason in ("stop", "tool_calls"):
        return completion.stop_sequence or ""
    return completion.word


def _build_call_events(message: Message) -> list[NewEvent]:
    payloads = [
        ToolCallStartedPayload(
            message=message.pk, id=call["id"], name=call["name"], arguments=call["arguments"]
        )
        for call in message.tool_calls
    ]
    return [(EventType.TOOL_CALL_STARTED, payload) for payload in payloads]


class ReadingTeller:
    """Appends `turn.reading` to the log while the request of one answer is read.

    It is an event like all others, so every relay and every stream carries it. What a server says
    in between, or while an event is being stored, is left out: an answer's deltas are ten times as
    many.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._told_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def tell(self, read: int, total: int) -> None:
        """Have it stored soon that `read` of `total` tokens are read. For the event loop."""
        now = time.monotonic()
        if now - self._told_at < TELL_SECONDS or (self._task and not self._task.done()):
            return
        self._told_at = now
        payload = TurnReadingPayload(turn=str(self._turn.pk), read=read, total=total)
        self._task = asyncio.create_task(run_until_stored(_store, self._turn, payload))


def _store(turn: Turn, payload: TurnReadingPayload) -> None:
    with contextlib.suppress(TurnLost), transaction.atomic():
        lock_running_turn(turn.pk)
        event_log.append_events(turn.session_id, (EventType.TURN_READING, payload))
