"""Write a project as JSON values, for the export of all that is a user's."""

import base64

from chatcore.files.output_store import OutputLost
from chatcore.models import Project, ProjectFile
from chatcore.projects.changes import read_file


def export_project(project: Project) -> dict[str, object]:
    """Return what the project says, with its files. Raises StorageAway."""
    return {
        "id": project.pk,
        "name": project.name,
        "instructions": project.instructions,
        "rules": project.rules,
        "files": [_export_file(file) for file in project.files.all()],
        "sessions": list(project.sessions.values_list("pk", flat=True)),
        "created_at": project.created_at,
        "edited_at": project.edited_at,
    }


def _export_file(file: ProjectFile) -> dict[str, object]:
    values: dict[str, object] = {"name": file.name, "media_type": file.media_type}
    try:
        values["data"] = base64.b64encode(read_file(file)).decode()
    except OutputLost:
        values["lost"] = True
    return values
