"""Put a backup back: the whole database, brought up to date, and the keys."""

import pkgutil
import shutil
import tempfile
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from chatcore.base.databases.old_databases import REFUSAL, are_migrations_too_old, is_replaced
from chatcore.contrib.backups import archive, databases, outputs
from chatcore.contrib.backups.archive import (
    DATABASE,
    KEY_FILES,
    InvalidBackup,
    Manifest,
    extract_archive,
    open_scratch_file,
)
from chatcore.extension import list_absent_apps
from chatcore.models import Installation, Session, Turn
from chatcore.turns.lifecycle import recover_dead_turns

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class DatabaseInUse(Exception):
    """The database has users or sessions, which a backup would replace."""


def restore_backup(path: Path, *, is_forced: bool = False) -> Manifest:
    """Replace the database and the key files by those of the backup, and migrate it.

    Answers that were being written when the backup was made are closed with the words that it has.
    Raises DatabaseInUse unless `is_forced`, InvalidBackup, databases.CopyFailed and OSError.
    """
    with tempfile.TemporaryDirectory(dir=settings.DATA_DIR, prefix=".restore-") as name:
        folder = Path(name)
        manifest = extract_archive(path, folder)
        _refuse_foreign(manifest)
        if not is_forced:
            _refuse_filled_database()
        for output_name, content in archive.read_outputs(path):
            outputs.store_output(output_name, content)
        databases.copy_from(folder / DATABASE)
        for key_file in KEY_FILES:
            if (folder / key_file).exists():
                _replace_file(folder / key_file, settings.DATA_DIR / key_file)
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    # The copy may go on beside the database that it was made of, over the same store of files.
    Installation.load()
    Installation.objects.filter(pk=1).update(key=uuid4())
    _close_running_turns()
    return manifest


def _refuse_foreign(manifest: Manifest) -> None:
    if manifest.vendor != connection.vendor:
        raise InvalidBackup(
            f"The backup is one of {manifest.vendor}, and the database is {connection.vendor}."
            " Export and import carry sessions from one to the other."
        )
    if are_migrations_too_old(manifest.migrations):
        raise InvalidBackup(f"The backup {REFUSAL}; restore it with the version that made it.")
    unknown_names = sorted(
        name
        for name in set(manifest.migrations) - _list_known_migrations()
        if not is_replaced(name)
    )
    if unknown_names:
        raise InvalidBackup(
            f"The backup is of another version of Chatcore: it has {unknown_names[0]}."
            " Restore it with that version or a newer one."
        )


def _list_known_migrations() -> set[str]:
    """Return the names of all migrations, as app.name; those of apps that are left out, too."""
    names = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    for app in list_absent_apps():
        folder = import_module(f"{app.path}.migrations").__path__
        names |= {f"{app.name}.{module.name}" for module in pkgutil.iter_modules(folder)}
    return names


def _refuse_filled_database() -> None:
    tables = set(connection.introspection.table_names())
    for model in (Session, get_user_model()):
        if model._meta.db_table in tables and model._base_manager.exists():
            raise DatabaseInUse(
                f"The database has {model._meta.verbose_name_plural} already."
                " --force replaces all of it by the backup."
            )


def _replace_file(source: Path, target: Path) -> None:
    with open_scratch_file(target.parent) as (scratch_path, scratch_file):
        with source.open("rb") as content:
            shutil.copyfileobj(content, scratch_file)
        scratch_file.flush()
        scratch_path.replace(target)


def _close_running_turns() -> None:
    # Their processes write into the database that was copied, not into this one.
    Turn.objects.filter(status=Turn.Status.RUNNING).update(lease_until=LONG_AGO)
    recover_dead_turns()
