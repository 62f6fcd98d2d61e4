"""PostgreSQL's index gets terms of owners, while people go on writing and deleting."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatcore.models import Attachment, Message, Session
from chatcore.models.statements import fetch_rows
from chatcore.search import postgresql_index
from chatcore.search.query import search_messages
from chatcore.search.tables import FILE_TABLE, STEM_TABLE
from chatcore.turns.messages import append_message

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="An index of PostgreSQL."),
]
OWNER_MARK = " || chatcore_owner_mark(new.session_id)"


@pytest.fixture
def heron(session: Session) -> Message:
    """A message of a former version's database, with a file, and nobody's terms in the index."""
    message = append_message(session.pk, None, role="user", content="A grey heron.")
    Attachment.objects.create(
        session=session, message=message, kind="file", name="notes.txt", size=10, text="An avocet."
    )
    with connection.cursor() as cursor:
        for table in (STEM_TABLE, FILE_TABLE):
            cursor.execute("SELECT pg_get_functiondef(%s::regproc)", [f"{table}_change"])
            (definition,) = cursor.fetchone()
            assert OWNER_MARK in definition
            cursor.execute(definition.replace(OWNER_MARK, ""), None)
            cursor.execute(f"UPDATE {table} SET stems = ts_delete(stems, %s)", [mark(session)])
    return message


def mark(session: Session) -> str:
    return f"owner:{session.owner_id}"


def build_index() -> list[str]:
    with (
        CaptureQueriesContext(connection) as captured,
        connection.schema_editor(atomic=False) as editor,
    ):
        postgresql_index.mark_owners(editor)
    return [query["sql"] for query in captured]


def list_marked(table: str, session: Session) -> list[Any]:
    return fetch_rows(
        f"SELECT message_id FROM {table} WHERE stems @@ %s::tsquery ORDER BY message_id",
        [f"'{mark(session)}'"],
    )


def test_what_was_there_before_has_the_terms_and_is_found(
    heron: Message, session: Session, user: User
) -> None:
    build_index()
    assert [list_marked(table, session) for table in (STEM_TABLE, FILE_TABLE)] == [
        [(heron.pk,)]
    ] * 2
    for word in ("heron", "avocet"):
        assert [hit.message_id for hit in search_messages(user, word)] == [heron.pk]


def test_what_comes_after_has_them_too_and_nothing_is_built_twice(
    heron: Message, session: Session
) -> None:
    build_index()
    later = append_message(session.pk, None, role="user", content="A plover.")
    assert not any("CREATE TABLE" in statement for statement in build_index())
    assert list_marked(STEM_TABLE, session) == [(heron.pk,), (later.pk,)]
    heron.delete()
    assert list_marked(STEM_TABLE, session) == [(later.pk,)]


def test_nothing_is_lost_or_left_of_what_changes_while_it_is_built(
    heron: Message, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_index, "COPIED_ROWS", 5)
    messages = [
        append_message(session.pk, None, role="user", content=f"Word{number}.")
        for number in range(200)
    ]
    done = threading.Event()

    def write() -> None:
        try:
            for number, message in enumerate(messages):
                if number % 2:
                    Message.objects.filter(pk=message.pk).delete()
                else:
                    Message.objects.filter(pk=message.pk).update(content=f"Changed{number}.")
                append_message(session.pk, None, role="user", content=f"Later{number}.")
        finally:
            connection.close()
            done.set()

    threading.Thread(target=write).start()
    build_index()
    assert done.wait(60)
    ids = list(session.messages.order_by("pk").values_list("pk"))
    assert list_marked(STEM_TABLE, session) == ids
    assert not search_messages(session.pk, "Word2")
    assert search_messages(session.pk, "Changed2")


def test_an_interrupted_build_begins_again(
    heron: Message, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(postgresql_index, "_copy_rows", fail)
        with pytest.raises(ConnectionError):
            build_index()
    build_index()
    assert list_marked(STEM_TABLE, session) == [(heron.pk,)]
