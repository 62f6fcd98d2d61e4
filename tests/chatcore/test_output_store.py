"""Whole outputs are files outside the database, within bounds, and go with their messages."""

import os
import stat
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.test.utils import override_settings
from rest_framework.test import APIClient

from chatcore.base import paused_deletion
from chatcore.files import output_store
from chatcore.models import Attachment, Installation, Message, OutputFile, Session
from chatcore.sessions import deletion, verification
from chatcore.tools import output as tool_output
from chatcore.tools import registry as tool_registry
from chatcore.transfer import exporter, importer
from chatcore.turns.deletion import delete_message
from chatcore.turns.forks import fork_session
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
LOG = "".join(f"line {number:05d}\n" for number in range(10_000))  # 110,000 characters


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """The store, in a folder of this test."""
    options = settings.STORAGES["outputs"]["OPTIONS"] | {"location": tmp_path / "outputs"}
    store = settings.STORAGES["outputs"] | {"OPTIONS": options}
    with override_settings(STORAGES=settings.STORAGES | {"outputs": store}):
        yield tmp_path / "outputs"


@pytest.fixture
def remembering(session: Session) -> Session:
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    session.refresh_from_db()
    return session


def store(session: Session, text: str = LOG) -> Message:
    """As a turn stores an output, after the call that it answers."""
    call = {"id": f"c{session.last_seq}", "name": "search_history", "arguments": "{}"}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "?"}
    rows = importer.import_messages(
        session, [{"role": "assistant", "content": "", "tool_calls": [call]}, result]
    )
    output = tool_output.build_tool_output(session, "search_history", text).put_away(session)
    message = rows[-1]
    message.tool_name = "search_history"
    for name, value in output.message_fields.items():
        setattr(message, name, value)
    message.save()
    output.attach_full_text(message)
    session.refresh_from_db()
    return message


def find_files(folder: Path) -> list[Path]:
    """Return the stored files, without the one that names the installation."""
    return [path for path in folder.rglob("*/*") if path.is_file()]


def limit(**megabytes: int) -> override_settings:
    return override_settings(CHATCORE=settings.CHATCORE | megabytes)


def read(session: Session, message: Message) -> str:
    call = make_tool_call("read_tool_output", {"message": message.seq, "offset": 109_989})
    return str(tool_registry.run_tool(call, session_id=session.pk).content)


def test_an_output_is_a_file_that_only_its_owner_may_read(
    remembering: Session, folder: Path
) -> None:
    message = store(remembering)
    [path] = find_files(folder)
    assert path.read_text() == LOG
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(each.stat().st_mode) for each in (folder, path.parent)} == {0o700}
    attachment = Attachment.objects.get()
    known = (remembering.pk.hex, attachment.pk.hex, attachment.name)
    assert not any(part in path.name for part in known)
    assert len(path.stem) == 32
    assert read(remembering, message).endswith("there are no more.]\nline 09999\n")


def test_two_outputs_have_names_that_do_not_tell_of_each_other(
    remembering: Session, folder: Path
) -> None:
    store(remembering)
    store(remembering)
    first, second = find_files(folder)
    assert first.stem[:8] != second.stem[:8]


def test_an_output_of_an_earlier_version_is_read_from_its_row(
    remembering: Session, api: APIClient
) -> None:
    message = store(remembering)
    OutputFile.objects.all().delete()
    Attachment.objects.update(text=LOG)
    assert read(remembering, message).endswith("line 09999\n")
    address = f"/api/v1/attachments/{Attachment.objects.get().pk}"
    assert api.get(address).content.decode() == LOG
    assert list(verification.find_violations(remembering)) == []


def test_without_a_store_an_output_is_kept_in_the_database(
    remembering: Session, folder: Path
) -> None:
    storages = {name: value for name, value in settings.STORAGES.items() if name != "outputs"}
    with override_settings(STORAGES=storages):
        message = store(remembering)
        assert read(remembering, message).endswith("line 09999\n")
    assert find_files(folder) == []


@pytest.mark.parametrize("bound", ["OUTPUT_MEGABYTES", "OUTPUT_MEGABYTES_PER_USER"])
def test_where_there_is_no_room_the_cut_message_stays_and_says_so(
    remembering: Session, folder: Path, bound: str
) -> None:
    with limit(**{bound: 0}):
        message = store(remembering)
    assert message.content.startswith("line 00000\n")
    assert message.content.endswith("\n\n[The whole output is not kept: there is no room for it.]")
    assert message.original_chars == len(LOG)
    assert find_files(folder) == []
    assert not Attachment.objects.exists()


def test_the_room_of_a_user_is_not_that_of_another(
    remembering: Session, django_user_model: Any
) -> None:
    bob = django_user_model.objects.create_user("bob")
    other = Session.objects.create(owner=bob, model=remembering.model, policy="chatcore")
    text = "x" * 600_000
    with limit(OUTPUT_MEGABYTES_PER_USER=1):
        assert "is kept: read_tool_output" in store(remembering, text).content
        assert "no room" in store(remembering, text).content
        assert "is kept: read_tool_output" in store(other, text).content


def test_a_turn_goes_on_when_the_store_fails(
    remembering: Session,
    api: APIClient,
    scripted: ScriptedModel,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dataclasses

    folder.write_text("A file stands where the folder should be.")
    tool = tool_registry.BUILT_IN_TOOLS["search_history"]
    logging_tool = dataclasses.replace(tool, run=lambda arguments, session_id: LOG)
    monkeypatch.setitem(tool_registry.BUILT_IN_TOOLS, "search_history", logging_tool)
    scripted.script(
        Reply(tool_calls=[make_tool_call("search_history", {"query": "log"})]),
        Reply(text="Done."),
    )
    answered = api.post(f"/api/v1/sessions/{remembering.pk}/messages", {"content": "Read."})
    assert answered.status_code == 201, answered.json()
    [result] = answered.json()["tool_messages"]
    assert result["content"].endswith("[The whole output is not kept: it could not be stored.]")
    assert result["attachments"] == []


def test_a_clients_result_that_is_refused_leaves_no_file(
    remembering: Session, api: APIClient, scripted: ScriptedModel, folder: Path
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call(name, {}, id=name) for name in ("build", "test")])
    )
    definitions = [{"name": "build"}, {"name": "test"}]
    api.post(
        f"/api/v1/sessions/{remembering.pk}/messages",
        {"content": "Build it.", "tools": definitions},
    )
    address = f"/api/v1/sessions/{remembering.pk}/tool_results"
    unknown = {"tool_call_id": "x9", "content": LOG}
    assert api.post(address, {"results": [unknown]}).status_code == 400
    assert find_files(folder) == []
    result = {"tool_call_id": "build", "content": LOG}
    for _ in range(2):
        assert api.post(address, {"results": [result]}).status_code == 201
    assert len(find_files(folder)) == 1


def test_a_result_that_found_no_room_is_known_when_it_comes_again(
    remembering: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call(name, {}, id=name) for name in ("build", "test")])
    )
    definitions = [{"name": "build"}, {"name": "test"}]
    api.post(
        f"/api/v1/sessions/{remembering.pk}/messages",
        {"content": "Build it.", "tools": definitions},
    )
    address = f"/api/v1/sessions/{remembering.pk}/tool_results"
    payload = {"results": [{"tool_call_id": "build", "content": LOG}]}
    with limit(OUTPUT_MEGABYTES=0):
        assert api.post(address, payload).status_code == 201
    assert api.post(address, payload).status_code == 201


def test_a_deleted_message_takes_its_file_along(remembering: Session, folder: Path) -> None:
    delete_message(store(remembering))
    assert find_files(folder) == []


def test_a_deleted_session_takes_its_files_along(remembering: Session, folder: Path) -> None:
    store(remembering)
    store(remembering)
    deletion.delete_session(remembering.pk)
    assert find_files(folder) == []
    assert not Session.all_objects.exists()


def test_a_deleted_user_takes_all_files_along(remembering: Session, folder: Path) -> None:
    store(remembering)
    with transaction.atomic():
        remembering.owner.delete()
        assert len(find_files(folder)) == 1  # a rollback would need it
    assert not Session.all_objects.exists()
    assert find_files(folder) == []


def test_a_fork_refers_to_the_same_file_which_goes_with_the_last(
    remembering: Session, folder: Path
) -> None:
    message = store(remembering)
    fork = fork_session(message)
    assert len(find_files(folder)) == 1
    delete_message(message)
    assert len(find_files(folder)) == 1
    copy = fork.messages.get(seq=message.seq)
    assert read(fork, copy).endswith("line 09999\n")
    deletion.delete_session(fork.pk)
    assert find_files(folder) == []


def test_what_a_crash_left_behind_is_swept_and_the_rest_stays(
    remembering: Session, folder: Path
) -> None:
    store(remembering)
    new = output_store.save_text(remembering.owner_id, "written just now")
    old = output_store.save_text(remembering.owner_id, "its process died")
    past = (Path(folder / old.name).stat().st_mtime) - timedelta(hours=2).total_seconds()
    for path in find_files(folder):
        if path != folder / new.name:
            os.utime(path, (past, past))
    assert output_store.sweep_orphans() == 1
    assert not (folder / old.name).exists()
    assert len(find_files(folder)) == 2
    assert list(verification.find_violations(remembering)) == []


def test_an_export_carries_the_outputs_and_an_import_keeps_them(
    remembering: Session, folder: Path
) -> None:
    message = store(remembering)
    exported = exporter.export_session(remembering)
    deletion.delete_session(remembering.pk)
    copy = importer.import_session(remembering.owner, exported)
    assert len(find_files(folder)) == 1
    assert read(copy, copy.messages.get(seq=message.seq)).endswith("line 09999\n")


def test_an_import_without_room_is_refused_and_stores_nothing(
    remembering: Session, api: APIClient, folder: Path
) -> None:
    store(remembering)
    exported = exporter.export_session(remembering)
    with limit(OUTPUT_MEGABYTES_PER_USER=0):
        refused = api.post("/api/v1/sessions/import", exported)
    assert (refused.status_code, refused.json()["type"]) == (507, "storage_full")
    assert refused.json()["detail"].endswith("at most 0 MB. Nothing was stored.")
    assert refused["Retry-After"] == "60"
    assert Session.all_objects.count() == 1
    assert len(find_files(folder)) == 1


def test_a_file_that_is_gone_is_named_wherever_it_is_asked_for(
    remembering: Session, api: APIClient, folder: Path
) -> None:
    message = store(remembering)
    [path] = find_files(folder)
    path.unlink()
    assert "is no longer kept" in read(remembering, message)
    download = api.get(f"/api/v1/attachments/{Attachment.objects.get().pk}")
    assert (download.status_code, download.json()["type"]) == (410, "output_lost")
    assert list(verification.find_violations(remembering)) == [
        f"what belongs to message {message.seq} is not in the store of files and outputs"
    ]
    exported = exporter.export_session(remembering)
    [attachment] = exported["messages"][-1]["attachments"]
    assert attachment["lost"] is True
    assert "data" not in attachment
    copy = importer.import_session(remembering.owner, exported)
    assert not copy.attachments.exists()
    assert copy.messages.get(seq=message.seq).content == message.content


def test_a_store_that_belongs_to_another_database_is_not_swept(
    remembering: Session, folder: Path
) -> None:
    assert output_store.sweep_orphans() == 0  # the store is this database's from now on
    orphan = output_store.save_text(remembering.owner_id, "Production has stored this since.")
    past = Path(folder / orphan.name).stat().st_mtime - timedelta(hours=2).total_seconds()
    os.utime(folder / orphan.name, (past, past))
    key = Installation.load().key
    Installation.objects.update(key=uuid4())  # as a copy gets when it is restored

    assert output_store.sweep_orphans() == 0
    assert (folder / orphan.name).exists()
    assert any("belongs to another database" in text for text in paused_deletion.list_problems())

    call_command("move_files", "--claim", stdout=StringIO())
    assert output_store.sweep_orphans() == 1
    assert paused_deletion.list_problems() == []
    assert (folder / "installation").read_text() == str(Installation.load().key) != str(key)
