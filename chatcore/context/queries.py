"""Run the statements that every request needs, written by hand.

The ORM takes ten times longer to compile them than the database takes to run them. Each stands
beside the query of the ORM that it replaces, in a comment; tests/chatcore/test_context_queries.py
compares both.
"""

import json
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any
from uuid import UUID

from chatcore.models import CHAT_COLUMNS
from chatcore.statements import adapt_uuid, fetch_row, fetch_rows

# Session.objects.filter(pk=session_id) with its session.revisions.filter(version=context_version).
# `has_files`: Attachment.objects.filter(session=session_id, kind="file", message__isnull=False).
# `has_edits`: ContextEdit.objects.filter(session=session_id, until_version=None).
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
_CONTEXT_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "kept_seqs": json.loads,
    "placement": json.loads,
    "has_files": bool,
    "has_edits": bool,
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
# live_messages.query_live_messages(session_id, boundary_seq, kept_seqs): three queries of one
# index each, whose rows exclude each other. Databases answer an OR over three indexes by reading
# the whole session.
_LATE_SQL = f"{_SENDABLE_SQL} AND seq >= %s"
_PINNED_SQL = f"{_SENDABLE_SQL} AND seq < %s AND pinned"
_KEPT_SQL = f"{_SENDABLE_SQL} AND NOT pinned AND seq IN ({{seqs}})"
_LISTED_SQL = f"{_SENDABLE_SQL} AND seq IN ({{seqs}})"

# Message.objects.filter(session=session_id, seq__in=seqs).values_list(*CHAT_COLUMNS)
_CHAT_SQL = f"""
    SELECT {", ".join(CHAT_COLUMNS)}
    FROM chatcore_message
    WHERE session_id = %s AND seq IN ({{seqs}})
"""  # noqa: S608
_SEQS_PER_STATEMENT = 1000

# ContextEdit.objects.filter(session=session_id, until_version=None).filter(
#     Q(message__seq__gte=boundary_seq) | Q(message_id__in=early_ids))
# Both begin with the messages: edits of what was summarized since stay in force, by thousands.
_LATE_EDITS_SQL = """
    SELECT edit.message_id, edit.kind, edit.replacement
    FROM chatcore_message message
    JOIN chatcore_contextedit edit ON edit.message_id = message.id AND edit.until_version IS NULL
    WHERE message.session_id = %s AND message.seq >= %s
"""
_EARLY_EDITS_SQL = """
    SELECT message_id, kind, replacement
    FROM chatcore_contextedit
    WHERE until_version IS NULL AND message_id IN ({ids})
"""

# Message.objects.filter(session=session_id, seq__range=...).values_list("seq"), and those of them
# with exclude(branch=None). Together they say what is current, and each is answered by an index
# alone; a single one with both conditions reads every message's row.
_STORED_SEQS_SQL = (
    "SELECT seq FROM chatcore_message WHERE session_id = %s AND seq BETWEEN %s AND %s"
)
_SUPERSEDED_SEQS_SQL = (
    "SELECT seq FROM chatcore_message WHERE session_id = %s AND branch IS NOT NULL"
)

# Attachment.objects.filter(session=session_id, kind="output").exists()
_STORED_OUTPUT_SQL = """
    SELECT 1 FROM chatcore_attachment WHERE session_id = %s AND kind = 'output' LIMIT 1
"""


def load_context_row(session_id: UUID) -> dict[str, Any] | None:
    """Return what decides about the next request of a session; None if the session is deleted."""
    return fetch_row(_CONTEXT_SQL, [adapt_uuid(session_id)], _CONTEXT_CONVERTERS)


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


def load_listed_rows(session_id: UUID, seqs: Collection[int]) -> list[MessageRow]:
    """Return those of the messages with these numbers that may be sent, in order."""
    statement = _LISTED_SQL.format(seqs=_build_placeholders(seqs))
    return _fetch_in_order(statement, [adapt_uuid(session_id), *seqs])


def load_chat_rows(session_id: UUID, seqs: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return the CHAT_COLUMNS of the messages with these numbers, superseded ones too."""
    rows: list[tuple[Any, ...]] = []
    for start in range(0, len(seqs), _SEQS_PER_STATEMENT):
        part = seqs[start : start + _SEQS_PER_STATEMENT]
        statement = _CHAT_SQL.format(seqs=_build_placeholders(part))
        rows += fetch_rows(statement, [adapt_uuid(session_id), *part])
    return rows


def load_edit_rows(
    session_id: UUID, boundary_seq: int | None, early_ids: Collection[int]
) -> list[tuple[int, str, str]]:
    """Return message id, kind and replacement of the edits in force.

    They are those of messages from the boundary on, and of the messages with these ids.
    """
    statement = _LATE_EDITS_SQL
    parameters = [adapt_uuid(session_id), boundary_seq or 0]
    if early_ids:
        early_statement = _EARLY_EDITS_SQL.format(ids=_build_placeholders(early_ids))
        statement = f"{statement} UNION {early_statement}"
        parameters += early_ids
    return fetch_rows(statement, parameters)


def load_current_seqs(session_id: UUID, first_seq: int, last_seq: int) -> set[int]:
    """Return the numbers of the messages in a range that were neither superseded nor deleted."""
    session_key = adapt_uuid(session_id)
    stored_rows = fetch_rows(_STORED_SEQS_SQL, [session_key, first_seq, last_seq])
    superseded_rows = fetch_rows(_SUPERSEDED_SEQS_SQL, [session_key])
    return {seq for (seq,) in stored_rows} - {seq for (seq,) in superseded_rows}


def has_stored_outputs(session_id: UUID) -> bool:
    """Return True if a tool's whole output is stored in the session."""
    return bool(fetch_rows(_STORED_OUTPUT_SQL, [adapt_uuid(session_id)]))


def _fetch_in_order(statement: str, parameters: Sequence[Any]) -> list[MessageRow]:
    # The rows come in a few runs that are in order already, so this sort costs almost nothing.
    return sorted(fetch_rows(statement, parameters), key=get_seq)


def _build_placeholders(values: Collection[int]) -> str:
    return ", ".join(["%s"] * len(values)) or "NULL"
