"""Files and outputs in object storage: in and out, away, moved, deleted, backed up."""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from rest_framework.test import APIClient

from chatcore.contrib.backups import outputs
from chatcore.files import output_store
from chatcore.models import Attachment, OutputFile, Session
from chatcore.sessions import deletion, verification
from chatcore.tools import output as tool_output
from chatcore.transfer import exporter, importer
from chatcore.turns.forks import fork_session
from models_registry.models import AiModel
from tests.support.object_storage import ObjectStorage, run_object_storage
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY = "http://127.0.0.1:9"
IMAGE = build_png(8, 8)


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStorage]:
    with run_object_storage() as storage:
        yield storage


def use(setting: dict[str, Any], *, files: bool = True) -> override_settings:
    return override_settings(
        STORAGES=settings.STORAGES | {"outputs": setting},
        CHATCORE=settings.CHATCORE | {"FILES_IN_STORE": files},
    )


@pytest.fixture
def bucket(running: ObjectStorage) -> Iterator[ObjectStorage]:
    with use(running.build_setting()):
        yield running
    running.empty()


def upload(api: APIClient, session: Session) -> Any:
    file = SimpleUploadedFile("a.png", IMAGE)
    path = f"/api/v1/sessions/{session.pk}/attachments"
    return api.post(path, {"file": file}, format="multipart")


def send(api: APIClient, session: Session, *files: str) -> Any:
    body = {"content": "Look.", "attachments": list(files)}
    return api.post(f"/api/v1/sessions/{session.pk}/messages", body)


def test_a_file_is_in_the_bucket_under_its_hash_and_comes_back_whole(
    api: APIClient, session: Session, bucket: ObjectStorage, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(supports_images=True)
    pk = upload(api, session).json()["id"]
    [(name, content)] = bucket.list_objects().items()
    assert content == IMAGE
    assert hashlib.sha256(IMAGE).hexdigest() in name
    assert bytes(Attachment.objects.get(pk=pk).data) == b""
    assert api.get(f"/api/v1/attachments/{pk}").content == IMAGE
    assert send(api, session, pk).status_code == 201
    assert "data:image/png;base64" in str(scripted.requests[-1].json)
    assert verification.check_session(session.pk) == []

    fork = fork_session(session.messages.order_by("seq")[0])
    copy = importer.import_session(session.owner, exporter.export_session(session))
    assert len(bucket.list_objects()) == 2  # a fork has the same object, an import its own
    deletion.delete_session(session.pk)
    [forked_file] = fork.attachments.all()
    assert output_store.read_bytes(forked_file) == IMAGE
    deletion.delete_session(fork.pk)
    deletion.delete_session(copy.pk)
    assert bucket.list_objects() == {}


@pytest.mark.slow
def test_an_edited_message_has_the_same_file(
    api: APIClient, session: Session, bucket: ObjectStorage
) -> None:
    pk = upload(api, session).json()["id"]
    message = send(api, session, pk).json()["user_message"]["id"]
    assert api.patch(f"/api/v1/messages/{message}", {"content": "Again."}).status_code == 201
    files = Attachment.objects.filter(session=session)
    assert [output_store.read_bytes(file) for file in files] == [IMAGE, IMAGE]
    assert len(bucket.list_objects()) == 1


@pytest.mark.slow
def test_while_the_storage_is_away_nothing_is_half_written(
    api: APIClient,
    session: Session,
    bucket: ObjectStorage,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    AiModel.objects.update(supports_images=True)
    pk = upload(api, session).json()["id"]
    with use(bucket.build_setting(NOBODY)):
        for response in (upload(api, session), api.get(f"/api/v1/attachments/{pk}")):
            assert response.status_code == 503
            assert response.json()["type"].endswith("storage_unavailable")
            assert "a-secret" not in response.content.decode()
            assert response["Retry-After"]
        assert Attachment.objects.count() == 1
        answer = send(api, session, pk)
        assert answer.json()["type"].endswith("storage_unavailable"), answer.json()
        assert "Your message is kept" in answer.json()["detail"]
        output = tool_output.build_tool_output(session, "fetch_url", "x" * 500_000)
        assert output.put_away(session).stored_text is None  # the row keeps it
        with pytest.raises(CommandError, match="does not answer"):
            call_command("move_files", to_database=True)
        deletion.delete_session(session.pk)
    assert len(bucket.list_objects()) == 1
    monkeypatch.setattr(output_store, "ORPHAN_AGE", timedelta(0))
    assert output_store.sweep_orphans() == 1
    assert bucket.list_objects() == {}


def test_what_a_killed_process_left_without_a_row_is_swept_and_nothing_else(
    api: APIClient, session: Session, bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = upload(api, session).json()["id"]
    output_store.save_bytes(b"Its process was killed before the row.")
    assert output_store.sweep_orphans() == 0  # it may be about to be stored
    monkeypatch.setattr(output_store, "ORPHAN_AGE", timedelta(0))
    assert output_store.sweep_orphans() == 1
    assert api.get(f"/api/v1/attachments/{pk}").content == IMAGE


def test_what_is_stored_moves_into_the_bucket_and_back(
    api: APIClient, session: Session, bucket: ObjectStorage, tmp_path: Path
) -> None:
    folder = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": tmp_path / "outputs"},
    }
    with use(folder, files=False):
        pk = upload(api, session).json()["id"]
        text = send(api, session, pk) and "word " * 50_000
        stored = output_store.save_text(session.owner_id, text)
        output = Attachment.objects.create(
            session=session, kind="output", name="o.txt", media_type="text/plain", size=9, data=b""
        )
        stored.attach(output)
        earlier = Attachment.objects.create(
            session=session,
            kind="output",
            name="p.txt",
            media_type="text/plain",
            size=9,
            data=b"",
            text="stored by an earlier version",
        )
    assert bucket.list_objects() == {}

    def read_all() -> list[bytes]:
        rows = Attachment.objects.filter(pk__in=[pk, output.pk, earlier.pk]).order_by("created_at")
        return [output_store.read_bytes(row) for row in rows]

    expected = [IMAGE, text.encode(), b"stored by an earlier version"]
    with override_settings(DATA_DIR=tmp_path):
        call_command("move_files")
        call_command("move_files")  # there is nothing left to move
    assert sorted(bucket.list_objects().values()) == sorted(expected)
    assert read_all() == expected
    assert not Attachment.objects.exclude(data=b"").exists()
    assert [content for _, content in sorted(outputs.read_outputs())] == [
        content for _, content in sorted(bucket.list_objects().items())
    ]
    call_command("move_files", to_database=True)
    assert bucket.list_objects() == {}
    assert not OutputFile.objects.exists()
    assert read_all() == expected


def test_what_is_gone_from_the_bucket_is_named_by_verify(
    api: APIClient, session: Session, bucket: ObjectStorage
) -> None:
    pk = upload(api, session).json()["id"]
    send(api, session, pk)
    bucket.empty()
    [violation] = verification.check_session(session.pk)
    assert "is not in the store" in violation
    assert api.get(f"/api/v1/attachments/{pk}").status_code == 410
    assert send(api, session).status_code == 201  # the conversation goes on
