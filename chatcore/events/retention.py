"""Delete the events that nobody needs any more, and say which ones of a session are gone.

Three kinds go. Deltas, an hour after they were written: the message holds their text; and how far
a model had come (`turn.reading`, `compaction.progress`), as soon. The event
`context.usage`, after an hour as well, except the newest one of each session. And every event after
CHATCORE["EVENT_RETENTION_DAYS"]: a client that was away for so long reads the messages instead.

Of the last kind only the beginning of a session's log is deleted, up to the start of a turn. So no
replay shows the start of a turn without its end.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Min, OuterRef, Q

from chatcore.base.databases.batches import delete_in_batches
from chatcore.base.databases.clock import read_clock
from chatcore.events.types import EventType
from chatcore.models import Message, Session, SessionEvent, Turn

SHORT_RETENTION = timedelta(hours=1)  # of deltas, of progress and of `context.usage`
PROGRESS_NAMES = (EventType.TURN_READING.value, EventType.COMPACTION_PROGRESS.value)
# A turn is marked as finished just before its last event is written.
END_MARGIN = timedelta(minutes=1)
SCAN_ROWS = 2_000  # read at once
MAX_NUMBER = 2**63 - 1


def prune_events() -> int:
    """Delete all events whose time is over. Returns how many."""
    now = read_clock()
    count = _delete_found(lambda: _find_old_deltas(now - SHORT_RETENTION))
    count += _delete_found(lambda: _find_old_progress(now - SHORT_RETENTION))
    count += _delete_found(lambda: _find_replaced_usage(now - SHORT_RETENTION))
    days = settings.CHATCORE["EVENT_RETENTION_DAYS"]
    if days:
        for ids in _find_old_beginnings(now - timedelta(days=days)):
            count += _delete_events(ids)
    return count


def find_dropped_seq(session: Session, after_seq: int) -> int | None:
    """Return the number up to which events after `after_seq` are no longer stored.

    Returns None if the session's log has everything from there on, apart from deltas and
    `context.usage`, which are deleted one by one.
    """
    if after_seq >= session.last_event_seq:
        return None
    oldest_seq = session.events.order_by("seq").values_list("seq", flat=True).first()
    # The session was read before. An event that was appended since is then the oldest one.
    dropped_seq = session.last_event_seq if oldest_seq is None else oldest_seq - 1
    return dropped_seq if dropped_seq > after_seq else None


def has_events_of(turn: Turn) -> bool:
    """Return whether the log still has the events of a turn, from its first one on."""
    return SessionEvent.objects.filter(
        session_id=turn.session_id, seq=turn.first_event_seq
    ).exists()


def _find_old_deltas(cutoff: datetime) -> list[int]:
    # The words of a message that is still streaming are only in its deltas.
    streaming_messages = Message.objects.filter(status=Message.Status.STREAMING).values("pk")
    old_deltas = SessionEvent.objects.filter(message__isnull=False, at__lt=cutoff)
    old_deltas = old_deltas.exclude(message__in=streaming_messages)
    return list(old_deltas.order_by().values_list("pk", flat=True)[:SCAN_ROWS])


def _find_old_progress(cutoff: datetime) -> list[int]:
    progress = SessionEvent.objects.filter(name__in=PROGRESS_NAMES, at__lt=cutoff)
    return list(progress.order_by().values_list("pk", flat=True)[:SCAN_ROWS])


def _find_replaced_usage(cutoff: datetime) -> list[int]:
    usage_events = SessionEvent.objects.filter(name=EventType.CONTEXT_USAGE.value)
    newer_events = usage_events.filter(session=OuterRef("session"), seq__gt=OuterRef("seq"))
    replaced_events = usage_events.filter(Exists(newer_events), at__lt=cutoff)
    return list(replaced_events.order_by().values_list("pk", flat=True)[:SCAN_ROWS])


def _find_old_beginnings(cutoff: datetime) -> Iterator[list[int]]:
    """Yield primary keys of the oldest events, session by session only the beginning of the log.

    Within a session both numbers, `id` and `seq`, rise together. So the first event of a session
    that must stay keeps all later ones of it.
    """
    last_id = 0
    kept_sessions: set[UUID] = set()
    while True:
        rows = list(
            SessionEvent.objects.filter(pk__gt=last_id)
            .order_by("pk")
            .values_list("pk", "session_id", "seq", "at")[:SCAN_ROWS]
        )
        if not any(at < cutoff for _, _, _, at in rows):
            return
        last_id = rows[-1][0]
        session_ids = {session_id for _, session_id, _, _ in rows}
        first_kept_seqs = _find_first_kept_seqs(session_ids, cutoff)
        ids = []
        for pk, session_id, seq, at in rows:
            if at >= cutoff or seq >= first_kept_seqs.get(session_id, MAX_NUMBER):
                kept_sessions.add(session_id)
            elif session_id not in kept_sessions:
                ids.append(pk)
        yield ids


def _find_first_kept_seqs(session_ids: Collection[UUID], cutoff: datetime) -> dict[UUID, int]:
    """Return where the oldest turn begins that must stay whole, for each session that has one.

    These are turns that are open, ended after `cutoff`, or have a message whose words are still in
    its deltas alone.
    """
    streaming_messages = Message.objects.filter(status=Message.Status.STREAMING, turn__isnull=False)
    kept_turns = Turn.objects.filter(session__in=session_ids).filter(
        Q(status__in=Turn.OPEN_STATUSES)
        | Q(finished_at__gte=cutoff - END_MARGIN)
        | Q(pk__in=streaming_messages.values("turn"))
    )
    first_seqs = kept_turns.order_by().values("session").annotate(first=Min("first_event_seq"))
    return dict(first_seqs.values_list("session", "first"))


def _delete_found(find_ids: Callable[[], list[int]]) -> int:
    """Delete what `find_ids` finds until it finds less than a full scan."""
    count = 0
    while True:
        ids = find_ids()
        count += _delete_events(ids)
        if len(ids) < SCAN_ROWS:
            return count


def _delete_events(ids: list[int]) -> int:
    return delete_in_batches(SessionEvent.objects.filter(pk__in=ids))
