"""Tell a session's model what its project says: instructions, rules and files, word for word.

The text stands before the session's own system prompt. It is the same in every chat of the project
with the same window, so a provider's cache serves all of them, and no compaction touches it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Case, Sum, TextField, Value, When

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.files.rendering import NAME_ESCAPES, fence_text
from chatcore.models import Project, ProjectFile, Session
from chatcore.providers.base import File

FILE_SHARE = 4  # all files together take at most this part of the context window
UNKNOWN_WINDOW = 32_768  # tokens; what the share is of where nobody knows the window

INSTRUCTIONS = 'Instructions of the project "{name}":\n{text}'
RULES = 'Standing rules of the project "{name}". Keep each of them in every answer:\n{lines}'
FILES = 'Files of the project "{name}":'
LEFT_OUT = (
    'Of the project "{name}" these files are not shown, because the files that are shown would'
    " take more than their share of the context window. Look into them with the tool"
    " search_project_files if you have it; else say so where an answer needs them:\n{lines}"
)


@dataclass(frozen=True, kw_only=True)
class SharedFile:
    """A file of a project. `chars` is what it takes in a request; the text may be left out."""

    name: str
    size: int
    chars: int
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class SharedText:
    """What a project says, and when that changed last."""

    name: str
    instructions: str
    rules: Sequence[str]
    files: Sequence[SharedFile]
    edited_at: datetime

    def render(self, max_chars: int) -> str:
        """Return the text for a model that takes files of so many characters; empty for nothing."""
        sent_files, left_out_files = choose_files(self.files, max_chars)
        name = self.name.translate(NAME_ESCAPES)
        parts = []
        if self.instructions:
            parts.append(INSTRUCTIONS.format(name=name, text=self.instructions))
        if self.rules:
            lines = "\n".join(f"- {rule}" for rule in self.rules)
            parts.append(RULES.format(name=name, lines=lines))
        if sent_files:
            parts.append(FILES.format(name=name))
            parts += [
                fence_text(File(name=file.name, size=file.size, text=file.text))
                for file in sent_files
            ]
        if left_out_files:
            lines = "\n".join(
                f"- {file.name.translate(NAME_ESCAPES)} ({file.size:,} bytes)"
                for file in left_out_files
            )
            parts.append(LEFT_OUT.format(name=name, lines=lines))
        return "\n\n".join(parts)

    def count_chars(self, max_chars: int) -> int:
        """Return the length of what `render` returns; no file's text needs to be loaded."""
        sent_files, _ = choose_files(self.files, max_chars)
        missing_chars = sum(
            file.chars - len(fence_text(File(name=file.name, size=file.size, text=file.text)))
            for file in sent_files
        )
        return len(self.render(max_chars)) + missing_chars


def build_system_text(session: Session) -> str:
    """Return what stands before the messages: what the project says, and the system prompt.

    This takes one query if the session is in a project, and none otherwise.
    """
    texts = [session.system_prompt]
    if session.project_id is not None:
        max_chars = count_file_chars(session.model.request_limit if session.model else None)
        shared_text = load_shared_text(session.project_id, max_chars=max_chars)
        if shared_text is not None:
            texts.insert(0, shared_text.render(max_chars))
    return join_texts(texts)


def join_texts(texts: Iterable[str | None]) -> str:
    """Return texts as one, with an empty line between two, without those that are empty."""
    return "\n\n".join(text for text in texts if text)


def count_file_chars(window: int | None) -> int:
    """Return how many characters the files of a project may take; `window` is in tokens."""
    return (window or UNKNOWN_WINDOW) // FILE_SHARE * CHARS_PER_TOKEN_ESTIMATE


def choose_files(
    files: Sequence[SharedFile], max_chars: int
) -> tuple[list[SharedFile], list[SharedFile]]:
    """Return the files that fit, in order, and those that are left out; none is cut."""
    sent_files: list[SharedFile] = []
    left_out_files: list[SharedFile] = []
    for file in files:
        fits = file.chars <= max_chars
        max_chars -= file.chars if fits else 0
        (sent_files if fits else left_out_files).append(file)
    return sent_files, left_out_files


def load_shared_text(project_id: UUID, *, max_chars: int = 0) -> SharedText | None:
    """Load what a project says, with the texts of files up to this length; None if it is deleted.

    With 0 no text is loaded, which is enough to count.
    """
    project = Project.objects.filter(pk=project_id)
    # One query with the files, because every request of a chat in a project needs it.
    sent_text = Case(
        When(files__sent_chars__lte=max_chars, then="files__text"),
        default=Value(""),
        output_field=TextField(),
    )
    rows = list(
        project.order_by("files__created_at", "files__id").values_list(
            "name",
            "instructions",
            "rules",
            "edited_at",
            "files__name",
            "files__size",
            "files__sent_chars",
            sent_text,
        )
    )
    if not rows:
        return None
    name, instructions, rules, edited_at = rows[0][:4]
    return SharedText(
        name=name,
        instructions=instructions,
        rules=rules,
        files=[
            SharedFile(name=file_name, size=size, chars=chars, text=text)
            for *_, file_name, size, chars, text in rows
            if file_name is not None
        ],
        edited_at=edited_at,
    )


def count_text_chars(file: File) -> int:
    """Return how many characters a file takes in a request."""
    return len(fence_text(file))


def has_left_out(session: Session) -> bool:
    """Return whether the session's model is not shown all files of its project."""
    if session.project_id is None:
        return False
    chars = ProjectFile.objects.filter(project=session.project_id).aggregate(sum=Sum("sent_chars"))
    window = session.model.request_limit if session.model else None
    return (chars["sum"] or 0) > count_file_chars(window)


def list_left_out(project: Project, window: int | None) -> list[SharedFile]:
    """Return the files of a project that a model with this window is not shown."""
    shared_text = load_shared_text(project.pk)
    return choose_files(shared_text.files, count_file_chars(window))[1] if shared_text else []
