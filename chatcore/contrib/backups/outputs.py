"""The whole outputs of tools, which are files outside the database, in a backup."""

from collections.abc import Iterator

from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.files.storage import storages

from chatcore.contrib.backups.archive import InvalidBackup
from chatcore.files import output_store


def read_outputs() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each output that a row refers to.

    Call it after the database was copied: the file of a row is written before the row. One that is
    deleted meanwhile is left out.
    """
    if not output_store.has_store():
        return
    storage = storages[output_store.ALIAS]
    for name in output_store.iterate_names():
        try:
            with storage.open(name) as file:
                yield name, file.read()
        except FileNotFoundError:
            continue


def store_output(name: str, content: bytes) -> None:
    """Put an output into the store under the name that its row has. Raises InvalidBackup."""
    try:
        if not output_store.has_file(name):
            storages[output_store.ALIAS].save(name, ContentFile(content))
    except SuspiciousFileOperation:
        raise InvalidBackup(f"No output is called {name!r}.") from None
