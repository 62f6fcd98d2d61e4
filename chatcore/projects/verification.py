"""Check that stored projects are consistent; the command `verify` prints what is not."""

from collections.abc import Iterator
from uuid import UUID

from chatcore.files import output_store
from chatcore.models import Project, ProjectFile
from chatcore.projects.system_text import count_text_chars
from chatcore.providers.base import File


def check_project(project_id: UUID) -> list[str]:
    """Return a sentence for each rule that the stored project breaks; none if it is deleted."""
    project = Project.objects.filter(pk=project_id).first()
    return list(_find_violations(project)) if project else []


def _find_violations(project: Project) -> Iterator[str]:
    foreign_sessions = project.sessions.exclude(owner=project.owner_id)
    for pk in foreign_sessions.values_list("pk", flat=True):
        yield f"session {pk} of another owner is in it"
    for file in project.files.defer("data").iterator(chunk_size=1):
        yield from _check_file(file)


def _check_file(file: ProjectFile) -> Iterator[str]:
    sent_file = File(name=file.name, size=file.size, text=file.text)
    sent_chars = count_text_chars(sent_file)
    if file.sent_chars != sent_chars:
        yield f"sent_chars of file {file.pk} is {file.sent_chars}, but its text takes {sent_chars}"
    if file.store_name and not output_store.has_file(file.store_name):
        yield f"what belongs to file {file.pk} is not in the store of files and outputs"
