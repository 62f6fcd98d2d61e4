"""Writing an answer down while it is being said: deltas to the log as they come, the message once at its end."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.db import transaction
from django.db.models import F

from chatcore.events import log as event_log
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import Finished, ReasoningDelta, TextDelta
from chatcore.sessions.truncation import clean_text
from chatcore.threads import in_thread
from chatcore.turns.leases import TurnLost, hold

FLUSH_SECONDS = 0.12


def next_message(session_id: Any, turn: Turn | None, **fields: Any) -> Message:
    """Add a message under the next `seq`, which the session's row lock gives; call inside a transaction."""
    row = Session.objects.filter(pk=session_id)
    row.update(last_seq=F("last_seq") + 1, message_count=F("message_count") + 1)
    seq = row.values_list("last_seq", flat=True).get()
    return Message.objects.create(session_id=session_id, turn=turn, seq=seq, **fields)


class Recorder:
    """One answer of one model. `said` is all that was said; what is `flushed` is in the log; `closed`, the message is at its end."""

    def __init__(self, turn: Turn, *, model: str, context_version: int | None) -> None:
        self.turn = turn
        self.model = model
        self.context_version = context_version
        self.message: Message | None = None
        self.said = {"message.delta": "", "reasoning.delta": ""}
        self.flushed = {"message.delta": 0, "reasoning.delta": 0}
        self.closed = False
        self._writes = threading.Lock()
        self._dirty = asyncio.Event()
        self._closing = False
        self._flusher: asyncio.Task[None] | None = None

    @property
    def said_something(self) -> bool:
        """Whether a word, thought or spoken, has come from the model."""
        return any(self.said.values())

    def take(self, part: TextDelta | ReasoningDelta) -> None:
        """Keep a delta; the flusher writes it within FLUSH_SECONDS. Raises what made the flusher end."""
        if self._flusher and self._flusher.done():
            self._flusher.result()
        name = "message.delta" if isinstance(part, TextDelta) else "reasoning.delta"
        self.said[name] += clean_text(part.text)
        self._dirty.set()

    @contextlib.asynccontextmanager
    async def flushing(self) -> AsyncIterator[None]:
        """While inside, deltas go to the log at once, then every FLUSH_SECONDS. All are there when it is left."""
        self._flusher = asyncio.create_task(self._flush_again_and_again())
        try:
            yield
        finally:
            self._closing = True
            self._dirty.set()
            await self._flusher

    async def _flush_again_and_again(self) -> None:
        while not self._closing:
            await self._dirty.wait()
            self._dirty.clear()
            await in_thread(self._flush)
            if not self._closing:
                await asyncio.sleep(FLUSH_SECONDS)
        await in_thread(self._flush)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that holds the turn. One after the other: a thread whose caller was canceled goes on with its own."""
        with self._writes:
            before = self.message, dict(self.flushed), self.closed
            try:
                with transaction.atomic():
                    hold(self.turn.pk)
                    yield
            except BaseException:
                self.message, self.flushed, self.closed = before  # as the rollback left the rows
                raise

    def _flush(self) -> None:
        if any(len(said) > self.flushed[name] for name, said in self.said.items()):
            with self.writing():
                self._log_new_words()

    def _log_new_words(self) -> None:
        new = [
            (name, self.flushed[name], said[self.flushed[name] :])
            for name, said in self.said.items()
        ]
        new = [delta for delta in new if delta[2]]
        if self.closed or not new:
            return
        message = self._opened()
        deltas = (
            (name, {"message": message.pk, "offset": start, "text": text})
            for name, start, text in new
        )
        event_log.append(self.turn.session_id, *deltas)
        for name, start, text in new:
            self.flushed[name] = start + len(text)

    def _opened(self) -> Message:
        """The message, which exists from its first word on."""
        if self.message is None:
            opened = {
                "role": Message.Role.ASSISTANT,
                "status": Message.Status.STREAMING,
                "model": self.model,
            }
            self.message = next_message(
                self.turn.session_id, self.turn, **opened, replaces_id=self.turn.replaces_id
            )
            event_log.append(self.turn.session_id, ("message.created", created(self.message)))
        return self.message

    def complete(self, finished: Finished) -> Message:
        """Store the whole answer with its usage; call while `writing`. Raises TurnLost when it was interrupted meanwhile."""
        if self.closed:
            raise TurnLost(str(self.turn.pk))
        message = self._opened()
        message.tool_calls = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in finished.tool_calls
        ]
        if message.tool_calls:
            message.replaces = None  # the answer that follows the results does
        message.provider_data = finished.provider_data
        message.context_version = self.context_version
        if finished.usage:
            message.token_count_input = finished.usage.input
            message.token_count_output = finished.usage.output
            message.token_count_cache_read = finished.usage.cache_read
            message.token_count_cache_write = finished.usage.cache_write
        return self._close(message, Message.Status.COMPLETE)

    def interrupt(self) -> Message | None:
        """Keep what was said as `interrupted`, while `writing`; nothing is stored when nothing was said, or all of it was."""
        if self.closed or not self.said_something:
            return None
        return self._close(self._opened(), Message.Status.INTERRUPTED)

    def _close(self, message: Message, status: str) -> Message:
        self._log_new_words()
        self.closed = True
        message.content = self.said["message.delta"]
        message.reasoning = self.said["reasoning.delta"]
        message.status = status
        message.save()
        event_log.append(self.turn.session_id, ("message.completed", completed(message)))
        return message


def created(message: Message) -> dict[str, Any]:
    """The data of `message.created`."""
    data = {
        "message": message.pk,
        "role": str(message.role),
        "message_seq": message.seq,
        "turn": _turn_of(message),
    }
    return data | ({"replaces": message.replaces_id} if message.replaces_id else {})


def completed(message: Message) -> dict[str, Any]:
    """The data of `message.completed`."""
    counted = message.token_count_input is not None
    usage = {
        "input": message.token_count_input,
        "output": message.token_count_output,
        "cache_read": message.token_count_cache_read,
        "cache_write": message.token_count_cache_write,
    }
    return {
        "message": message.pk,
        "role": message.role,
        "status": message.status,
        "usage": usage if counted else None,
        "turn": _turn_of(message),
    }


def _turn_of(message: Message) -> str | None:
    return str(message.turn_id) if message.turn_id else None
