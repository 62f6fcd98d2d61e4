"""The statements of the hot path, which are written by hand, and what others need to run theirs.

To compile these, and to decode what they return, the ORM takes 3 to 10 ms of processor time, of
which a request may take 3 and the check after an answer 5 (docs/decisions/0009). They are the
numbers of a message and of events, the context with its live messages, the facts of a measurement,
and what stores words. Each but the first, which the ORM cannot say, stands beside the query that it
replaces, in a comment; tests/chatcore/test_context_queries.py, tests/chatcore/test_events.py and
tests/compaction/test_queries.py compare them. What the ORM cannot say elsewhere stands where it is
used, as the statements of the search, which run by `fetch_rows`.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from chatcore.extension import get_extensions
from chatcore.models import CHAT_COLUMNS, Session

_SESSIONS = Session._meta.db_table


def to_uuid(value: UUID | str) -> UUID:
    """Return what the database stores as a UUID."""
    return value if isinstance(value, UUID) else UUID(value)


def to_time(value: datetime | str) -> datetime:
    """Return what the database stores as a time; SQLite has it without a zone, perhaps as text."""
    time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# Session.objects.filter(pk=session_id) with its session.revisions.filter(version=context_version).
# `has_files`: Attachment.objects.filter(session=session_id, kind="file", message__isnull=False).
# `has_edits`: ContextEdit.objects.filter(session=session_id, until_version=None).
# `has_outputs`: Attachment.objects.filter(session=session_id, kind="output").
# `has_tool_limits`: whether an app may limit anybody's tools (Extension.tool_limits_sql).
# `needs_pre_request`: whether an app has something to do before a request (pre_request_sql).
# `recalled`: Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES).
_CONTEXT_SQL = """
    SELECT
        session.context_version AS context_version,
        session.compacted_summary AS compacted_summary,
        session.compact_boundary_seq AS compact_boundary_seq,
        revision.kept_seqs AS kept_seqs,
        revision.background AS background,
        revision.placement AS placement,
        EXISTS (
            SELECT 1 FROM chatcore_attachment file
            WHERE file.session_id = session.id AND file.kind = 'file'
                AND file.message_id IS NOT NULL
        ) AS has_files,
        EXISTS (
            SELECT 1 FROM chatcore_contextedit edit
            WHERE edit.session_id = session.id AND edit.until_version IS NULL
        ) AS has_edits,
        EXISTS (
            SELECT 1 FROM chatcore_attachment file
            WHERE file.session_id = session.id AND file.kind = 'output'
        ) AS has_outputs,
        {tool_limits} AS has_tool_limits,
        {pre_request} AS needs_pre_request,
        (
            SELECT turn.recalled FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status IN ('running', 'waiting')
            LIMIT 1
        ) AS recalled
    FROM chatcore_session session
    LEFT JOIN chatcore_contextrevision revision
        ON revision.session_id = session.id AND revision.version = session.context_version
    WHERE session.id = %s AND session.discard_at IS NULL
"""
_CONTEXT_CONVERTERS: dict[str, Callable[[Any], object]] = {
    "kept_seqs": json.loads,
    "placement": json.loads,
    "has_files": bool,
    "has_edits": bool,
    "has_outputs": bool,
    "has_tool_limits": bool,
    "needs_pre_request": bool,
    "recalled": json.loads,
}

MESSAGE_COLUMNS = ("id", *CHAT_COLUMNS, "provider_data", "token_estimate", "pinned")
# The values of these columns. SQLite has numbers for booleans; both databases have text for JSON.
MessageRow = tuple[Any, ...]
get_seq = itemgetter(MESSAGE_COLUMNS.index("seq"))

# Message.objects.filter(session=session_id, branch=None).exclude(status__in=["streaming",
#     "failed"]).exclude(role="system").values_list(*MESSAGE_COLUMNS)
_SENDABLE_SQL = f"""
    SELECT {", ".join(MESSAGE_COLUMNS)}
    FROM chatcore_message
    WHERE session_id = %s AND branch IS NULL AND status NOT IN ('streaming', 'failed')
        AND role <> 'system'
"""  # noqa: S608
# query_live_messages() in tests/chatcore/test_context_queries.py: three queries of one index each,
# whose rows exclude each other. Databases answer an OR over three indexes by reading
# the whole session.
_LATE_SQL = f"{_SENDABLE_SQL} AND seq >= %s"
_PINNED_SQL = f"{_SENDABLE_SQL} AND seq < %s AND pinned"
_KEPT_SQL = f"{_SENDABLE_SQL} AND NOT pinned AND seq IN ({{seqs}})"

# How far back the last usage and the newest prompt are looked for. Without a limit, a model that
# never counts would have the whole history read after each answer. What is further away says
# little: the estimate of everything after it would be larger than the count itself.
NEWEST_SEQS = 500

# The current messages of `session` from its boundary on, as far as they are looked through.
_NEWEST_MESSAGES = f"""
    FROM chatcore_message message
    WHERE message.session_id = session.id AND message.branch IS NULL
        AND message.seq >= COALESCE(session.compact_boundary_seq, 0)
        AND message.seq > session.last_seq - {NEWEST_SEQS}
"""
# Session.objects.filter(pk=session_id).values(...), with the revision in force, whether there are
# attachments, the open turn, and the newest messages as subqueries:
# messages = session.messages.filter(seq__gte=boundary_seq, seq__gt=last_seq - NEWEST_SEQS)
#     .exclude_superseded().order_by("-seq")
# answer = messages.filter(context_version=version, model=model, token_count_input__gt=0).first()
# prompt = messages.filter(role="user").first()
# A running turn may be answered by another model than the session's. What is no join is a subquery,
# because PostgreSQL takes longer to plan many joins than to run them.
_SESSION_SQL = f"""
    SELECT
        session.owner_id AS owner_id,
        session.policy AS policy,
        session.auto_compact AS auto_compact,
        session.compact_threshold AS compact_threshold,
        session.params AS params,
        session.tools AS tools,
        session.message_count AS message_count,
        session.last_seq AS last_seq,
        session.context_version AS context_version,
        session.compacted_summary AS compacted_summary,
        session.compact_boundary_seq AS compact_boundary_seq,
        LENGTH(session.system_prompt) AS system_chars,
        session.project_id AS project_id,
        session.overhead_since AS overhead_since,
        EXISTS (SELECT 1 FROM chatcore_attachment file WHERE file.session_id = session.id)
            AS has_attachments,
        EXISTS (SELECT 1 FROM chatcore_attachment file
            WHERE file.session_id = session.id AND file.kind = 'output') AS has_outputs,
        {{tool_limits}} AS has_tool_limits,
        (SELECT turn.tools FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status IN ('running', 'waiting')
            LIMIT 1) AS turn_tools,
        (SELECT turn.recalled FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status IN ('running', 'waiting')
            LIMIT 1) AS recalled,
        model.name AS model_name,
        provider.name AS provider_name,
        provider.family AS family,
        provider.options AS provider_options,
        model.policy AS model_policy,
        model.context_window_size AS context_window_size,
        model.max_input_tokens AS max_input_tokens,
        model.output_reserve AS output_reserve,
        model.supports_tools AS supports_tools,
        model.supports_images AS supports_images,
        (SELECT summary_provider.name || '/' || summary_model.name
            FROM models_registry_aimodel summary_model
            JOIN models_registry_provider summary_provider
                ON summary_provider.id = summary_model.provider_id
            WHERE summary_model.id = model.summary_model_id) AS summary_model_name,
        revision.source AS revision_source,
        revision.kept_seqs AS kept_seqs,
        revision.background AS background,
        revision.placement AS placement,
        answer.seq AS usage_seq,
        answer.token_count_input AS usage_input,
        answer.token_count_output AS usage_output,
        answer.created_at AS usage_at,
        (SELECT message.token_estimate {_NEWEST_MESSAGES} AND message.role = 'user'
            ORDER BY message.seq DESC LIMIT 1) AS newest_prompt_tokens
    FROM chatcore_session session
    LEFT JOIN models_registry_aimodel model ON model.id = COALESCE(
        (SELECT turn.model_id FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status = 'running'),
        session.model_id)
    LEFT JOIN models_registry_provider provider ON provider.id = model.provider_id
    LEFT JOIN chatcore_contextrevision revision
        ON revision.session_id = session.id AND revision.version = session.context_version
    LEFT JOIN chatcore_message answer ON answer.id = (
        SELECT message.id {_NEWEST_MESSAGES}
            AND message.context_version = session.context_version
            AND message.model = provider.name || '/' || model.name
            AND message.token_count_input > 0
        ORDER BY message.seq DESC LIMIT 1)
    WHERE session.id = %s AND session.discard_at IS NULL
"""  # noqa: S608
_SESSION_CONVERTERS: dict[str, Callable[[Any], object]] = {
    "project_id": to_uuid,
    "overhead_since": to_time,
    "usage_at": to_time,
    "auto_compact": bool,
    "has_attachments": bool,
    "has_outputs": bool,
    "has_tool_limits": bool,
    "supports_tools": bool,
    "supports_images": bool,
    "params": json.loads,
    "provider_options": json.loads,
    "tools": json.loads,
    "turn_tools": json.loads,
    "recalled": json.loads,
    "kept_seqs": json.loads,
    "placement": json.loads,
}


# Turn.objects.filter(pk=turn_id, status="running").select_for_update(no_key=True, of=("self",))
#     .values_list("cancel_requested", *MEASURED_COLUMNS of the session)
# Of a session, these decide about the size of its context and what is done about it.
MEASURED_COLUMNS = (
    "context_version",
    "overhead_since",
    "policy",
    "auto_compact",
    "compact_threshold",
    "params",
    "model_id",
    "project_id",
)
_RUNNING_TURN_SQL = f"""
    SELECT turn.cancel_requested AS cancel_requested,
        {", ".join(f"session.{name} AS {name}" for name in MEASURED_COLUMNS)}
    FROM chatcore_turn turn
    JOIN chatcore_session session ON session.id = turn.session_id
    WHERE turn.id = %s AND turn.status = 'running'
"""  # noqa: S608
_RUNNING_TURN_CONVERTERS: dict[str, Callable[[Any], object]] = {
    "cancel_requested": bool,
    "overhead_since": to_time,
    "auto_compact": bool,
    "params": json.loads,
    "project_id": to_uuid,
}
# Turn.objects.filter(pk__in=ids, status="running").select_related("session").select_for_update(
#     no_key=True, skip_locked=True, of=("self", "session"))
_FREE_TURNS_SQL = """
    SELECT turn.id
    FROM chatcore_turn turn
    JOIN chatcore_session session ON session.id = turn.session_id
    WHERE turn.id IN ({ids}) AND turn.status = 'running'
"""
# SessionEvent.objects.bulk_create(rows)
_EVENTS_SQL = """
    INSERT INTO chatcore_sessionevent (owner_id, session_id, seq, name, message, data, at) VALUES
"""
_ROWS_AT_ONCE = 100  # SQLite limits the parameters of a statement


class EventRow(NamedTuple):
    """A row of the event log."""

    owner_id: object
    session_id: Any
    seq: int
    name: str
    message: int | None
    data: Any
    at: Any


class NewRows(NamedTuple):
    """How many rows of a session are about to be stored."""

    events: int
    messages: int = 0


class Numbers(NamedTuple):
    """The last number that a session has given to a message, and to an event; and its owner."""

    seq: int
    event_seq: int
    owner_id: int


def reserve_numbers(
    new_rows: Mapping[UUID, NewRows], *, used_at: datetime | None = None
) -> dict[UUID, Numbers]:
    """Take the next numbers of so many events and messages in each session.

    `used_at` moves the sessions to the top of their owners' lists. Hidden and deleted sessions are
    left out. This locks the sessions' rows until the transaction ends, so nobody takes a number
    twice, and events become visible in the order of theirs: a reader that asks for everything after
    a number can miss none.
    """
    if not new_rows:
        return {}
    uuid_type = "::uuid" if connection.vendor == "postgresql" else ""
    rows = ", ".join([f"(%s{uuid_type}, %s, %s)"] * len(new_rows))
    statement = f"""
        UPDATE {_SESSIONS}
        SET last_event_seq = last_event_seq + new.column2,
            last_seq = last_seq + new.column3,
            message_count = message_count + new.column3,
            updated_at = COALESCE(%s, updated_at)
        FROM (VALUES {rows}) AS new
        WHERE {_SESSIONS}.id = new.column1 AND {_SESSIONS}.discard_at IS NULL
        RETURNING {_SESSIONS}.id, last_seq, last_event_seq, owner_id
    """  # noqa: S608
    used_at_value = connection.ops.adapt_datetimefield_value(used_at)
    parameters: list[object] = [used_at_value]
    for session_id, counts in new_rows.items():
        parameters += (adapt_uuid(session_id), counts.events, counts.messages)
    return {
        to_uuid(row_id): Numbers(*numbers) for row_id, *numbers in fetch_rows(statement, parameters)
    }


def lock_running_turn(turn_id: UUID) -> dict[str, Any] | None:
    """Lock a turn if it runs; return `cancel_requested` and its session's MEASURED_COLUMNS."""
    statement = _RUNNING_TURN_SQL
    if connection.features.has_select_for_update:
        statement += " FOR NO KEY UPDATE OF turn"
    return _fetch_row(statement, [adapt_uuid(turn_id)], _RUNNING_TURN_CONVERTERS)


def lock_free_turns(turn_ids: Collection[UUID]) -> set[UUID]:
    """Lock these turns with their sessions, and return those that run and are free.

    Rows that another transaction has locked are left out: a long one must not hold up the answers
    of all other sessions. Who never waits is in no deadlock either, so the order of the rows does
    not matter here. SQLite locks the whole database when the transaction begins.
    """
    statement = _FREE_TURNS_SQL.format(ids=_build_placeholders(turn_ids))
    if connection.features.has_select_for_update:
        statement += " FOR NO KEY UPDATE OF turn, session SKIP LOCKED"
    rows = fetch_rows(statement, [adapt_uuid(turn_id) for turn_id in turn_ids])
    return {to_uuid(row_id) for (row_id,) in rows}


def insert_events(rows: Sequence[EventRow]) -> None:
    """Insert rows into the event log. `data` is stored as JSON."""
    cast = "::jsonb" if connection.vendor == "postgresql" else ""
    place = f"(%s, %s, %s, %s, %s, %s{cast}, %s)"
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = rows[start : start + _ROWS_AT_ONCE]
        parameters: list[Any] = [
            value
            for row in batch
            for value in row._replace(
                session_id=adapt_uuid(row.session_id),
                data=json.dumps(row.data),
                at=connection.ops.adapt_datetimefield_value(row.at),
            )
        ]
        with connection.cursor() as cursor:
            cursor.execute(f"{_EVENTS_SQL} {', '.join([place] * len(batch))}", parameters)


def load_context_row(session_id: UUID) -> dict[str, Any] | None:
    """Return what decides about the next request of a session; None if the session is deleted."""
    statement = _add_conditions(_CONTEXT_SQL)
    return _fetch_row(statement, [adapt_uuid(session_id)], _CONTEXT_CONVERTERS)


def load_live_rows(
    session_id: UUID, boundary_seq: int | None, kept_seqs: Collection[int]
) -> list[MessageRow]:
    """Return the messages from the boundary on, pinned ones and kept ones, in order."""
    session_key = adapt_uuid(session_id)
    if not boundary_seq:
        return _fetch_in_order(_SENDABLE_SQL, [session_key])
    statements = [_LATE_SQL, _PINNED_SQL]
    parameters = [session_key, boundary_seq] * 2
    # Compared here: with `seq <` in the statement, SQLite walks through all early messages.
    early_seqs = [seq for seq in kept_seqs if seq < boundary_seq]
    if early_seqs:
        statements.append(_KEPT_SQL.format(seqs=_build_placeholders(early_seqs)))
        parameters += [session_key, *early_seqs]
    return _fetch_in_order(" UNION ALL ".join(statements), parameters)


def load_measured_row(session_id: UUID) -> dict[str, Any] | None:
    """Return columns of a session, its models, its open turn, its revision and newest messages.

    None if the session is deleted.
    """
    statement = _add_conditions(_SESSION_SQL)
    return _fetch_row(statement, [adapt_uuid(session_id)], _SESSION_CONVERTERS)


@cache
def _add_conditions(statement: str) -> str:
    extensions = get_extensions()
    tool_limits = [each.tool_limits_sql for each in extensions if each.tool_limits_sql]
    pre_request = [each.pre_request_sql for each in extensions if each.pre_request_sql]
    return statement.format(
        tool_limits=" OR ".join(tool_limits) or "FALSE",
        pre_request=" OR ".join(pre_request) or "FALSE",
    )


def fetch_rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a statement, with the values as the database gives them.

    SQLite has numbers for booleans, and both databases give JSON as text.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def adapt_uuid(value: UUID) -> object:
    """Return a UUID as the database takes it: as text for SQLite, unchanged for PostgreSQL."""
    return value if connection.features.has_native_uuid_field else value.hex


def _fetch_in_order(statement: str, parameters: Sequence[object]) -> list[MessageRow]:
    # The rows come in a few runs that are in order already, so this sort costs almost nothing.
    return sorted(fetch_rows(statement, parameters), key=get_seq)


def _build_placeholders(values: Collection[object]) -> str:
    return ", ".join(["%s"] * len(values)) or "NULL"


def _fetch_row(
    statement: str, parameters: Sequence[Any], converters: Mapping[str, Callable[[Any], object]]
) -> dict[str, object] | None:
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
    for name, convert in converters.items():
        if row[name] is not None:
            row[name] = convert(row[name])
    return row
