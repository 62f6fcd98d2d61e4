"""Uploads in pieces, and the imports that are run from them by a worker.

The pieces are rows, so any machine may receive the next one, and the worker needs no folder in
common with the web processes. They are deleted when the import has ended.
"""

import io
import logging
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from datetime import timedelta
from typing import IO, Any, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import F, Q, QuerySet, Sum

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.outages import StorageAway
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.keeping import refuse_if_kept
from chatcore.contrib.imports.export_files import PositionedFile, UnreadableExport, open_export
from chatcore.contrib.imports.models import Import, ImportFile, ImportPart
from chatcore.contrib.imports.runs import (
    LEASE,
    ImportLost,
    ImportRun,
    delete_parts,
    end_import,
    keep_lease,
)
from chatcore.extension import exclude_kept

logger = logging.getLogger(__name__)

MAX_BYTES = 2_000_000_000  # of an import
MAX_FILES = 200
MAX_OPEN = 3  # imports of a person
MAX_ATTEMPTS = 20
ABANDONED_AFTER = timedelta(days=2)  # without a piece
KEPT_FOR = timedelta(days=30)  # the originals of chats that did not come whole
MAX_AT_ONCE = 8  # imports of a process that take turns; each has its files open
TURN_SECONDS = 1.0
BATCH_SIZE = 20


class UploadRefused(Exception):
    """An upload that may not begin; the text is for the person."""


class WrongOffset(Exception):
    """A piece that does not follow what was received."""

    def __init__(self, received: int) -> None:
        super().__init__(f"{received:,} bytes of this file were received; go on there.")
        self.received = received


def begin_upload(owner: User, files: Sequence[tuple[str, int]]) -> Import:
    """Create an import that waits for its files, given as names and sizes. Raises UploadRefused."""
    if not 0 < len(files) <= MAX_FILES:
        raise UploadRefused(f"An import has one to {MAX_FILES} files.")
    if not all(size > 0 for _, size in files) or sum(size for _, size in files) > MAX_BYTES:
        raise UploadRefused("The files of an import have at most 2 GB together, and none is empty.")
    open_imports = Import.objects.filter(owner=owner, status__in=Import.OPEN_STATUSES)
    with transaction.atomic():
        lock_person(owner.pk)
        if open_imports.count() >= MAX_OPEN:
            raise UploadRefused(f"{MAX_OPEN} imports are not over. Wait for one, or delete it.")
        row = Import.objects.create(owner=owner)
        ImportFile.objects.bulk_create(
            ImportFile(belongs_to=row, number=number, name=name[:255], size=size)
            for number, (name, size) in enumerate(files)
        )
    return row


def receive_part(file_id: UUID, row: Import, *, offset: int, data: bytes) -> ImportFile:
    """Store the next piece of a file; after the last of all files the import may run.

    Raises WrongOffset, and ImportFile.DoesNotExist.
    """
    with transaction.atomic():
        file = ImportFile.objects.select_for_update().get(pk=file_id, belongs_to=row)
        if offset != file.received or offset + len(data) > file.size:
            raise WrongOffset(file.received)
        ImportPart.objects.create(file=file, offset=offset, size=len(data), data=data)
        file.received += len(data)
        file.save(update_fields=["received"])
        incomplete = ImportFile.objects.filter(belongs_to=row, received__lt=F("size"))
        if not incomplete.exists():
            Import.objects.filter(pk=row.pk, status=Import.Status.RECEIVING).update(
                status=Import.Status.WAITING
            )
    return file


def run_due_jobs() -> int:
    """Run the imports that wait, and those whose process died; return how many were run.

    One import of each person takes turns with those of others, so none waits for a long one.
    """
    count = 0
    runs: deque[Generator[None]] = deque()
    try:
        while True:
            if len(runs) < MAX_AT_ONCE and (row := _claim()):
                runs.append(_run(row))
                count += 1
            if not runs:
                return count
            run = runs.popleft()
            if _take_turn(run):
                runs.append(run)
    finally:
        for run in runs:
            run.close()


def has_due_jobs() -> bool:
    """Return True if an import waits for a worker."""
    return _select_due().exists()


def prune_imports() -> int:
    """Delete uploads that nobody goes on with, and what became of old imports.

    Those of people of whom everything is kept stay.
    """
    now = read_clock()
    old = Import.objects.filter(
        Q(status=Import.Status.RECEIVING, created_at__lt=now - ABANDONED_AFTER)
        | Q(finished_at__lt=now - KEPT_FOR)
    )
    count = 0
    for row in exclude_kept(old, "owner")[:BATCH_SIZE]:
        delete_import(row)
        count += 1
    return count


def delete_import(row: Import) -> None:
    """Delete an import with its uploaded bytes and originals; the chats that came stay.

    Raises Kept if the owner's words must stay.
    """
    refuse_if_kept(row.owner_id)
    delete_parts(row)
    with transaction.atomic():
        row.delete()


def measure_upload(row: Import) -> tuple[int, int]:
    """Return how many bytes of how many were received."""
    sums = row.files.aggregate(received=Sum("received"), size=Sum("size"))
    return sums["received"] or 0, sums["size"] or 0


def _select_due() -> QuerySet[Import]:
    now = read_clock()
    is_abandoned = Q(status=Import.Status.RUNNING, lease_until__lt=now)
    # One that was sent in one piece has no bytes here, so nobody else can go on with it.
    due = Import.objects.filter(Q(status=Import.Status.WAITING) | is_abandoned)
    living = Import.objects.filter(status=Import.Status.RUNNING, lease_until__gte=now)
    return due.exclude(owner__in=living.values("owner")).order_by("created_at", "pk")


def _take_turn(run: Iterator[None]) -> bool:
    """Go on with an import for TURN_SECONDS; return True if it has not ended then."""
    end = time.monotonic() + TURN_SECONDS
    return any(time.monotonic() >= end for _ in run)


def _claim() -> Import | None:
    row = _select_due().first()
    while row is not None:
        claimed = _select_due().filter(pk=row.pk, attempts=row.attempts)
        if claimed.update(
            status=Import.Status.RUNNING,
            attempts=row.attempts + 1,
            lease_until=read_clock() + LEASE,
        ):
            claimed_row = Import.objects.select_related("owner").get(pk=row.pk)
            # The fence is the number that was written here. If the lease is over by now, the row
            # may hold that of another worker's claim.
            claimed_row.attempts = row.attempts + 1
            return claimed_row
        row = _select_due().first()
    return None


def _run(row: Import) -> Generator[None]:
    if not row.files.exists():
        end_import(row, Import.Status.FAILED, "The import broke off. Send the file again.")
        return
    if row.attempts > MAX_ATTEMPTS:
        end_import(row, Import.Status.FAILED, "The import broke off again and again.")
        return
    try:
        files = [(file.name, _open_file(file)) for file in row.files.all()]
        with keep_lease(row):
            yield from ImportRun(row).run(open_export(files))
    except UnreadableExport as error:
        end_import(row, Import.Status.FAILED, str(error))
    except (ImportLost, DatabaseError, StorageAway):
        # Somebody else has it, or goes on with it when the lease has ended.
        logger.warning("import %s stopped", row.pk, exc_info=True)
    except Exception:
        logger.exception("import %s failed", row.pk)
        end_import(row, Import.Status.FAILED, "The import failed. The log says why.")


def _open_file(file: ImportFile) -> IO[bytes]:
    return cast(IO[bytes], io.BufferedReader(_PartsReader(file), buffer_size=256 * 1024))


class _PartsReader(PositionedFile):
    """An uploaded file as a file, one piece of it in memory."""

    def __init__(self, file: ImportFile) -> None:
        super().__init__(file.size)
        rows = list(file.parts.order_by("offset").values_list("offset", "pk"))
        self._offsets = [offset for offset, _ in rows]
        self._pks = [pk for _, pk in rows]
        self._index = -1
        self._data = b""

    def readinto(self, buffer: Any) -> int:
        if self._position >= self._size:
            return 0
        index = bisect_right(self._offsets, self._position) - 1
        if index != self._index:
            part = ImportPart.objects.values_list("data", flat=True).get(pk=self._pks[index])
            self._index, self._data = index, bytes(part)
        start = self._position - self._offsets[index]
        piece = self._data[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
