"""Store a project of an export: its instructions, files and chats. What is here already stays."""

from typing import Any

from django.utils import timezone

from chatcore.base.truncation import clean_text
from chatcore.contrib.imports.conversation import ChatFile, ForeignProject
from chatcore.contrib.imports.models import Import
from chatcore.files.intake import FileRejected
from chatcore.models import Project, Session
from chatcore.projects import changes
from chatcore.transfer.reader import MAX_MESSAGE_BYTES

MORE_FILES = "more documents.md"


def store_project(owner: Any, foreign: ForeignProject, *, product: str) -> list[str]:
    """Store what is new of a project; return what of it does not come, in words.

    The project of the same name and date is the same. Raises TooManyProjects.
    """
    name = " ".join(clean_text(foreign.name).split())[:200] or "Project"
    dates = {"created_at": foreign.created_at} if foreign.created_at else {}
    project = Project.objects.filter(owner=owner, name=name, **dates).first()
    if project is None:
        project = changes.create_project(owner, {"name": name, **dates})
    if not project.instructions and not project.rules:
        words = clean_text(foreign.instructions).encode()[:MAX_MESSAGE_BYTES]
        rules = [" ".join(rule.split())[: changes.RULE_CHARS] for rule in foreign.rules]
        values = {
            "instructions": words.decode(errors="ignore"),
            "rules": [rule for rule in rules if rule][: changes.MAX_RULES],
        }
        if any(values.values()):
            project = changes.edit_project(project.pk, values)
    notes = _add_files(project, foreign.files)
    chats = Session.objects.filter(
        owner=owner,
        project=None,
        imported_as__owner=owner,
        imported_as__product=product,
        imported_as__foreign_id__in=foreign.chats,
    )
    chats.update(project=project, overhead_since=timezone.now())
    return notes


def count_projects(row: Import) -> int:
    """Return how many projects an import has brought, or brought something new of."""
    ended_at = row.finished_at or timezone.now()
    return Project.objects.filter(
        owner=row.owner_id, edited_at__gte=row.created_at, edited_at__lte=ended_at
    ).count()


def _add_files(project: Project, files: list[ChatFile]) -> list[str]:
    notes = []
    known_names = set(project.files.values_list("name", flat=True))
    for file in _join_surplus(files):
        if file.name in known_names:
            continue
        data = file.load()
        if data is None:
            notes.append(f"{file.name} is not in the export.")
            continue
        try:
            changes.add_file(project, name=file.name, data=data)
        except (FileRejected, changes.TooManyFiles) as error:
            notes.append(f"{file.name}: {error}")
    return notes


def _join_surplus(files: list[ChatFile]) -> list[ChatFile]:
    """Return as many files as a project may have; texts that are too many stand in the last."""
    if len(files) <= changes.MAX_FILES:
        return files
    kept, rest = files[: changes.MAX_FILES - 1], files[changes.MAX_FILES - 1 :]
    texts = [(file.name, (file.load() or b"").decode(errors="replace")) for file in rest]
    words = "\n\n".join(f"# {name}\n\n{text}" for name, text in texts)
    return [*kept, ChatFile.from_text(MORE_FILES, words)]
