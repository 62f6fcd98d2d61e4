"""What the model is shown of files: texts between fences that carry the name, images where it sees, a line in their place where not."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from chatcore.models import Attachment
from chatcore.providers.base import ChatMessage, File, Image, Request
from chatcore.sessions.token_estimate import CHARS_PER_TOKEN_ESTIMATE, estimate_tokens

FENCE = '<attached_file name="{name}">\n{text}\n</attached_file>'
IMAGE_UNSUPPORTED_NOTE = '[The image "{name}" was attached; this model cannot see images.]'
IMAGE_OMITTED_NOTE = '[The image "{name}" was attached; it is not shown again.]'
NO_TEXT_NOTE = '[The file "{name}" was attached; it holds no text that can be read.]'
IMAGE_BYTES = (
    20 * 1024 * 1024
)  # of one request: providers refuse more, and then every later request of the session
MAX_IMAGES = 50
_DELIMITER = re.compile(r"<(\s*/?\s*attached_file)", re.IGNORECASE)
_Rows = list[Any]  # of the columns of `attached`
_NAME_ESCAPES = str.maketrans({'"': "'", "<": "‹", ">": "›"})


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageFiles:
    """What the files of one message add to it: text behind its own, images, and the files in that text."""

    text: str = ""
    images: tuple[Image, ...] = ()
    files: tuple[File, ...] = ()

    def add_to_message(self, message: ChatMessage) -> ChatMessage:
        """The message with its files."""
        content = "\n\n".join(part for part in (message.content, self.text) if part)
        tokens = message.token_estimate + (estimate_tokens(len(self.text)) if self.text else 0)
        return replace(
            message, content=content, images=self.images, files=self.files, token_estimate=tokens
        )


def load_message_files(
    session_id: UUID, message_ids: Collection[int], *, accepts_images: bool
) -> dict[int, MessageFiles]:
    """By message, of those that have files. `messages` are primary keys; `sees`: the model takes images.

    Two queries, one more for images. Of many images the newest are sent.
    """
    id_set = set(message_ids)
    attachments = Attachment.objects.filter(
        session=session_id, kind=Attachment.Kind.FILE, message__isnull=False
    ).order_by("created_at", "id")
    rows: _Rows = [
        row
        for row in attachments.values("id", "message_id", "name", "media_type", "size")
        if row["message_id"] in id_set
    ]
    if not rows:
        return {}
    image_rows = (
        _select_newest_images([row for row in rows if _is_image(row)]) if accepts_images else []
    )
    texts = dict(_load_column([row for row in rows if not _is_image(row)], "text"))
    images = {pk: bytes(data) for pk, data in _load_column(image_rows, "data")}
    rows_by_message: dict[int, _Rows] = {}
    for row in rows:
        rows_by_message.setdefault(row["message_id"], []).append(row)
    return {
        pk: _build_message_files(message_rows, texts, images, accepts_images=accepts_images)
        for pk, message_rows in rows_by_message.items()
    }


def replace_file_texts(request: Request, texts: Sequence[str]) -> Request:
    """The request with other texts in its files, given in the order of its messages and their files."""
    text_iterator = iter(texts)
    return replace(
        request,
        messages=tuple(
            _replace_texts(message, [next(text_iterator) for _ in message.files])
            for message in request.messages
        ),
    )


def fence_text(file: File) -> str:
    """A file's text as it stands in its message; a fence inside it is none."""
    return FENCE.format(
        name=file.name.translate(_NAME_ESCAPES), text=_DELIMITER.sub(r"‹\1", file.text)
    )


def _replace_texts(message: ChatMessage, texts: Sequence[str]) -> ChatMessage:
    content, files = message.content, []
    for file, text in zip(message.files, texts, strict=True):
        files.append(replace(file, text=text))
        content = content.replace(fence_text(file), fence_text(files[-1]), 1)
    token_savings = (len(message.content) - len(content)) // CHARS_PER_TOKEN_ESTIMATE
    return replace(
        message,
        content=content,
        files=tuple(files),
        token_estimate=max(1, message.token_estimate - token_savings),
    )


def _build_message_files(
    rows: _Rows, texts: dict[UUID, str], images: dict[UUID, bytes], *, accepts_images: bool
) -> MessageFiles:
    text_parts, files = [], []
    for row in rows:
        name = row["name"].translate(_NAME_ESCAPES)
        if texts.get(row["id"]):
            files.append(File(name=row["name"], size=row["size"], text=texts[row["id"]]))
            text_parts.append(fence_text(files[-1]))
        elif not _is_image(row):
            text_parts.append(NO_TEXT_NOTE.format(name=name))
        elif row["id"] not in images:
            text_parts.append(
                (IMAGE_OMITTED_NOTE if accepts_images else IMAGE_UNSUPPORTED_NOTE).format(name=name)
            )
    image_parts = tuple(
        Image(media_type=row["media_type"], data=images[row["id"]])
        for row in rows
        if row["id"] in images
    )
    return MessageFiles(text="\n\n".join(text_parts), images=image_parts, files=tuple(files))


def _select_newest_images(rows: _Rows) -> _Rows:
    """As many of the newest as one request takes."""
    newest_rows: _Rows = []
    size = 0
    for row in reversed(rows):
        size += row["size"]
        if size > IMAGE_BYTES or len(newest_rows) == MAX_IMAGES:
            break
        newest_rows.append(row)
    return newest_rows


def _load_column(rows: _Rows, column: str) -> Any:
    if not rows:
        return ()
    return Attachment.objects.filter(pk__in=[row["id"] for row in rows]).values_list("id", column)


def _is_image(row: Any) -> bool:
    return bool(row["media_type"].startswith("image/"))
