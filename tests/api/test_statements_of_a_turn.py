"""What one short turn asks of the database: docs/turns.md lists each statement."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from rest_framework.test import APIClient

from chatcore.models import Session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.statements import Statements, note_statements
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(__file__).parents[2] / "docs" / "turns.md"
ROW = re.compile(r"\| \d+ \| [^|]+ \| `([^`]+)` \| ([^|]+) \|")
TABLE = re.compile(r'(?:FROM|UPDATE|INTO|JOIN)\s+"?((?:chatcore|compaction|knox)_\w+)')
MOST = 27
MOST_TRANSACTIONS = 3
WRITE = 5  # statements with which words are written, on either database


def list_known() -> list[str]:
    """Return the statements of the page that this database gets."""
    other = {"sqlite": "PostgreSQL", "postgresql": "SQLite"}[connection.vendor]
    rows = ROW.findall(PAGE.read_text())
    return [name for name, why in rows if not why.startswith(f"{other} only")]


def name_statement(text: str) -> str:
    """Return a statement as the page names it: its verb, and its table or function."""
    verb = text.split()[0]
    if verb == "BEGIN":
        return verb
    outer = text
    while (inner_removed := re.sub(r"\([^()]*\)", "", outer)) != outer:
        outer = inner_removed
    table = TABLE.search(outer)
    return f"{verb} {table[1] if table else outer.split()[1]}"


class Words(list[str]):
    """Chunks of an answer, the last of which is sent when the first are being stored."""

    def __init__(self, statements: Statements) -> None:
        super().__init__(["One, ", "two."])
        self._statements = statements

    def __iter__(self) -> Iterator[str]:
        yield self[0]
        threads = self._statements.threads
        wait_until(lambda: threads.count("delta-writer") >= WRITE, what="the first words")
        yield self[1]


def list_statements(api: APIClient, session: Session, scripted: ScriptedModel) -> list[str]:
    """Run a turn whose first words are written before its end; return its statements."""
    path = f"/api/v1/sessions/{session.pk}/messages"
    with note_statements() as statements:
        scripted.script(Reply(chunks=Words(statements), usage=(40, 3)))
        assert api.post(path, {"content": "Count to two."}).status_code == 201
    return [name_statement(text) for text in statements.texts]


def test_a_short_turn_takes_the_statements_that_the_page_lists(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    known = list_known()
    # A busy machine may write the words of a turn in more pieces.
    turns = [list_statements(api, session, scripted) for _ in range(4)]
    assert min(turns[1:], key=len) == known
    assert len(known) <= MOST
    if connection.vendor == "sqlite":
        assert known.count("BEGIN") <= MOST_TRANSACTIONS
