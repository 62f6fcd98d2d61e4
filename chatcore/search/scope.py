"""What a search may see: the messages of one session, or those of one user's sessions."""

from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import connection

from chatcore.models.statements import adapt_uuid, fetch_rows, to_uuid
from chatcore.search.tables import mark_owner, mark_session

MAX_MARKS = 100  # sessions of a user that are looked for by their terms; more take longer than rows

_SESSION_SIZE_SQL = "SELECT last_seq FROM chatcore_session WHERE id = %s"
_OWNER_SIZE_SQL = "SELECT sum(last_seq) FROM chatcore_session WHERE owner_id = %s"
_NEWEST_ID_SQL = """
    SELECT id FROM chatcore_message WHERE session_id = %s AND seq < %s ORDER BY seq DESC LIMIT 1
"""
# A temporary session is searched in itself only.
_OWN_SESSIONS = (
    "(SELECT id FROM chatcore_session WHERE owner_id = %s AND discard_at IS NULL AND NOT temporary)"
)
_SESSIONS_SQL = f"{_OWN_SESSIONS.strip('()')} LIMIT {MAX_MARKS + 1}"
_MAX_ID = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The messages of a session, or of a user if it is None, with ids up to `newest_id`."""

    session_id: UUID | None = None
    owner_id: object = None
    newest_id: int = _MAX_ID

    @property
    def condition(self) -> str:
        """The SQL condition on the rows named `message`, with one parameter."""
        if self.session_id is not None:
            return "message.session_id = %s"
        # An array is built once; PostgreSQL's planner may take a join the other way around, and
        # look for a word again in each session.
        membership = (
            "= ANY (ARRAY{sessions})" if connection.vendor == "postgresql" else "IN {sessions}"
        )
        return f"message.session_id {membership.format(sessions=_OWN_SESSIONS)}"

    @cached_property
    def marks(self) -> list[str]:
        """The terms of all sessions of the scope; empty if it has too many."""
        if self.session_id is not None:
            return [mark_session(self.session_id)]
        keys = [row[0] for row in fetch_rows(_SESSIONS_SQL, [self.parameter])]
        return [mark_session(to_uuid(key)) for key in keys] if len(keys) <= MAX_MARKS else []

    @property
    def mark(self) -> str:
        """The one term that all messages of the scope have in PostgreSQL's tables, and no others.

        It is a query of its own.
        """
        if self.session_id is not None:
            return mark_session(self.session_id)
        return f"'{mark_owner(self.owner_id)}'"

    @property
    def parameter(self) -> object:
        """The parameter of the condition."""
        if self.session_id is not None:
            return adapt_uuid(self.session_id)
        return get_user_model()._meta.pk.get_db_prep_value(self.owner_id, connection)

    def count_messages(self) -> int:
        """Return about how many messages there are, superseded ones included."""
        statement = _OWNER_SIZE_SQL if self.session_id is None else _SESSION_SIZE_SQL
        rows = fetch_rows(statement, [self.parameter])
        return int(rows[0][0] or 0) if rows else 0


def find_newest_id(session_id: UUID, up_to_seq: int) -> int:
    """Return the id of the newest message before `up_to_seq`, 0 if there is none."""
    rows = fetch_rows(_NEWEST_ID_SQL, [adapt_uuid(session_id), up_to_seq])
    return rows[0][0] if rows else 0
