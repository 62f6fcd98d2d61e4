"""Run the statements that store events, written by hand.

The ORM takes longer to compile them than the database to run them, and answers store several times
a second. tests/chatcore/test_events.py compares what they store with what the ORM reads.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from chatcore.events.types import DELTA_EVENTS, Event
from chatcore.models import Session, SessionEvent
from chatcore.statements import adapt_uuids, fetch_rows

_SESSIONS = Session._meta.db_table
_EVENTS = SessionEvent._meta.db_table
ROWS_AT_ONCE = 1_000  # six parameters each; SQLite allows 32,766 in a statement


def reserve_numbers(event_counts: Mapping[UUID, int]) -> dict[UUID, int]:
    """Take the next event numbers of each session; return the last number taken.

    Hidden and deleted sessions are left out. This locks the sessions' rows until the transaction
    ends, so events become visible in the order of their numbers: a reader that asks for everything
    after a number can miss none.
    """
    ids = adapt_uuids(event_counts)
    uuid_type = "::uuid" if connection.vendor == "postgresql" else ""
    rows = ", ".join([f"(%s{uuid_type}, %s)"] * len(ids))
    statement = f"""
        WITH new (id, event_count) AS (VALUES {rows})
        UPDATE {_SESSIONS}
        SET last_event_seq = last_event_seq + new.event_count
        FROM new
        WHERE {_SESSIONS}.id = new.id AND {_SESSIONS}.discard_at IS NULL
        RETURNING {_SESSIONS}.id, last_event_seq
    """  # noqa: S608
    parameters = [
        value for row_id, session_id in ids.items() for value in (row_id, event_counts[session_id])
    ]
    return {ids[row_id]: last_seq for row_id, last_seq in fetch_rows(statement, parameters)}


def insert_events(events: Sequence[Event]) -> None:
    """Store events whose numbers are reserved."""
    json_type = "::jsonb" if connection.vendor == "postgresql" else ""
    row = f"(%s, %s, %s, %s, %s{json_type}, %s)"
    for start in range(0, len(events), ROWS_AT_ONCE):
        part = events[start : start + ROWS_AT_ONCE]
        statement = f"""
            INSERT INTO {_EVENTS} (session_id, seq, name, message, data, at)
            VALUES {", ".join([row] * len(part))}
        """  # noqa: S608
        with connection.cursor() as cursor:
            cursor.execute(statement, _list_values(part))


def _list_values(events: Sequence[Event]) -> list[Any]:
    """Return the values of all rows, one after the other."""
    adapted_ids = adapt_uuids(event.session for event in events)
    row_ids = {session_id: row_id for row_id, session_id in adapted_ids.items()}
    # Events that are stored together have one time.
    adapt_time = functools.cache(connection.ops.adapt_datetimefield_value)
    values: list[Any] = []
    for event in events:
        message_id = event.data["message"] if event.name in DELTA_EVENTS else None
        values += (
            row_ids[event.session],
            event.seq,
            event.name,
            message_id,
            json.dumps(event.data),
            adapt_time(event.at),
        )
    return values
