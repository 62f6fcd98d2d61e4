"""Read the texts of messages that may answer a question: words, tool calls and attached files."""

# ruff: noqa: S608  (the parts of statements are constants; values are parameters)

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from chatcore.models.statements import fetch_rows, to_uuid
from chatcore.search.scope import Scope
from chatcore.search.tables import MAX_FILE_CHARS

SEARCH_TOOL_NAME = "search_history"  # not searched: its results repeat other messages
MAX_TEXT_CHARS = 300_000  # of a message
MAX_READ_CHARS = 1_000_000  # of all messages of one search

_COLUMNS = f"""
    message.id, message.session_id, message.seq, message.role,
    substr(message.content, 1, {MAX_TEXT_CHARS}), message.tool_calls, message.created_at
"""
_CURRENT = f"message.branch IS NULL AND message.tool_name <> '{SEARCH_TOOL_NAME}'"
_LISTED_SQL = f"""
    SELECT {_COLUMNS} FROM chatcore_message message
    WHERE message.id IN ({{ids}}) AND {_CURRENT} AND {{condition}}
"""
_PLACES_SQL = f"""
    WITH places(session_id, seq) AS (VALUES {{places}})
    SELECT {_COLUMNS}
    FROM places CROSS JOIN chatcore_message message
    WHERE message.session_id = places.session_id AND message.seq = places.seq
        AND message.id <= %s AND {_CURRENT} AND {{condition}}
"""
_FILES_SQL = f"""
    SELECT message_id, name, substr(text, 1, {MAX_FILE_CHARS})
    FROM chatcore_attachment
    WHERE message_id IN ({{ids}}) AND kind = 'file'
    ORDER BY created_at, id
"""


@dataclass(frozen=True, kw_only=True)
class TextRow:
    """A message with the text that is searched: its own, and that of its tool calls.

    `session_key` is its session's id as the database has it.
    """

    id: int
    session_key: UUID | str
    seq: int
    role: str
    content: str
    calls: str
    created_at: datetime

    @property
    def session_id(self) -> UUID:
        """The id of its session."""
        return to_uuid(self.session_key)

    @property
    def text(self) -> str:
        """The whole text that is searched."""
        return f"{self.content}\n{self.calls}" if self.calls else self.content


def load_texts(scope: Scope, ids: Sequence[int]) -> dict[int, TextRow]:
    """Return the current messages of the scope with these ids, by id.

    Of very long ones the first are read, MAX_READ_CHARS together.
    """
    if not ids:
        return {}
    statement = _LISTED_SQL.format(ids=", ".join(["%s"] * len(ids)), condition=scope.condition)
    rows = _build_rows(fetch_rows(statement, [*ids, scope.parameter]))
    return _bound_chars(rows[pk] for pk in ids if pk in rows)


def load_neighbours(
    scope: Scope, centers: Collection[tuple[object, int]], distance: int
) -> dict[int, TextRow]:
    """Return the current messages up to `distance` before and after these, by id.

    A message is given as the key of its session and its number.
    """
    places = {
        (session_key, seq + offset)
        for session_key, seq in centers
        for offset in range(-distance, distance + 1)
    }
    places.difference_update(centers)
    if not places:
        return {}
    statement = _PLACES_SQL.format(
        places=", ".join(["(%s, %s)"] * len(places)), condition=scope.condition
    )
    parameters = [value for place in places for value in place]
    parameters += [scope.newest_id, scope.parameter]
    return _bound_chars(_build_rows(fetch_rows(statement, parameters)).values())


def load_file_texts(message_ids: Sequence[int]) -> dict[int, str]:
    """Return the names and texts of the files of these messages, by the message's id."""
    if not message_ids:
        return {}
    statement = _FILES_SQL.format(ids=", ".join(["%s"] * len(message_ids)))
    texts: dict[int, str] = {}
    for pk, name, text in fetch_rows(statement, message_ids):
        texts[pk] = f"{texts[pk]}\n\n{name}\n{text}" if pk in texts else f"{name}\n{text}"
    return texts


def _build_rows(rows: Iterable[Sequence[Any]]) -> dict[int, TextRow]:
    return {
        pk: TextRow(
            id=pk,
            session_key=session_key,
            seq=seq,
            role=role,
            content=content,
            calls=_join_calls(tool_calls),
            created_at=_to_datetime(created_at),
        )
        for pk, session_key, seq, role, content, tool_calls, created_at in rows
    }


def _join_calls(tool_calls: str | list[dict[str, str]]) -> str:
    """Return names and arguments of tool calls, which the database gives as JSON.

    Calls of the search are left out: their arguments are questions.
    """
    if tool_calls == "[]":
        return ""
    calls = json.loads(tool_calls) if isinstance(tool_calls, str) else tool_calls
    return "\n".join(
        f"{call['name']} {call['arguments']}" for call in calls if call["name"] != SEARCH_TOOL_NAME
    )


def _to_datetime(value: datetime) -> datetime:
    """Return a time as the database gives it; SQLite's are in UTC and do not say so."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _bound_chars(rows: Iterable[TextRow]) -> dict[int, TextRow]:
    bounded_rows: dict[int, TextRow] = {}
    chars = 0
    for row in rows:
        chars += len(row.content)
        if chars > MAX_READ_CHARS and bounded_rows:
            break
        bounded_rows[row.id] = row
    return bounded_rows
