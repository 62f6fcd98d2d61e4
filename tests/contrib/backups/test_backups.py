"""A backup of a running system, restored elsewhere: every word, every key, and nothing half."""

import os
import random
import stat
import tarfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.contrib.backups import archive, creation, databases
from chatcore.files import output_store
from chatcore.models import Attachment, Message, Session, Turn
from chatcore.turns.messages import append_message
from tests.support.compaction_sessions import say
from tests.support.old_databases import (
    RELEASES,
    TOO_OLD,
    create_database,
    open_old_database,
    read_tables,
    use_database_name,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def data_folder(settings: LazySettings, tmp_path: Path) -> Path:
    """The data folder of this machine, with its keys."""
    folder = tmp_path / "var"
    folder.mkdir()
    settings.DATA_DIR = folder
    (folder / "secret-key").write_text("the secret")
    (folder / "key-encryption-key").write_text("the key of keys")
    return folder


@pytest.fixture
def elsewhere(settings: LazySettings, tmp_path: Path) -> Iterator[Any]:
    """A context manager: inside, the database and the data folder are a new machine's."""
    with create_database(tmp_path) as name:

        def move() -> Any:
            folder = tmp_path / "new"
            folder.mkdir(exist_ok=True)
            (folder / "key-encryption-key").write_text("made by the first start")
            settings.DATA_DIR = folder
            return use_database_name(name)

        yield move


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_a_backup_is_restored_elsewhere_with_every_row_and_key(
    session: Session,
    scripted: ScriptedModel,
    data_folder: Path,
    elsewhere: Any,
    tmp_path: Path,
    settings: LazySettings,
) -> None:
    scripted.script(Reply(text="A plover."))
    say(session, "Which bird?")
    file = tmp_path / "backup"
    assert "1 sessions, 2 messages" in run("backup", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = read_tables()
    say(session, "This is said after the backup.")

    with elsewhere():
        assert "1 sessions, 2 messages" in run("restore", str(file))
        restored_rows = read_tables()
        # A copy is an installation of its own, with a key of its own.
        assert restored_rows.pop("chatcore_installation") != rows["chatcore_installation"]
        assert {name: table for name, table in restored_rows.items() if table != rows[name]} == {}
        assert (settings.DATA_DIR / "key-encryption-key").read_text() == "the key of keys"
        assert (settings.DATA_DIR / "secret-key").read_text() == "the secret"
        assert run("verify").strip().endswith("0 violations")
        scripted.script(Reply(text="Yes, a plover."))
        assert say(session, "Are you sure?").status == "completed"
        second = tmp_path / "second"
        run("backup", str(second))
        run("restore", str(second), "--force")  # a restored database can be backed up as well
        assert Message.objects.count() == 4
        assert list(settings.DATA_DIR.glob(".*")) == []


def test_a_whole_output_of_a_tool_comes_along(
    session: Session, data_folder: Path, elsewhere: Any, tmp_path: Path, settings: LazySettings
) -> None:
    def use_folder(name: str) -> None:
        options = {**settings.STORAGES["outputs"]["OPTIONS"], "location": tmp_path / name}
        outputs = {**settings.STORAGES["outputs"], "OPTIONS": options}
        settings.STORAGES = {**settings.STORAGES, "outputs": outputs}

    use_folder("here")
    message = append_message(session.pk, None, role="tool", content="It …", tool_call_id="c")
    output = Attachment.objects.create(
        session=session, message=message, kind="output", name="out", media_type="text/plain", size=9
    )
    output_store.save_text(session.owner_id, "It rains. " * 9000).attach(output)
    run("backup", str(tmp_path / "backup"))
    use_folder("there")
    with elsewhere():
        run("restore", str(tmp_path / "backup"))
        assert output_store.read_text(Attachment.objects.get()) == "It rains. " * 9000


@pytest.mark.parametrize("name", ["../../evil", "/tmp/h/evil", "a/../../../evil"])
def test_no_name_in_an_archive_leads_out_of_the_store(
    session: Session, data_folder: Path, tmp_path: Path, name: str
) -> None:
    run("backup", str(tmp_path / "backup"))
    (tmp_path / "extracted").mkdir()
    manifest = archive.extract_archive(tmp_path / "backup", tmp_path / "extracted")
    files = {archive.DATABASE: tmp_path / "extracted" / archive.DATABASE}
    archive.write_archive(tmp_path / "evil", manifest, files, [(name, b"evil")])
    with pytest.raises(CommandError, match="No output is called"):
        run("restore", str(tmp_path / "evil"), "--force")
    assert Session.objects.get() == session


def test_an_answer_that_was_being_written_is_closed_with_its_words(
    session: Session, data_folder: Path, elsewhere: Any, tmp_path: Path
) -> None:
    turn = session.turns.create(status="running", lease_until="2100-01-01T00:00:00Z")
    append_message(session.pk, turn, role="user", content="Count.")
    append_message(session.pk, turn, role="assistant", content="", status="streaming")
    run("backup", str(tmp_path / "backup"))
    with elsewhere():
        run("restore", str(tmp_path / "backup"))
        assert Turn.objects.get().status == "interrupted"
        assert Message.objects.get(role="assistant").status == "interrupted"
        assert run("verify").strip().endswith("0 violations")


def test_the_keys_can_stay_where_they_are(
    session: Session, data_folder: Path, elsewhere: Any, tmp_path: Path, settings: LazySettings
) -> None:
    run("backup", str(tmp_path / "backup"), "--without-keys")
    with elsewhere():
        run("restore", str(tmp_path / "backup"))
        key = (settings.DATA_DIR / "key-encryption-key").read_text()
        assert key == "made by the first start"


def test_a_database_with_sessions_is_replaced_by_force_only(
    session: Session, api: APIClient, data_folder: Path, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "backup"))
    AuthToken.objects.all().delete()
    with pytest.raises(CommandError, match="The database has sessions already"):
        run("restore", str(tmp_path / "backup"))
    assert api.get("/api/v1/sessions").status_code == 401
    run("restore", str(tmp_path / "backup"), "--force")
    assert api.get("/api/v1/sessions").status_code == 200


@pytest.mark.parametrize("size", [0, 20, 500, -100])
def test_a_file_that_was_cut_changes_nothing(
    session: Session, data_folder: Path, tmp_path: Path, size: int
) -> None:
    file = tmp_path / "backup"
    run("backup", str(file))
    cut_file = tmp_path / "cut"
    cut_file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(CommandError, match=r"is no whole backup|Nothing was restored"):
        run("restore", str(cut_file), "--force")
    assert Session.objects.get() == session
    assert (data_folder / "key-encryption-key").read_text() == "the key of keys"


@pytest.mark.heavy
def test_a_backup_with_one_wrong_bit_is_refused_or_means_the_same(
    session: Session, data_folder: Path, tmp_path: Path
) -> None:
    file, damaged_file = tmp_path / "backup", tmp_path / "damaged"
    run("backup", str(file))
    content = file.read_bytes()
    digests = archive.check_archive(file).digests
    draw = random.Random(3)
    refused = 0
    for _ in range(300):
        place = draw.randrange(len(content) * 8)
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        damaged_file.write_bytes(damaged)
        try:
            # Some bits mean the same either way: in gzip's header, or in a long run of zeros.
            assert archive.check_archive(damaged_file).digests == digests
        except archive.InvalidBackup:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("lost", [archive.DATABASE, archive.DIGESTS, archive.MANIFEST])
def test_a_backup_without_one_of_its_parts_is_refused(
    session: Session, data_folder: Path, tmp_path: Path, lost: str
) -> None:
    file = tmp_path / "backup"
    run("backup", str(file))
    with (
        tarfile.open(file) as whole,
        tarfile.open(tmp_path / "part", "w:gz") as part,
    ):
        for member in whole:
            if member.name != lost:
                part.addfile(member, whole.extractfile(member))
    with pytest.raises(CommandError, match="is no whole backup"):
        run("restore", str(tmp_path / "part"), "--force")
    with pytest.raises(CommandError, match="is no whole backup"):
        run("verify_backup", str(tmp_path / "part"))
    assert Session.objects.get() == session


def test_verify_backup_says_what_is_in_it(
    session: Session, data_folder: Path, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "backup"))
    answer = run("verify_backup", str(tmp_path / "backup"))
    assert f"{tmp_path / 'backup'}: whole, made " in answer
    assert f"database: {connection.vendor}, " in answer
    assert "sessions: 1\n" in answer
    assert "keys: secret-key, key-encryption-key\n" in answer


def test_what_a_killed_backup_left_goes_with_the_next_one(
    session: Session, data_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / ".backup-killed").mkdir()
    (tmp_path / ".backup-killed" / "database").write_text("half a copy")
    (tmp_path / ".backup-half").write_text("half an archive")
    with archive.open_scratch_file(tmp_path) as (living_path, _):
        run("backup", str(tmp_path / "backup"))
        assert living_path.exists()
    assert list(tmp_path.glob(".backup-*")) == []


def test_a_backup_of_a_newer_version_or_another_database_is_refused(
    session: Session, data_folder: Path, tmp_path: Path
) -> None:
    def write(**values: Any) -> str:
        manifest = {"created_at": "", "migrations": [], "counts": {}, "vendor": connection.vendor}
        path = tmp_path / "made"
        (tmp_path / "database").write_text("")
        files = {archive.DATABASE: tmp_path / "database"}
        archive.write_archive(path, archive.Manifest(**(manifest | values)), files)
        return str(path)

    with pytest.raises(CommandError, match=r"another version of Chatcore: it has chatcore.9999_x"):
        run("restore", write(migrations=["chatcore.9999_x"]), "--force")
    with pytest.raises(CommandError, match="is one of oracle, and the database is"):
        run("restore", write(vendor="oracle"), "--force")
    with pytest.raises(CommandError, match="in the format chatcore-backup-2"):
        run("restore", write(format="chatcore-backup-9"), "--force")
    assert Session.objects.get() == session


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_a_backup_of_an_older_database_is_restored_with_every_row(
    data_folder: Path, elsewhere: Any, tmp_path: Path, name: str
) -> None:
    """That of an upgraded one names migrations that a new database never goes through."""
    backup, rows_before = back_up_old_database(name, tmp_path)
    with elsewhere():
        run("restore", backup)
        rows = read_tables()
        for table, each in rows_before.items():
            assert not table.startswith("chatcore_") or len(rows[table]) >= len(each)
        assert "chatcore.0001_squashed_0064" in creation.list_applied_migrations()


def test_a_backup_from_before_the_kept_migrations_is_refused(
    data_folder: Path, elsewhere: Any, tmp_path: Path
) -> None:
    backup, _ = back_up_old_database(TOO_OLD, tmp_path)
    with elsewhere(), pytest.raises(CommandError, match=r"Upgrade to 0\.3\.0 first"):
        run("restore", backup)


def back_up_old_database(name: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """Write a backup of a stored database; return its path and the rows of the database."""
    (folder / "old").mkdir()
    with open_old_database(name, folder / "old"):
        rows = read_tables()
        manifest = archive.Manifest(
            vendor=connection.vendor,
            created_at="2026-11-28T04:00:00+00:00",
            migrations=creation.list_applied_migrations(),
            counts={},
        )
        databases.copy_to(folder / "copy")
    archive.write_archive(folder / "backup", manifest, {archive.DATABASE: folder / "copy"})
    return str(folder / "backup"), rows


def test_a_place_that_cannot_be_written_is_named(
    session: Session, data_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=r"No backup was written: .*nowhere"):
        run("backup", str(tmp_path / "nowhere" / "backup"))


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite needs no programs")
def test_a_missing_program_of_postgresql_is_named(
    session: Session, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(CommandError, match="pg_dump is not installed"):
        run("backup", str(tmp_path / "backup"))
    assert list(tmp_path.glob(".backup-*")) == []


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite waits for no one")
def test_a_database_that_others_use_is_left_as_it_is(
    session: Session, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("backup", str(tmp_path / "backup"))
    monkeypatch.setattr(
        databases, "EMPTY_POSTGRESQL", databases.EMPTY_POSTGRESQL.replace("10s", "100ms")
    )
    database = connection.settings_dict
    with psycopg.connect(
        dbname=database["NAME"], user=database["USER"], host=database["HOST"]
    ) as other:
        other.execute("SELECT 1 FROM chatcore_session")
        with pytest.raises(CommandError, match="lock timeout"):
            run("restore", str(tmp_path / "backup"), "--force")
    assert Session.objects.get() == session
