"""Ask the database's indexes which messages hold a term; the newest come first.

Texts of users reach the query languages of FTS5 and `tsquery` only as quoted words of letters and
digits.
"""

# ruff: noqa: S608  (the parts of statements are constants; values are parameters)

import re
from collections.abc import Sequence

from django.db import connection

from chatcore.models.statements import fetch_rows
from chatcore.search.scope import Scope
from chatcore.search.tables import FILE_TABLE, STEM_TABLE, TABLE
from textkit.stems import stem_german

MAX_POSTINGS = 1_000  # of one term in a session
MAX_OWNER_POSTINGS = 500  # of one term in all sessions of a user, which takes longer
MAX_TEXT_POSTINGS = 200
MAX_PIECE_POSTINGS = 2_000  # messages that have all pieces of a text, wherever they stand
MAX_SCANNED = 3_000  # of the newest messages, for scripts without spaces
MAX_SCANNED_GRAMS = 12
_LETTERS = re.compile(r"[^\W_]+")
PIECE_CHARS = 3  # the length in characters of the pieces that the index of trigrams holds

_SQLITE_MARKED_SQL = """
    SELECT rowid FROM {table} WHERE {table} MATCH %s AND rowid <= %s ORDER BY rowid DESC LIMIT %s
"""
_SQLITE_OWNER_SQL = """
    SELECT stems.rowid
    FROM {table} stems CROSS JOIN chatcore_message message ON message.id = stems.rowid
    WHERE stems.{table} MATCH %s AND stems.rowid <= %s AND {condition}
    ORDER BY stems.rowid DESC LIMIT %s
"""
# All terms in one statement. `OFFSET 0` keeps the planner from walking through the newest messages
# and reading the vector of each. A term of PostgreSQL's own stop words has no node, and would find
# every message of the session.
_POSTGRESQL_SQL = """
    SELECT term.number, found.id
    FROM (
        SELECT number, to_tsquery('english', text) AS query
        FROM unnest(%s::text[]) WITH ORDINALITY AS list(text, number)
    ) AS term
    CROSS JOIN LATERAL (
        SELECT message.message_id AS id
        FROM (
            SELECT message_id, session_id FROM {table}
            WHERE stems @@ (%s::tsquery && term.query) OFFSET 0
        ) AS message
        WHERE message.message_id <= %s AND {condition}
        ORDER BY message.message_id DESC LIMIT %s
    ) AS found
    WHERE numnode(term.query) > 0
"""
_POSTGRESQL_FILES_SQL = f"SELECT 1 FROM {FILE_TABLE} WHERE stems @@ %s::tsquery LIMIT 1"
_SQLITE_TEXT_SQL = f"""
    SELECT message.id
    FROM (
        SELECT rowid AS id FROM {TABLE} WHERE {TABLE} MATCH %s AND rowid <= %s
        ORDER BY rowid DESC LIMIT {MAX_PIECE_POSTINGS}
    ) pieces CROSS JOIN chatcore_message message ON message.id = pieces.id
    WHERE {{condition}} AND ({{match}})
    LIMIT %s
"""
_SCAN_SQL = """
    SELECT message.id FROM chatcore_message message
    WHERE message.id <= %s AND {condition} AND ({match})
    ORDER BY message.id DESC LIMIT %s
"""
_POSTGRESQL_TEXT_SQL = """
    WITH matches AS MATERIALIZED (
        SELECT message.id AS id FROM chatcore_message message
        WHERE message.id <= %s AND {condition} AND ({match})
    )
    SELECT id FROM matches ORDER BY id DESC LIMIT %s
"""
_GRAM_SQL = """
    SELECT id FROM (
        SELECT message.id AS id, message.content AS content FROM chatcore_message message
        WHERE message.id <= %s AND {condition}
        ORDER BY {order} DESC LIMIT %s
    ) newest
    WHERE {has_letters} AND {count} > 0
    ORDER BY {count} DESC, id DESC LIMIT %s
"""


def find_words(
    scope: Scope,
    word_lists: Sequence[Sequence[str]],
    *,
    in_files: bool = False,
    has_beginnings: bool = False,
) -> list[list[int]]:
    """Return for each list of folded words the ids of messages that hold all, or others of a stem.

    With `in_files` the words are in an attached file of the message. `has_beginnings` adds words
    that begin as the German stems do, which takes far longer for frequent ones.
    """
    table = FILE_TABLE if in_files else STEM_TABLE
    if connection.vendor == "sqlite":
        return [
            _find_words_by_fts5(scope, words, table, has_beginnings=has_beginnings)
            for words in word_lists
        ]
    return _find_words_by_tsquery(scope, word_lists, table, has_beginnings=has_beginnings)


def has_files(scope: Scope) -> bool:
    """Return False if no message of the scope can have an attached file with a text."""
    if connection.vendor != "sqlite":
        return bool(fetch_rows(_POSTGRESQL_FILES_SQL, [scope.mark]))
    if not scope.marks:
        return True
    return bool(_find_words_by_fts5(scope, [], FILE_TABLE, limit=1))


def find_text(scope: Scope, text: str) -> list[int]:
    """Return the ids of messages whose content may hold a text as it stands, in any case.

    On SQLite texts with other letters than A to Z are compared by their pieces alone.
    """
    pieces = {text[start : start + PIECE_CHARS] for start in range(len(text) - PIECE_CHARS + 1)}
    if connection.vendor == "sqlite":
        match = (
            "message.content LIKE %s ESCAPE '\\'" if text.isascii() or not pieces else "%s <> ''"
        )
        statement = _SQLITE_TEXT_SQL if pieces else _SCAN_SQL
        query = " AND ".join(quote_fts5(piece) for piece in sorted(pieces))
    else:
        match = "upper(message.content) LIKE upper(%s)"
        statement, query = _POSTGRESQL_TEXT_SQL, ""
    statement = statement.format(condition=scope.condition, match=match)
    parameters = [scope.newest_id, scope.parameter, _build_pattern(text), MAX_TEXT_POSTINGS]
    if query:
        parameters.insert(0, query)
    return [row[0] for row in fetch_rows(statement, parameters)]


def find_grams(scope: Scope, grams: Sequence[str]) -> list[int]:
    """Return the ids of messages that hold the most of these grams, which are not in A to Z.

    The newest MAX_SCANNED messages are looked at, as no index has pieces of two characters.
    """
    patterns = [_build_pattern(gram) for gram in grams[:MAX_SCANNED_GRAMS]]
    like = "(content LIKE %s)::int"
    has_letters = "octet_length(content) > length(content)"
    if connection.vendor == "sqlite":
        like = "(content LIKE %s ESCAPE '\\')"
        has_letters = "length(CAST(content AS BLOB)) > length(content)"
    statement = _GRAM_SQL.format(
        condition=scope.condition,
        order="message.id" if scope.session_id is None else "message.seq",  # as an index has them
        has_letters=has_letters,
        count="(" + " + ".join([like] * len(patterns)) + ")",
    )
    parameters = [scope.newest_id, scope.parameter, MAX_SCANNED, *patterns, *patterns]
    return [row[0] for row in fetch_rows(statement, [*parameters, MAX_TEXT_POSTINGS])]


def quote_fts5(text: str) -> str:
    """Return a text as a string of FTS5's query language."""
    return '"' + text.replace('"', '""') + '"'


def _find_words_by_tsquery(
    scope: Scope, word_lists: Sequence[Sequence[str]], table: str, *, has_beginnings: bool
) -> list[list[int]]:
    ids_by_list: list[list[int]] = [[] for _ in word_lists]
    queries = [
        " & ".join(
            _join_forms(word, "|", "'{}':*") if has_beginnings else f"'{word}'" for word in words
        )
        for words in word_lists
    ]
    parameters = [queries, scope.mark, scope.newest_id, scope.parameter, MAX_POSTINGS]
    statement = _POSTGRESQL_SQL.format(table=table, condition=scope.condition)
    for number, pk in fetch_rows(statement, parameters) if queries else ():
        ids_by_list[number - 1].append(pk)
    return ids_by_list


def _find_words_by_fts5(
    scope: Scope,
    words: Sequence[str],
    table: str,
    *,
    has_beginnings: bool = False,
    limit: int | None = None,
) -> list[int]:
    pieces = [piece for word in words for piece in _split_at_signs(word)]
    conditions = [
        _join_forms(piece, "OR", '"{}" *') if has_beginnings else quote_fts5(piece)
        for piece in pieces
    ]
    limit = limit or (MAX_OWNER_POSTINGS if scope.session_id is None else MAX_POSTINGS)
    if not scope.marks:
        statement = _SQLITE_OWNER_SQL.format(table=table, condition=scope.condition)
        parameters = [" AND ".join(conditions), scope.newest_id, scope.parameter, limit]
    else:
        conditions.insert(0, f"({' OR '.join(map(quote_fts5, scope.marks))})")
        statement = _SQLITE_MARKED_SQL.format(table=table)
        parameters = [" AND ".join(conditions), scope.newest_id, limit]
    return [row[0] for row in fetch_rows(statement, parameters)]


def _split_at_signs(word: str) -> list[str]:
    """Return a word as FTS5 has it, which ends a word at each sign on a letter.

    Such a word is looked for by its stem: an ending may be a piece of its own.
    """
    pieces = _LETTERS.findall(word)
    return pieces if len(pieces) < 2 else _LETTERS.findall(stem_german(word))


def _join_forms(word: str, operator: str, prefix_format: str) -> str:
    """Return the query for a word, and for the words that begin as its German stem does.

    The index has English stems only.
    """
    german_stem = stem_german(word)
    exact_query = prefix_format.format(word).removesuffix(":*").removesuffix(" *")
    if german_stem == word:
        return exact_query
    return f"({exact_query} {operator} {prefix_format.format(german_stem)})"


def _build_pattern(text: str) -> str:
    escaped_text = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped_text}%"
