"""What the model is shown of files: texts between fences that carry the name, images where it sees, a line in their place where not."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from chatcore.models import Attachment
from chatcore.providers.base import ChatMessage, File, Image, Request
from chatcore.sessions.token_estimate import estimate_tokens

FENCE = '<attached_file name="{name}">\n{text}\n</attached_file>'
NOT_SEEN = '[The image "{name}" was attached; this model cannot see images.]'
NOT_AGAIN = '[The image "{name}" was attached; it is not shown again.]'
NO_TEXT = '[The file "{name}" was attached; it holds no text that can be read.]'
IMAGE_BYTES = (
    20 * 1024 * 1024
)  # of one request: providers refuse more, and then every later request of the session
IMAGES = 50
_DELIMITER = re.compile(r"<(\s*/?\s*attached_file)", re.IGNORECASE)
_Rows = list[Any]  # of the columns of `attached`
_IN_NAMES = str.maketrans({'"': "'", "<": "‹", ">": "›"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Attached:
    """What the files of one message add to it: text behind its own, images, and the files in that text."""

    text: str = ""
    images: tuple[Image, ...] = ()
    files: tuple[File, ...] = ()

    def joined(self, message: ChatMessage) -> ChatMessage:
        """The message with its files."""
        content = "\n\n".join(part for part in (message.content, self.text) if part)
        tokens = message.token_estimate + (estimate_tokens(len(self.text)) if self.text else 0)
        return replace(
            message, content=content, images=self.images, files=self.files, token_estimate=tokens
        )


def attached(session_id: UUID, messages: Collection[int], *, sees: bool) -> dict[int, Attached]:
    """By message, of those that have files. `messages` are primary keys; `sees`: the model takes images.

    Two queries, one more for images. Of many images the newest are sent.
    """
    wanted = set(messages)
    known = Attachment.objects.filter(
        session=session_id, kind=Attachment.Kind.FILE, message__isnull=False
    ).order_by("created_at", "id")
    rows: _Rows = [
        row
        for row in known.values("id", "message_id", "name", "media_type", "size")
        if row["message_id"] in wanted
    ]
    if not rows:
        return {}
    pictures = _newest([row for row in rows if _is_image(row)]) if sees else []
    texts = dict(_of([row for row in rows if not _is_image(row)], "text"))
    images = {pk: bytes(data) for pk, data in _of(pictures, "data")}
    by_message: dict[int, _Rows] = {}
    for row in rows:
        by_message.setdefault(row["message_id"], []).append(row)
    return {pk: _attached(its, texts, images, sees=sees) for pk, its in by_message.items()}


def reworded(request: Request, texts: Sequence[str]) -> Request:
    """The request with other texts in its files, given in the order of its messages and their files."""
    given = iter(texts)
    return replace(
        request,
        messages=tuple(
            _reworded(message, [next(given) for _ in message.files]) for message in request.messages
        ),
    )


def fenced(file: File) -> str:
    """A file's text as it stands in its message; a fence inside it is none."""
    return FENCE.format(name=file.name.translate(_IN_NAMES), text=_DELIMITER.sub(r"‹\1", file.text))


def _reworded(message: ChatMessage, texts: Sequence[str]) -> ChatMessage:
    content, files = message.content, []
    for file, text in zip(message.files, texts, strict=True):
        files.append(replace(file, text=text))
        content = content.replace(fenced(file), fenced(files[-1]), 1)
    saved = (len(message.content) - len(content)) // 4
    return replace(
        message,
        content=content,
        files=tuple(files),
        token_estimate=max(1, message.token_estimate - saved),
    )


def _attached(
    rows: _Rows, texts: dict[UUID, str], images: dict[UUID, bytes], *, sees: bool
) -> Attached:
    parts, files = [], []
    for row in rows:
        name = row["name"].translate(_IN_NAMES)
        if texts.get(row["id"]):
            files.append(File(name=row["name"], size=row["size"], text=texts[row["id"]]))
            parts.append(fenced(files[-1]))
        elif not _is_image(row):
            parts.append(NO_TEXT.format(name=name))
        elif row["id"] not in images:
            parts.append((NOT_AGAIN if sees else NOT_SEEN).format(name=name))
    shown = tuple(
        Image(media_type=row["media_type"], data=images[row["id"]])
        for row in rows
        if row["id"] in images
    )
    return Attached(text="\n\n".join(parts), images=shown, files=tuple(files))


def _newest(rows: _Rows) -> _Rows:
    """As many of the newest as one request takes."""
    chosen: _Rows = []
    size = 0
    for row in reversed(rows):
        size += row["size"]
        if size > IMAGE_BYTES or len(chosen) == IMAGES:
            break
        chosen.append(row)
    return chosen


def _of(rows: _Rows, column: str) -> Any:
    if not rows:
        return ()
    return Attachment.objects.filter(pk__in=[row["id"] for row in rows]).values_list("id", column)


def _is_image(row: Any) -> bool:
    return bool(row["media_type"].startswith("image/"))
