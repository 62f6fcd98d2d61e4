"""Hand the events that were just written to their readers in this process."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from chatcore.events.types import Event

# What is held of a session for the readers that are a little behind. A reader that is further
# behind reads the database, so slow readers cost no memory.
HELD_EVENTS = 128
HELD_CHARS = 128_000

Watcher = tuple[asyncio.AbstractEventLoop, asyncio.Event]


@dataclass
class Channel:
    """The readers of one session, and its newest events without a gap between their numbers.

    `last_seq` is the number of the newest event that is known to exist, or None. `is_over` is True
    when the session is deleted, or the process stops.
    """

    watchers: set[Watcher] = field(default_factory=set)
    events: deque[Event] = field(default_factory=deque)
    held_chars: int = 0
    last_seq: int | None = None
    is_over: bool = False

    def append(self, new_events: Sequence[Event]) -> bool:
        """Hold new events; return False if there is no event that the readers do not know yet."""
        is_new = False
        for event in new_events:
            if self.last_seq is not None and event.seq <= self.last_seq:
                continue
            if self.events and event.seq != self.events[-1].seq + 1:
                # Another writer's events lie between. Readers take them from the database.
                self.clear()
            self.events.append(event)
            self.held_chars += len(event.payload_json)
            self.last_seq = event.seq
            is_new = True
        while len(self.events) > HELD_EVENTS or self.held_chars > HELD_CHARS:
            self.held_chars -= len(self.events.popleft().payload_json)
        return is_new

    def announce(self, last_seq: int) -> bool:
        """Note that events up to `last_seq` exist; return False if that was known."""
        if self.last_seq is not None and last_seq <= self.last_seq:
            return False
        self.clear()
        self.last_seq = last_seq
        return True

    def clear(self) -> None:
        """Drop the events that are held."""
        self.events.clear()
        self.held_chars = 0

    def select_after(self, after_seq: int) -> list[Event] | None:
        """Return the held events after number `after_seq`.

        Returns None if the database may have events that are not held.
        """
        if self.last_seq is not None and after_seq >= self.last_seq:
            return []
        if not self.events or self.events[0].seq > after_seq + 1:
            return None
        return [event for event in self.events if event.seq > after_seq]


class Subscription:
    """One reader's view of a session's newest events, on the event loop that created it."""

    def __init__(self, channel: Channel, lock: threading.Lock) -> None:
        self._channel = channel
        self._lock = lock
        self.wake_event = asyncio.Event()
        """Is set when the session may have new events, or its streams are to end."""

    @property
    def is_over(self) -> bool:
        """Return True once the session is known to be deleted, or the process stops."""
        return self._channel.is_over

    def get_events_after(self, after_seq: int) -> list[Event] | None:
        """Return new events, [] if there are none, and None if the database must be asked."""
        with self._lock:
            return self._channel.select_after(after_seq)

    def note_last(self, seq: int) -> None:
        """Note that the database had no event after this number, read after the subscription.

        What comes later is published or announced, and is known already if it came meanwhile.
        """
        with self._lock:
            if self._channel.last_seq is None:
                self._channel.last_seq = seq


class EventHub:
    """The readers of this process, by session.

    Writers of this process publish here what they have committed, and a relay publishes what other
    processes have (chatcore/events/relays). Nothing is lost if an event is never published: the
    database has it, and the relay looks there from time to time.
    """

    def __init__(self) -> None:
        # Readers belong to event loops, writers and relays to threads. The lock is held for a few
        # lines of memory only, and nothing waits while holding it.
        self._lock = threading.Lock()
        self._channels: dict[UUID, Channel] = {}
        self._on_first_reader: Callable[[], None] | None = None
        self._is_handing_over = False

    @property
    def is_handing_over(self) -> bool:
        """Return True once those who follow a session for ever are to go to another process."""
        return self._is_handing_over

    def set_first_reader_callback(self, callback: Callable[[], None]) -> None:
        """Name what is called when a reader comes while there is none."""
        self._on_first_reader = callback

    @contextlib.contextmanager
    def watch_session(self, session_id: UUID) -> Iterator[Subscription]:
        """Yield a subscription to a session's events for as long as the context lasts."""
        with self._lock:
            is_first = not self._channels
            channel = self._channels.setdefault(session_id, Channel())
            subscription = Subscription(channel, self._lock)
            watcher = (asyncio.get_running_loop(), subscription.wake_event)
            channel.watchers.add(watcher)
        if is_first and self._on_first_reader:
            self._on_first_reader()
        try:
            yield subscription
        finally:
            with self._lock:
                channel.watchers.discard(watcher)
                if not channel.watchers and self._channels.get(session_id) is channel:
                    del self._channels[session_id]

    def is_watched(self, session_id: UUID) -> bool:
        """Return True if a reader of this process follows the session."""
        return session_id in self._channels

    def list_watched(self) -> dict[UUID, int | None]:
        """Return the sessions that have readers, with the last event number known of each."""
        with self._lock:
            return {session: channel.last_seq for session, channel in self._channels.items()}

    def publish(self, events_by_session: Iterable[tuple[UUID, Sequence[Event]]]) -> None:
        """Hand committed events to their readers. Any thread may call this."""
        with self._lock:
            watchers = [
                watcher
                for session_id, events in events_by_session
                if (channel := self._channels.get(session_id)) and channel.append(events)
                for watcher in channel.watchers
            ]
        _wake(watchers)

    def announce(self, last_seqs: Mapping[UUID, int]) -> None:
        """Tell readers that events up to a number exist, which they must read themselves."""
        with self._lock:
            watchers = [
                watcher
                for session_id, last_seq in last_seqs.items()
                if (channel := self._channels.get(session_id)) and channel.announce(last_seq)
                for watcher in channel.watchers
            ]
        _wake(watchers)

    def end_sessions(self, session_ids: Iterable[UUID]) -> None:
        """Tell the readers of these sessions that they are deleted."""
        with self._lock:
            ended_channels = [
                self._channels[session_id]
                for session_id in session_ids
                if session_id in self._channels
            ]
            watchers = _end_channels(ended_channels)
        _wake(watchers)

    def hand_over(self) -> None:
        """Let those who follow a session for ever end after the events that are there.

        They come again, to another process. Who follows one turn stays until it has ended.
        """
        with self._lock:
            self._is_handing_over = True
            watchers = [
                watcher for channel in self._channels.values() for watcher in channel.watchers
            ]
        _wake(watchers)

    def end_all(self) -> None:
        """Let every reader end after the events that are there, because the process stops."""
        with self._lock:
            watchers = _end_channels(self._channels.values())
        _wake(watchers)


def _end_channels(channels: Iterable[Channel]) -> list[Watcher]:
    """Mark the channels as over, and return who is to be woken. The caller holds the hub's lock."""
    watchers: list[Watcher] = []
    for channel in channels:
        channel.is_over = True
        watchers.extend(channel.watchers)
    return watchers


def _wake(watchers: Iterable[Watcher]) -> None:
    wake_events: dict[asyncio.AbstractEventLoop, list[asyncio.Event]] = {}
    for loop, wake_event in watchers:
        wake_events.setdefault(loop, []).append(wake_event)
    for loop, loop_events in wake_events.items():
        # An asyncio.Event may only be set on its own loop. A loop that has closed raises
        # RuntimeError; its readers are gone with it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_all, loop_events)


def _set_all(wake_events: Iterable[asyncio.Event]) -> None:
    for wake_event in wake_events:
        wake_event.set()


event_hub = EventHub()
