"""Change projects: make one, edit what it says, take files in and out, delete it.

What a project says is no part of a session's context: a change concerns every chat of the project
from its next request on, and no session is written.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from chatcore.base.databases.person_lock import lock_person
from chatcore.base.keeping import refuse_if_kept, refuse_lost_words
from chatcore.files import intake, output_store
from chatcore.files.intake import FileRejected
from chatcore.models import Project, ProjectFile, Session
from chatcore.projects.system_text import count_text_chars
from chatcore.providers.base import File

MAX_PROJECTS = 200  # of a user
MAX_RULES = 50
RULE_CHARS = 500
MAX_FILES = intake.MAX_FILES


class TooManyProjects(Exception):
    """The user has as many projects as anyone may have."""

    def __init__(self) -> None:
        super().__init__(f"There are already {MAX_PROJECTS} projects, the most. Delete some first.")


class TooManyFiles(Exception):
    """The project has as many files as it may have."""

    def __init__(self) -> None:
        super().__init__(f"The project already has {MAX_FILES} files, the most. Delete some first.")


def create_project(owner: Any, values: Mapping[str, object]) -> Project:
    """Store a new project and return it. Raises TooManyProjects."""
    with transaction.atomic():
        lock_person(owner.pk)
        if Project.objects.filter(owner=owner).count() >= MAX_PROJECTS:
            raise TooManyProjects
        return Project.objects.create(owner=owner, **values)


def edit_project(
    project_id: UUID,
    values: Mapping[str, object],
    *,
    check: Callable[[Project], None] | None = None,
) -> Project:
    """Write columns of a project and return it. Raises Project.DoesNotExist, and Kept.

    `check` is called with the locked project, and what it raises keeps the project as it is.
    """
    with transaction.atomic():
        project = lock_project(project_id)
        if check:
            check(project)
        refuse_lost_words(project.owner_id, project, values)
        for name, value in values.items():
            setattr(project, name, value)
        project.edited_at = timezone.now()
        project.save(update_fields=[*values, "edited_at"])
    return project


def delete_project(project_id: UUID, *, check: Callable[[Project], None] | None = None) -> int:
    """Delete a project with its files; return how many chats have left it, and stay.

    `check` is called with the locked project. Raises Project.DoesNotExist, and Kept if the
    owner's words must stay.
    """
    with transaction.atomic():
        project = lock_project(project_id)
        if check:
            check(project)
        refuse_if_kept(project.owner_id)
        count = Session.objects.filter(project=project).count()
        # Those that nobody sees too.
        Session.all_objects.filter(project=project).update(
            project=None, overhead_since=timezone.now()
        )
        project.delete()
    return count


def add_file(project: Project, *, name: str, data: bytes) -> ProjectFile:
    """Inspect a file and store it in the project. Raises FileRejected and TooManyFiles.

    Models are sent the text, so a file without any is refused.
    """
    if project.files.count() >= MAX_FILES:
        raise TooManyFiles
    attachment = intake.inspect_file(name=name, data=data, owner_id=project.owner_id)
    if not attachment.text.strip():
        raise FileRejected(
            "A project takes only files with text: texts, and PDF and office files that have any."
        )
    sent_file = File(name=attachment.name, size=attachment.size, text=attachment.text)
    stored_object = output_store.put_data_away(attachment)
    with transaction.atomic():
        project = lock_project(project.pk)
        # Another upload may have come before the lock.
        if project.files.count() >= MAX_FILES:
            raise TooManyFiles
        file = ProjectFile.objects.create(
            project=project,
            name=attachment.name,
            media_type=attachment.media_type,
            size=attachment.size,
            sent_chars=count_text_chars(sent_file),
            store_name=stored_object.name if stored_object else "",
            data=attachment.data,
            text=attachment.text,
        )
        _note_edit(project)
    return file


def delete_file(file: ProjectFile) -> None:
    """Delete a file of a project. Raises Kept if the owner's words must stay."""
    with transaction.atomic():
        project = lock_project(file.project_id)
        refuse_if_kept(project.owner_id)
        file.delete()
        if file.store_name:
            delete = partial(output_store.delete_unused, [file.store_name])
            transaction.on_commit(delete, robust=True)
        _note_edit(project)


def read_file(file: ProjectFile) -> bytes:
    """Return the content of a file. Raises OutputLost and StorageAway."""
    if file.store_name:
        return output_store.read_object(file.store_name)
    return bytes(file.data) or file.text.encode()


def lock_project(project_id: UUID) -> Project:
    """Return the project with its row locked until the transaction ends. Raises DoesNotExist."""
    return Project.objects.select_for_update(of=("self",)).get(pk=project_id)


def _note_edit(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(edited_at=timezone.now())
