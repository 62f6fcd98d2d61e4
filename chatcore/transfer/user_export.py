"""Everything that is a user's, in one ZIP file: sessions with all versions, and the other rows."""

import io
import json
import re
import zipfile
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import IO, Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from chatcore.accounts.user_erasure import list_owned_tables
from chatcore.base.threads import run_in_thread
from chatcore.models import Project, Session
from chatcore.projects.export import export_project
from chatcore.transfer import exporter

PROFILE_FIELDS = ("username", "email", "first_name", "last_name", "date_joined", "last_login")
# A column of such a name may open something, and is of no use to its owner.
_SECRET_NAME = re.compile(r"encrypted|digest|secret|password|hash|(^|_)(key|token|data)$")
BATCH_SIZE = 500


def write_user_export(user: AbstractBaseUser, file: IO[bytes]) -> int:
    """Write the user's data into a file as ZIP; return the number of sessions."""
    count = 0
    for name, chunk in _write_parts(user):
        file.write(chunk)
        count += name.startswith("sessions/")
    return count


async def stream_user_export(user: AbstractBaseUser) -> AsyncGenerator[bytes]:
    """Yield the user's data as ZIP while it is read, one session at a time."""
    parts = _write_parts(user)
    while part := await run_in_thread(next, parts, None):
        yield part[1]


def _write_parts(user: AbstractBaseUser) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each file of the archive, and the archive's bytes up to its end.

    `sessions/ID.json` can be imported again; `projects/ID.json` has a project with its files.
    `rows/` has the rows of other tables that belong to the user, as JSON, without anything secret.
    No query is open between two parts, because each may run in another thread.
    """
    buffer = _Buffer()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, load in _list_files(user):
            value = load()
            if value:
                _write_json(archive, name, value)
                yield name, buffer.take()
    yield "", buffer.take()


def _list_files(user: AbstractBaseUser) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each file, and what loads its content; nothing where that is gone."""
    yield "profile.json", lambda: {name: getattr(user, name, None) for name in PROFILE_FIELDS}
    sessions = Session.objects.filter(owner=user.pk).order_by("created_at", "pk")
    for pk in list(sessions.values_list("pk", flat=True)):
        yield f"sessions/{pk}.json", partial(_load_session, user, pk)
    projects = Project.objects.filter(owner=user.pk).order_by("created_at", "pk")
    for pk in list(projects.values_list("pk", flat=True)):
        yield f"projects/{pk}.json", partial(_load_project, user, pk)
    for model, field_name in list_owned_tables(get_user_model()):
        if not getattr(model, "is_exported", True):
            continue
        name = f"rows/{model._meta.label_lower}.{field_name}.json"
        yield name, partial(_load_rows, model, field_name, user)


def _load_session(user: AbstractBaseUser, pk: UUID) -> dict[str, object] | None:
    sessions = Session.objects.filter(owner=user.pk).select_related("model__provider")
    session = sessions.filter(pk=pk).first()
    return exporter.export_session(session) if session else None


def _load_project(user: AbstractBaseUser, pk: UUID) -> dict[str, object] | None:
    project = Project.objects.filter(owner=user.pk, pk=pk).first()
    return export_project(project) if project else None


class _Buffer(io.RawIOBase):
    """Takes what a ZIP file writes, until it is fetched."""

    def __init__(self) -> None:
        self._content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._content += content
        return len(content)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        content, self._content = bytes(self._content), bytearray()
        return content


def _load_rows(model: type[Model], field_name: str, user: AbstractBaseUser) -> list[object]:
    names = [
        field.attname
        for field in model._meta.concrete_fields
        if not _SECRET_NAME.search(field.name)
    ]
    owned_rows = model._base_manager.filter(**{field_name: user.pk}).order_by("pk")
    return list(owned_rows.values(*names).iterator(chunk_size=BATCH_SIZE))


def _write_json(archive: zipfile.ZipFile, name: str, value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1, cls=DjangoJSONEncoder)
    archive.writestr(name, text)
