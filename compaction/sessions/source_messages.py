"""Read stored messages by their numbers, whether or not they are still sent."""

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Max, Min, QuerySet, Subquery
from django.utils import timezone

from chatcore.context.live_messages import load_current_seqs
from chatcore.models import ContextEdit, ContextRevision, Message, Session, UserPreferences

BATCH_SIZE = 500  # numbers that one statement names
RECENT = timedelta(hours=1)
RECENT_MESSAGES = 100  # at most


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceMessage:
    """A message of the user or a tool as it is stored, without its files."""

    seq: int
    role: str
    text: str


def load_source_messages(
    session_id: UUID, *, after_seq: int, up_to_seq: int, limit: int
) -> list[SourceMessage]:
    """Return the first current messages of users and tools in a range, in order.

    `after_seq` is excluded, `up_to_seq` included. Messages that are not complete are left out.
    """
    messages = (
        Message.objects.filter(session=session_id, seq__gt=after_seq, seq__lte=up_to_seq)
        .filter(branch=None, role__in=[Message.Role.USER, Message.Role.TOOL])
        .exclude(status__in=[Message.Status.STREAMING, Message.Status.FAILED])
    )
    return [
        SourceMessage(seq=seq, role=role, text=text)
        for seq, role, text in messages.order_by("seq").values_list("seq", "role", "content")[
            :limit
        ]
    ]


def lock_session(session_id: UUID) -> bool:
    """Lock the session's row to the end of the transaction. False if it is deleted."""
    try:
        Session.objects.lock(session_id)
    except Session.DoesNotExist:
        return False
    return True


def list_current_seqs(session_id: UUID, first_seq: int, last_seq: int) -> frozenset[int]:
    """Return the numbers of the messages in a range that are current."""
    return frozenset(load_current_seqs(session_id, first_seq, last_seq))


def map_message_ids(session_id: UUID, seqs: Collection[int]) -> dict[int, int]:
    """Return the id of each message that exists, by its number."""
    ids: dict[int, int] = {}
    for messages in _query_batches(session_id, seqs):
        ids.update(messages.values_list("seq", "id"))
    return ids


def _query_batches(session_id: UUID, seqs: Collection[int]) -> Iterator[QuerySet[Message]]:
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


def load_time_zone(owner_pk: int | None) -> tzinfo:
    """Return the time zone of a user."""
    names = UserPreferences.objects.filter(pk=owner_pk).values_list("time_zone", flat=True)
    return find_time_zone(names.first())


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
    for messages in _query_batches(session_id, seqs):
        times = messages.annotate(zone=select_time_zone(session_id))
        values = times.values_list("seq", "created_at", "zone")
        days.update((seq, find_day(created_at, zone)) for seq, created_at, zone in values)
    return days


def find_recent_seq(session_id: UUID) -> int | None:
    """Return the number of the first message within an hour before the newest one."""
    messages = Message.objects.filter(session=session_id, branch=None).order_by("-seq")
    times = list(messages.values_list("seq", "created_at")[:RECENT_MESSAGES])
    return min((seq for seq, at in times if at >= times[0][1] - RECENT), default=None)


def load_period(session_id: UUID, first_seq: int, last_seq: int) -> tuple[date, date] | None:
    """Return the first and the last day of the messages in a range; None if there are none."""
    rows = Message.objects.filter(session=session_id, seq__gte=first_seq, seq__lte=last_seq)
    times = rows.order_by().aggregate(
        first=Min("created_at"), last=Max("created_at"), zone=Max(select_time_zone(session_id))
    )
    if times["first"] is None:
        return None
    return find_day(times["first"], times["zone"]), find_day(times["last"], times["zone"])


def find_message_seq(session_id: UUID, message_id: int) -> int | None:
    """Return the number of the session's message with this id; None if there is none."""
    messages = Message.objects.filter(session=session_id, pk=message_id)
    return messages.values_list("seq", flat=True).first()


def list_shortened_seqs(session_id: UUID, *, first_seq: int) -> frozenset[int]:
    """Return the numbers of messages from `first_seq` on that are sent in another form."""
    edits = ContextEdit.objects.filter(
        session=session_id, until_version=None, message__seq__gte=first_seq
    )
    return frozenset(edits.values_list("message__seq", flat=True))


def erase_background(session_id: UUID, texts: Collection[str]) -> None:
    """Clear the background of every revision that holds one of these texts."""
    for text in texts:
        revisions = ContextRevision.objects.filter(session=session_id)
        revisions.filter(background__contains=text).update(background="")
