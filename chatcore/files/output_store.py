"""Keep whole outputs of tools in files outside the database, within bounds.

The files are in the storage that STORAGES["outputs"] names. A file is written before the
transaction that stores its row, and deleted after the one that deletes its last row; what a failure
leaves in between is swept. A project without such a storage keeps outputs in the database.
"""

import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db.models import QuerySet, Sum
from django.utils import timezone

from chatcore.models import Attachment, OutputFile

logger = logging.getLogger(__name__)

ALIAS = "outputs"
MEGABYTE = 1024 * 1024
# Longer than any import takes from its first file to its last row.
ORPHAN_AGE = timedelta(hours=1)
BATCH_SIZE = 500  # names of one query


class StoreFull(Exception):
    """There is no room for another output, for this user or for anyone."""


class OutputLost(Exception):
    """The file of an output is gone, or its storage does not answer."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text in the store that may have no row yet."""

    name: str
    size: int  # bytes

    def attach(self, attachment: Attachment) -> None:
        """Store that the file belongs to a stored output, in the same transaction."""
        OutputFile.objects.create(
            attachment=attachment,
            session_id=attachment.session_id,
            name=self.name,
            size=self.size,
        )


def has_store() -> bool:
    """Return True if outputs are kept outside the database."""
    return ALIAS in settings.STORAGES


def save_text(owner_id: Any, text: str) -> StoredText:
    """Write a text to a file with a name that nobody can guess. Do it outside any transaction.

    Raises StoreFull, and whatever the storage raises.
    """
    data = text.encode()
    _require_room(owner_id, len(data))
    token = secrets.token_hex(16)
    # Two levels, because folders with very many files are slow.
    name = _get_storage().save(f"{token[:2]}/{token}.txt", ContentFile(data))
    return StoredText(name, len(data))


def read_text(output: Attachment) -> str:
    """Return the whole text of an output. Raises OutputLost."""
    file = OutputFile.objects.filter(attachment=output).first()
    if file is None:  # stored by an earlier version, or without a store
        return output.text
    try:
        with _get_storage().open(file.name) as stream:
            return stream.read().decode()
    except (OSError, ValueError) as error:
        logger.warning("output %s cannot be read: %s", output.pk, type(error).__name__)
        raise OutputLost("The output is no longer kept.") from None


def read_bytes(attachment: Attachment) -> bytes:
    """Return the content of a file or an output. Raises OutputLost."""
    if attachment.kind == Attachment.Kind.OUTPUT:
        return read_text(attachment).encode()
    return bytes(attachment.data) or attachment.text.encode()


def has_file(name: str) -> bool:
    """Return True if the store has a file of this name."""
    return has_store() and _get_storage().exists(name)


def delete_unused(names: Sequence[str]) -> int:
    """Delete those of the files that no row refers to; return how many. Do it after a commit."""
    if not names or not has_store():
        return 0
    storage = _get_storage()
    unused_names = _find_unused(names)
    for name in unused_names:
        storage.delete(name)
    return len(unused_names)


def sweep_orphans() -> int:
    """Delete files that have had no row for ORPHAN_AGE; return how many."""
    if not has_store():
        return 0
    storage = _get_storage()
    written_before = timezone.now() - ORPHAN_AGE
    count = 0
    for names in _list_folders(storage):
        orphans = [name for name in _find_unused(names) if _is_older(storage, name, written_before)]
        count += delete_unused(orphans)
    return count


def _get_storage() -> Storage:
    return storages[ALIAS]


def _require_room(owner_id: Any, size: int) -> None:
    """Raise StoreFull where a file of this size is too much.

    Two outputs at once may both find the last room, so a bound can be exceeded by a few outputs.
    """
    files = OutputFile.objects.all()
    bounds = (
        (files.filter(session__owner=owner_id), "OUTPUT_MEGABYTES_PER_USER", "your"),
        (files, "OUTPUT_MEGABYTES", "all"),
    )
    for rows, setting, whose in bounds:
        megabytes = settings.CHATCORE[setting]
        if _add_up(rows) + size > megabytes * MEGABYTE:
            raise StoreFull(
                f"There is no room left for whole outputs of tools: {whose} outputs"
                f" have at most {megabytes:,} MB. Nothing was stored."
            )


def _add_up(rows: QuerySet[OutputFile]) -> int:
    """Return the bytes of the files; one that forks share counts once."""
    sizes = rows.order_by().values("name", "size").distinct()
    return sizes.aggregate(total=Sum("size"))["total"] or 0


def _find_unused(names: Sequence[str]) -> set[str]:
    unused_names = set(names)
    for start in range(0, len(names), BATCH_SIZE):
        rows = OutputFile.objects.filter(name__in=names[start : start + BATCH_SIZE])
        unused_names.difference_update(rows.values_list("name", flat=True))
    return unused_names


def _list_folders(storage: Storage) -> Iterator[list[str]]:
    """Yield the names of the files of each folder."""
    try:
        folders, _ = storage.listdir("")
    except FileNotFoundError:  # nothing was ever stored
        return
    for folder in folders:
        yield [f"{folder}/{name}" for name in storage.listdir(folder)[1]]


def _is_older(storage: Storage, name: str, moment: Any) -> bool:
    try:
        return storage.get_modified_time(name) < moment
    except FileNotFoundError:  # another process has deleted it
        return False
