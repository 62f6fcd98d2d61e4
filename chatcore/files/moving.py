"""Move the bytes of files and outputs that are stored between the database and the store.

Each is moved by itself: written to its new place first, then its row is changed, then the old copy
goes. So this can be stopped at any moment and started again, and everybody may work meanwhile.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import transaction
from django.db.models import Q, QuerySet

from chatcore.files import output_store
from chatcore.files.output_store import StoredObject
from chatcore.models import Attachment, OutputFile, ProjectFile

R = TypeVar("R", Attachment, ProjectFile)
BATCH_SIZE = 100  # ids of one query


def move_to_store() -> int:
    """Move what is in the database's rows into the store; return how many. Raises StorageAway."""
    is_moved = Q(kind=Attachment.Kind.FILE) & ~Q(data=b"")
    is_moved |= Q(kind=Attachment.Kind.OUTPUT) & ~Q(text="")
    rows = Attachment.objects.filter(is_moved, file=None, session__discard_at=None)
    count = sum(_move_row_to_store(attachment) for attachment in _iterate_rows(rows))
    project_files = ProjectFile.objects.filter(store_name="").exclude(data=b"")
    return count + sum(_move_project_file_to_store(file) for file in _iterate_rows(project_files))


def move_to_database() -> int:
    """Move what is in the store into the rows, and delete the objects; return how many.

    Raises StorageAway, and OutputLost for an object that is gone.
    """
    rows = Attachment.objects.exclude(file=None)
    count = sum(_move_row_to_database(attachment) for attachment in _iterate_rows(rows))
    project_files = ProjectFile.objects.exclude(store_name="")
    return count + sum(
        _move_project_file_to_database(file) for file in _iterate_rows(project_files)
    )


def copy_folder(folder: Path) -> int:
    """Put the objects of a folder that the store lacks into it; return how many.

    The folder is where outputs were before the store became a bucket. It stays as it is.
    """
    count = 0
    for name in output_store.iterate_names():
        path = folder / name
        if path.is_file() and not output_store.has_file(name):
            storages[output_store.ALIAS].save(name, ContentFile(path.read_bytes()))
            count += 1
    return count


def _iterate_rows(rows: QuerySet[R]) -> Iterator[R]:
    """Yield the rows with their contents, one at a time: each may have megabytes."""
    last_pk = None
    while True:
        page = rows.order_by("pk")
        if last_pk is not None:
            page = page.filter(pk__gt=last_pk)
        pks = list(page.values_list("pk", flat=True)[:BATCH_SIZE])
        if not pks:
            return
        for pk in pks:
            with contextlib.suppress(ObjectDoesNotExist):  # deleted meanwhile
                yield rows.model._default_manager.get(pk=pk)
        last_pk = pks[-1]


def _move_row_to_store(attachment: Attachment) -> bool:
    is_output = attachment.kind == Attachment.Kind.OUTPUT
    data = attachment.text.encode() if is_output else bytes(attachment.data)
    stored_object = output_store.save_bytes(data)
    if _empty_row(attachment, stored_object, "text" if is_output else "data"):
        return True
    output_store.delete_unused([stored_object.name])
    return False


def _empty_row(attachment: Attachment, stored_object: StoredObject, column: str) -> bool:
    """Point the row to the object in place of its column; False if another one did, or it is gone.

    A file that is sent at this moment keeps its message: no other column is written.
    """
    with transaction.atomic():
        rows = Attachment.objects.select_for_update(of=("self",)).filter(pk=attachment.pk)
        if not rows.exists() or OutputFile.objects.filter(attachment=attachment).exists():
            return False
        stored_object.attach(attachment)
        rows.update(**{column: "" if column == "text" else b""})
    return True


def _move_row_to_database(attachment: Attachment) -> bool:
    file = OutputFile.objects.filter(attachment=attachment).first()
    if file is None:
        return False
    content = output_store.read_object(file.name)
    is_output = attachment.kind == Attachment.Kind.OUTPUT
    values = {"text": content.decode()} if is_output else {"data": content}
    with transaction.atomic():
        if not OutputFile.objects.filter(pk=file.pk).delete()[0]:
            return False
        Attachment.objects.filter(pk=attachment.pk).update(**values)
    output_store.delete_unused([file.name])
    return True


def _move_project_file_to_store(file: ProjectFile) -> bool:
    stored_object = output_store.save_bytes(bytes(file.data))
    rows = ProjectFile.objects.filter(pk=file.pk, store_name="")
    if rows.update(store_name=stored_object.name, data=b""):
        return True
    output_store.delete_unused([stored_object.name])
    return False


def _move_project_file_to_database(file: ProjectFile) -> bool:
    content = output_store.read_object(file.store_name)
    rows = ProjectFile.objects.filter(pk=file.pk, store_name=file.store_name)
    if not rows.update(store_name="", data=content):
        return False
    output_store.delete_unused([file.store_name])
    return True
