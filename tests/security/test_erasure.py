"""What a person deletes leaves no word: in no row, index, log or file of the machine."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from rest_framework.test import APIClient

from chatcore.files import output_store
from chatcore.models import Attachment, Message, OutputFile, Session
from chatcore.search.erasure import ErasureChore
from chatcore.search.tables import INDEXES
from chatcore.sessions import deletion
from chatcore.tools import registry as tool_registry
from chatcore.tools.base import BuiltInTool
from compaction.memory.models import LedgerLine, SummaryLeaf
from compaction.models import CompactionRun
from tests.support.compaction_sessions import summarize_or_chat
from tests.support.database import read_file
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

WORD = "qzxvkjwyq"
SUMMARY = f"The user keeps the key {WORD} in the locker 4711 at the pool, and asked about tea."


@pytest.fixture
def talk(
    api: APIClient,
    session: Session,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> Session:
    """A chat that has the word wherever a word can be."""
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    monkeypatch.setitem(
        tool_registry.BUILT_IN_TOOLS,
        "read_key",
        BuiltInTool(
            name="read_key",
            description="Reads.",
            parameters={"type": "object", "properties": {"key": {"type": "string"}}},
            run=lambda arguments, _: f"{WORD} is the key. " * 4_000,
        ),
    )
    address = f"/api/v1/sessions/{session.pk}"
    scripted.default = summarize_or_chat(Reply(text=SUMMARY), Reply(text=f"I noted {WORD}."))
    scripted.script(
        Reply(tool_calls=[make_tool_call("read_key", {"key": WORD})], finish="tool_calls"),
        Reply(text=f"It says {WORD}."),
    )
    say(api, address, f"My key is {WORD}. Never show {WORD} to anybody from now on. Read it.")
    uploaded = api.post(f"{address}/attachments", {"file": named_file()}, format="multipart").json()
    say(api, address, "What is in the file?", attachments=[uploaded["id"]])
    for number in range(8):
        say(api, address, f"{number}: Which tea is good? " + "Green or black tea? " * 60)
    ran = api.post(f"{address}/compact", {"wait": True, "instructions": f"Keep {WORD}."}).json()
    assert ran["status"] == "applied", ran
    say(api, address, f"Where is the key {WORD} that I told you of, in the locker at the pool?")
    api.post(f"/api/v1/messages/{session.messages.latest('seq').pk}/regenerate", {})
    assert {Message, Attachment, OutputFile, LedgerLine, SummaryLeaf, CompactionRun} <= {
        type(row) for row in list_rows(session)
    }
    return session


def named_file() -> Any:
    from django.core.files.uploadedfile import SimpleUploadedFile

    return SimpleUploadedFile(f"{WORD}.txt", f"The file says {WORD}.".encode())


def say(api: APIClient, address: str, content: str, **fields: Any) -> None:
    answer = api.post(f"{address}/messages", {"content": content, **fields})
    assert answer.status_code == 201, answer.json()


def list_rows(session: Session) -> list[Any]:
    models = (Message, Attachment, OutputFile, LedgerLine, SummaryLeaf, CompactionRun)
    return [row for model in models for row in model.objects.filter(session=session)]


def delete_messages(api: APIClient, session: Session) -> None:
    for message in Message.objects.filter(session=session).order_by("-seq"):
        if WORD in f"{message.content} {message.tool_calls}" or message.attachments.exists():
            assert api.delete(f"/api/v1/messages/{message.pk}").status_code in (204, 404)
    assert Message.objects.filter(session=session).exists()


def delete_session(api: APIClient, session: Session) -> None:
    assert api.delete(f"/api/v1/sessions/{session.pk}").status_code == 204


def delete_user(api: APIClient, session: Session) -> None:
    User.objects.get(pk=session.owner_id).delete()


def find_tables_with_word() -> list[str]:
    tables = []
    virtual_tables = set(INDEXES) if connection.vendor == "sqlite" else set()
    with connection.cursor() as cursor:
        # The tables that SQLite's indexes consist of are read below their names.
        for table in set(connection.introspection.table_names(cursor)) - virtual_tables:
            cursor.execute(f'SELECT * FROM "{table}"')
            if any(WORD in str(row).lower() for row in cursor.fetchall()):
                tables.append(table)
    return sorted(tables)


def find_files_with_word() -> list[str]:
    folders = [Path(settings.DATA_DIR)]
    if connection.vendor == "sqlite":
        folders.append(Path(connection.settings_dict["NAME"]).parent)
    paths = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return [os.path.basename(path) for path in paths if WORD.encode() in read_file(path).lower()]


@pytest.mark.parametrize("delete", mark_others_slow([delete_messages, delete_session, delete_user]))
def test_no_word_is_left(
    api: APIClient,
    talk: Session,
    delete: Callable[[APIClient, Session], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output_store.claim_store()  # each test's database is another installation
    monkeypatch.setattr(output_store, "ORPHAN_AGE", timedelta(0))
    chore = ErasureChore()
    chore.erase()
    assert find_tables_with_word()
    assert find_files_with_word()
    with caplog.at_level("DEBUG"):
        delete(api, talk)
        deletion.purge_due_sessions()
        output_store.sweep_orphans()
        chore.erase()
    assert find_tables_with_word() == []
    if connection.vendor == "sqlite":  # PostgreSQL's own files are cleared by its vacuum
        connection.close()
        assert find_files_with_word() == []
    assert WORD not in caplog.text


@pytest.mark.skipif(connection.vendor != "sqlite", reason="it is about SQLite")
def test_deleted_rows_are_overwritten_whatever_sqlite_was_built_with() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA secure_delete")
        assert cursor.fetchone() == (1,)
    assert "secure_delete=ON" in settings.DATABASES["default"]["OPTIONS"]["init_command"]
