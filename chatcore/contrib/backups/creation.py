"""Create a backup of a running system: one consistent copy of the database, and the rest."""

from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from chatcore.contrib.backups import databases, outputs
from chatcore.contrib.backups.archive import (
    DATABASE,
    KEY_FILES,
    Manifest,
    open_scratch_folder,
    write_archive,
)
from chatcore.models import Message, Session


def create_backup(path: Path, *, has_keys: bool = True) -> Manifest:
    """Write a backup to `path`; nobody has to stop meanwhile. Returns what it says of itself.

    Without `has_keys` the key files of the data folder are left out, and the stored API keys cannot
    be opened where it is restored. Raises databases.CopyFailed and OSError.
    """
    manifest = Manifest(
        vendor=connection.vendor,
        created_at=timezone.now().isoformat(timespec="seconds"),
        migrations=list_applied_migrations(),
        counts={
            "users": get_user_model()._default_manager.count(),
            "sessions": Session.objects.count(),
            "messages": Message.objects.count(),
        },
    )
    with open_scratch_folder(path.parent) as folder:
        copy = folder / DATABASE
        databases.copy_to(copy)
        files = {DATABASE: copy}
        if has_keys:
            files |= {name: settings.DATA_DIR / name for name in KEY_FILES}
        existing_files = {name: file for name, file in files.items() if file.exists()}
        write_archive(path, manifest, existing_files, outputs.read_outputs())
    return manifest


def list_applied_migrations() -> list[str]:
    """Return the names of the database's migrations, as app.name."""
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in applied)
