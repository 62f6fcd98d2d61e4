"""Lock a session, and say on which days its messages were written."""

import contextlib
from collections.abc import Collection, Iterator
from datetime import date, datetime, tzinfo
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Max, Min, QuerySet, Subquery
from django.utils import timezone

from chatcore.models import Message, Session, UserPreferences

BATCH_SIZE = 500  # numbers that one statement names


def lock_session(session_id: UUID) -> bool:
    """Lock the session's row to the end of the transaction. False if it is deleted."""
    try:
        Session.objects.lock(session_id)
    except Session.DoesNotExist:
        return False
    return True


def query_batches(session_id: UUID, seqs: Collection[int]) -> Iterator[QuerySet[Message]]:
    """Yield queries of the messages with these numbers, a part of them each."""
    numbers = sorted(seqs)
    messages = Message.objects.filter(session=session_id).order_by()
    for start in range(0, len(numbers), BATCH_SIZE):
        yield messages.filter(seq__in=numbers[start : start + BATCH_SIZE])


def select_time_zone(session_id: UUID) -> Subquery:
    """Return the time zone of the session's owner, as a value that rows are loaded with."""
    owner = Session.all_objects.filter(pk=session_id).order_by().values("owner_id")
    preferences = UserPreferences.objects.filter(user__in=owner)
    return Subquery(preferences.values("time_zone")[:1])


def find_time_zone(name: str | None) -> tzinfo:
    """Return the time zone of this name; without one that of the installation (`TIME_ZONE`)."""
    if name:
        # An update of the zones may have removed the name.
        with contextlib.suppress(KeyError, ValueError, OSError):
            return ZoneInfo(name)
    return timezone.get_default_timezone()


def find_day(moment: datetime, zone_name: str | None) -> date:
    """Return the day in a time zone, else in that of the installation."""
    return timezone.localdate(moment, find_time_zone(zone_name))


def load_days(session_id: UUID, seqs: Collection[int]) -> dict[int, date]:
    """Return the day of each of these messages in its user's time zone, by its number."""
    days: dict[int, date] = {}
    for messages in query_batches(session_id, seqs):
        times = messages.annotate(zone=select_time_zone(session_id))
        values = times.values_list("seq", "created_at", "zone")
        days.update((seq, find_day(created_at, zone)) for seq, created_at, zone in values)
    return days


def load_period(session_id: UUID, first_seq: int, last_seq: int) -> tuple[date, date] | None:
    """Return the first and the last day of the messages in a range; None if there are none."""
    rows = Message.objects.filter(session=session_id, seq__gte=first_seq, seq__lte=last_seq)
    times = rows.order_by().aggregate(
        first=Min("created_at"), last=Max("created_at"), zone=Max(select_time_zone(session_id))
    )
    if times["first"] is None:
        return None
    return find_day(times["first"], times["zone"]), find_day(times["last"], times["zone"])
