"""Keep whole outputs of tools, and uploaded files, outside the database.

They are in the storage that STORAGES["outputs"] names: a folder, or a bucket of object storage.
Outputs are there within bounds, uploaded files only with CHATCORE's FILES_IN_STORE. An object is
written before the transaction that stores its row, and deleted after the one that deletes its last
row; what a failure leaves in between is swept. A project without such a storage keeps all of it in
the database.
"""

import contextlib
import hashlib
import logging
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import DatabaseError
from django.db.models import QuerySet, Sum

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.outages import StorageAway
from chatcore.base.paused_deletion import note_problem
from chatcore.base.threads import give_back_connection
from chatcore.models import Attachment, Installation, OutputFile, ProjectFile

logger = logging.getLogger(__name__)

ALIAS = "outputs"
MEGABYTE = 1024 * 1024
OWNER_FILE = "installation"  # its content is the key of the database that the files belong to
# Longer than any import takes from its first file to its last row.
ORPHAN_AGE = timedelta(hours=1)
BATCH_SIZE = 500  # names of one query


class StoreFull(Exception):
    """There is no room for another output, for this user or for anyone."""


class OutputLost(Exception):
    """The content of an output or a file is gone."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A content in the store that may have no row yet."""

    name: str
    size: int  # bytes

    def attach(self, attachment: Attachment) -> None:
        """Store that the content belongs to a stored attachment, in the same transaction."""
        OutputFile.objects.create(
            attachment=attachment,
            session_id=attachment.session_id,
            name=self.name,
            size=self.size,
        )


def has_store() -> bool:
    """Return True if outputs are kept outside the database."""
    return ALIAS in settings.STORAGES


def save_text(owner_id: int | None, text: str) -> StoredObject:
    """Write a whole output to a name that nobody can guess. Do it outside any transaction.

    Raises StoreFull, StorageAway, and what a file system raises.
    """
    data = text.encode()
    _require_space(owner_id, len(data))
    give_back_connection()
    token = secrets.token_hex(16)
    return _save(f"{token}.txt", data)


def save_bytes(data: bytes) -> StoredObject:
    """Write a content under a name of its own. Raises StorageAway, and what a file system raises.

    The name begins with the SHA-256 of the content, so that it can be checked. The rest is random:
    one object belongs to one upload, and deleting it never takes what somebody else has just sent.
    """
    return _save(f"{hashlib.sha256(data).hexdigest()}-{secrets.token_hex(8)}", data)


def put_data_away(attachment: Attachment) -> StoredObject | None:
    """Move the bytes of an unsaved file into the store; None if they stay in its row.

    Its text stays in the row, because requests to models need it. Raises what `save_bytes` raises.
    """
    is_kept = settings.CHATCORE["FILES_IN_STORE"] and has_store()
    if not is_kept or not attachment.data or attachment.kind != Attachment.Kind.FILE:
        return None
    stored_object = save_bytes(bytes(attachment.data))
    attachment.data = b""
    return stored_object


def read_text(output: Attachment) -> str:
    """Return the whole text of an output. Raises OutputLost and StorageAway."""
    file = OutputFile.objects.filter(attachment=output).first()
    if file is None:  # stored by an earlier version, or without a store
        return output.text
    try:
        return read_object(file.name).decode()
    except ValueError:
        raise OutputLost("The output is no longer kept.") from None


def fetch_bytes(attachment: Attachment) -> bytes:
    """Do what `read_bytes` does, for a request that reads nothing else meanwhile.

    The store may be a slow bucket, so it is asked without a database connection in hand.
    """
    if attachment.kind != Attachment.Kind.OUTPUT and not attachment.data:
        file = OutputFile.objects.filter(attachment=attachment).first()
        if file:
            give_back_connection()
            return read_object(file.name)
    return read_bytes(attachment)


def read_bytes(attachment: Attachment) -> bytes:
    """Return the content of a file or an output. Raises OutputLost and StorageAway."""
    if attachment.kind == Attachment.Kind.OUTPUT:
        return read_text(attachment).encode()
    if attachment.data:
        return bytes(attachment.data)
    file = OutputFile.objects.filter(attachment=attachment).first()
    return read_object(file.name) if file else attachment.text.encode()


def read_objects(attachment_ids: Collection[UUID]) -> Iterator[tuple[UUID, bytes]]:
    """Yield ids and contents of those attachments whose bytes are in the store and not lost."""
    files = OutputFile.objects.filter(attachment__in=attachment_ids)
    for pk, name in files.values_list("attachment_id", "name"):
        with contextlib.suppress(OutputLost):
            yield pk, read_object(name)


def iterate_names() -> Iterator[str]:
    """Yield the names of the objects that rows refer to, each once."""
    files = OutputFile.objects.order_by("name").values_list("name", flat=True).distinct()
    yield from files.iterator()
    project_files = ProjectFile.objects.exclude(store_name="").order_by("store_name")
    yield from project_files.values_list("store_name", flat=True).iterator()


def read_object(name: str) -> bytes:
    """Return the content of an object. Raises OutputLost and StorageAway."""
    try:
        with _name_outage(), _get_storage().open(name) as stream:
            content: bytes = stream.read()
            return content
    except OSError as error:
        logger.warning("object %s cannot be read: %s", name, type(error).__name__)
        raise OutputLost("The output is no longer kept.") from None


def has_file(name: str) -> bool:
    """Return True if the store has a file of this name. Raises StorageAway."""
    with _name_outage():
        return has_store() and _get_storage().exists(name)


def delete_unused(names: Sequence[str]) -> int:
    """Delete those of the files that no row refers to; return how many. Do it after a commit."""
    if not names or not has_store():
        return 0
    storage = _get_storage()
    unused_names = _find_unused(names)
    with _name_outage():
        for name in unused_names:
            storage.delete(name)
    return len(unused_names)


def sweep_orphans() -> int:
    """Delete files that have had no row for ORPHAN_AGE; return how many."""
    if not has_store():
        return 0
    storage = _get_storage()
    problem = _find_foreign_owner(storage)
    note_problem("files", problem)
    if problem:
        return 0
    written_before = read_clock() - ORPHAN_AGE
    count = 0
    with _name_outage():
        for names in _list_folders(storage):
            unused_names = _find_unused(names)
            orphans = [name for name in unused_names if _is_older(storage, name, written_before)]
            count += delete_unused(orphans)
    return count


def claim_store() -> None:
    """Make the store of files this installation's, whoever had it before. Raises StorageAway."""
    storage = _get_storage()
    with _name_outage():
        if storage.exists(OWNER_FILE):
            storage.delete(OWNER_FILE)
        storage.save(OWNER_FILE, ContentFile(str(Installation.load().key).encode()))


def _find_foreign_owner(storage: Storage) -> str:
    """Return why nothing is swept here: the files may be those of another database.

    A copy of a database, as one makes to rehearse a restore, has no rows of what was stored since,
    and would delete it.
    """
    own_key = str(Installation.load().key)
    with _name_outage():
        if not storage.exists(OWNER_FILE):
            claim_store()
            return ""
        with storage.open(OWNER_FILE) as file:
            owner_key = file.read(100).decode(errors="replace").strip()
    if owner_key == own_key:
        return ""
    return (
        "The store of files belongs to another database, so unused files stay."
        " If nothing else uses it, `chatcore move_files --claim` makes it this one's."
    )


def _save(name: str, data: bytes) -> StoredObject:
    # Two levels, because folders with very many files are slow.
    with _name_outage():
        return StoredObject(_get_storage().save(f"{name[:2]}/{name}", ContentFile(data)), len(data))


def _get_storage() -> Storage:
    return storages[ALIAS]


@contextlib.contextmanager
def _name_outage() -> Iterator[None]:
    """Raise StorageAway for what a client of object storage raises; its errors name addresses.

    The errors of a file system say themselves what they are.
    """
    try:
        yield
    except (OSError, SuspiciousFileOperation, DatabaseError, StorageAway):
        raise
    except Exception as error:
        logger.warning("the storage of files did not answer: %s", type(error).__name__)
        raise StorageAway from error


def _require_space(owner_id: int | None, size: int) -> None:
    """Raise StoreFull where a file of this size is too much.

    Two outputs at once may both find the last room, so a bound can be exceeded by a few outputs.
    """
    files = OutputFile.objects.filter(attachment__kind=Attachment.Kind.OUTPUT)
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
        some_names = names[start : start + BATCH_SIZE]
        rows = OutputFile.objects.filter(name__in=some_names)
        unused_names.difference_update(rows.values_list("name", flat=True))
        project_files = ProjectFile.objects.filter(store_name__in=some_names)
        unused_names.difference_update(project_files.values_list("store_name", flat=True))
    return unused_names


def _list_folders(storage: Storage) -> Iterator[list[str]]:
    """Yield the names of the files of each folder."""
    try:
        folders, _ = storage.listdir("")
    except FileNotFoundError:  # nothing was ever stored
        return
    for folder in folders:
        yield [f"{folder}/{name}" for name in storage.listdir(folder)[1]]


def _is_older(storage: Storage, name: str, moment: datetime) -> bool:
    try:
        return storage.get_modified_time(name) < moment
    except FileNotFoundError:  # another process has deleted it
        return False
