"""Run statements that are written by hand, where the ORM takes longer than the database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from chatcore.models import Session

_SESSIONS = Session._meta.db_table


class Numbers(NamedTuple):
    """The last number that a session has given to a message, and to an event."""

    seq: int
    event_seq: int


def reserve_numbers(
    event_counts: Mapping[UUID, int], *, message_count: int = 0, used_at: datetime | None = None
) -> dict[UUID, Numbers]:
    """Take the next numbers of so many events in each session, and of its messages.

    `used_at` moves the sessions to the top of their owners' lists. Hidden and deleted sessions are
    left out. This locks the sessions' rows until the transaction ends, so nobody takes a number
    twice, and events become visible in the order of theirs: a reader that asks for everything after
    a number can miss none.
    """
    uuid_type = "::uuid" if connection.vendor == "postgresql" else ""
    rows = ", ".join([f"(%s{uuid_type}, %s)"] * len(event_counts))
    statement = f"""
        UPDATE {_SESSIONS}
        SET last_seq = last_seq + %s,
            message_count = message_count + %s,
            last_event_seq = last_event_seq + new.column2,
            updated_at = COALESCE(%s, updated_at)
        FROM (VALUES {rows}) AS new
        WHERE {_SESSIONS}.id = new.column1 AND {_SESSIONS}.discard_at IS NULL
        RETURNING {_SESSIONS}.id, last_seq, last_event_seq
    """  # noqa: S608
    used_at_value = connection.ops.adapt_datetimefield_value(used_at)
    parameters: list[Any] = [message_count, message_count, used_at_value]
    for session_id, event_count in event_counts.items():
        parameters += (adapt_uuid(session_id), event_count)
    return {
        to_uuid(row_id): Numbers(seq, event_seq)
        for row_id, seq, event_seq in fetch_rows(statement, parameters)
    }


def fetch_rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a statement, with the values as the database gives them.

    SQLite has numbers for booleans, and both databases give JSON as text.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def fetch_row(
    statement: str,
    parameters: Sequence[Any],
    converters: Mapping[str, Callable[[Any], Any]] | None = None,
) -> dict[str, Any] | None:
    """Return the first row of a statement by the names of its columns, or None if there is no row.

    `converters` has a function for each column that the database gives in another form; it is
    applied unless the value is NULL.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        values = cursor.fetchone()
        names = [column[0] for column in cursor.description]
    if values is None:
        return None
    row = dict(zip(names, values, strict=True))
    for name, convert in (converters or {}).items():
        if row[name] is not None:
            row[name] = convert(row[name])
    return row


def adapt_uuid(value: UUID) -> Any:
    """Return a UUID as the database takes it: as text for SQLite, unchanged for PostgreSQL."""
    return value if connection.features.has_native_uuid_field else value.hex


def to_uuid(value: Any) -> UUID:
    """Return what the database stores as a UUID."""
    return value if isinstance(value, UUID) else UUID(value)


def to_time(value: Any) -> datetime:
    """Return what the database stores as a time; SQLite has it without a zone, perhaps as text."""
    time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def adapt_uuids(values: Iterable[UUID]) -> dict[Any, UUID]:
    """Return UUIDs by the form in which the database takes and gives them."""
    if connection.features.has_native_uuid_field:
        return {value: value for value in values}
    return {value.hex: value for value in values}
