"""Name the files of messages that a request no longer sends, and load their texts.

The names stand beside the summary. They are read for each request, so that those of a deleted
message or file are gone at once.
"""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from chatcore.files.rendering import NAME_ESCAPES
from chatcore.models import Attachment, ContextEdit, Message, Session

HEADING = "Files that were attached to earlier messages, the newest first. Their text is not here:"
REST = "- and {count:,} older ones"
LARGE_SHARE = 0.25  # of the window; files that take less beside each other are not cut
MAX_NAMED = 20
MAX_CHARS = 2_000  # of all lines together
MAX_NAME_CHARS = 120


@dataclass(frozen=True, kw_only=True)
class PastFiles:
    """The lines that name the files; `has_texts` says whether any may have text to read."""

    text: str = ""
    has_texts: bool = False


NO_FILES = PastFiles()


def load_past_files(
    session_id: UUID, boundary_seq: int | None, kept_seqs: Collection[int] = ()
) -> PastFiles:
    """Return the files of messages before the boundary, and of those that are shown shortened.

    Pinned and kept messages are sent with their files. Takes one query, and two more where there
    are many files.
    """
    files = _query_past_files(session_id, boundary_seq, kept_seqs)
    columns = ("name", "media_type", "size", "message__seq")
    rows = list(files.values_list(*columns)[: MAX_NAMED + 1])
    if not rows:
        return NO_FILES
    lines = _fit_lines([_describe_file(*row) for row in rows[:MAX_NAMED]])
    has_texts = not all(_is_image(media_type) for _, media_type, *_ in rows)
    if len(rows) > len(lines):
        lines.append(REST.format(count=files.count() - len(lines)))
        has_texts = has_texts or files.exclude(media_type__startswith="image/").exists()
    return PastFiles(text="\n".join((HEADING, *lines)), has_texts=has_texts)


def has_large_files(session: Session) -> bool:
    """Return True if the texts of all files may find no room beside each other, and be cut."""
    window = session.model.request_limit if session.model else None
    if window is None:
        return False
    texts = query_files(session.pk).exclude(media_type__startswith="image/")
    tokens = texts.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
    return bool(tokens > window * LARGE_SHARE)


def query_files(session_id: UUID) -> QuerySet[Attachment]:
    """Return the files of the session's current messages, the newest first."""
    return Attachment.objects.filter(
        session=session_id,
        kind=Attachment.Kind.FILE,
        message__branch=None,
        message__status__in=[Message.Status.COMPLETE, Message.Status.INTERRUPTED],
    ).order_by("-message__seq", "-created_at", "-id")


def name_file(name: str) -> str:
    """Return a file's name as the lines have it: on one line, and not too long."""
    name = " ".join(name.translate(NAME_ESCAPES).split())
    if len(name) <= MAX_NAME_CHARS:
        return name
    half = MAX_NAME_CHARS // 2
    return f"{name[:half]}…{name[-half:]}"


def _query_past_files(
    session_id: UUID, boundary_seq: int | None, kept_seqs: Collection[int]
) -> QuerySet[Attachment]:
    edits = ContextEdit.objects.filter(message=OuterRef("message"), until_version=None)
    # What a provider refused is hidden from it, its name too.
    shortened = Exists(edits.exclude(kind=ContextEdit.Kind.HIDDEN))
    early = Q(message__seq__lt=boundary_seq or 0, message__pinned=False)
    if kept_seqs:
        early &= ~Q(message__seq__in=list(kept_seqs))
    hidden = Exists(edits.filter(kind=ContextEdit.Kind.HIDDEN))
    return query_files(session_id).filter(~hidden, early | Q(shortened))


def _describe_file(name: str, media_type: str, size: int, seq: int) -> str:
    return f'- "{name_file(name)}" ({media_type}, {size:,} bytes, message {seq})'


def _fit_lines(lines: list[str]) -> list[str]:
    fitting_lines: list[str] = []
    room = MAX_CHARS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting_lines.append(line)
    return fitting_lines


def _is_image(media_type: str) -> bool:
    return media_type.startswith("image/")
