"""Put attached files into requests to the model.

Texts stand between fences that carry the file's name. Images are sent to models that accept them;
for others a line of text says that there was an image.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE, estimate_tokens
from chatcore.files import output_store
from chatcore.models import Attachment
from chatcore.providers.base import ChatMessage, File, Image, Request

FENCE = '<attached_file name="{name}">\n{text}\n</attached_file>'
IMAGE_UNSUPPORTED_NOTE = '[The image "{name}" was attached; this model cannot see images.]'
IMAGE_OMITTED_NOTE = '[The image "{name}" was attached; it is not shown again.]'
NO_TEXT_NOTE = '[The file "{name}" was attached; it holds no text that can be read.]'
# Limits of one request. Providers refuse more, and would then refuse every later request of the
# session too, because each contains the earlier images.
IMAGE_BYTES = 20 * 1024 * 1024
MAX_IMAGES = 50
MAX_LISTED_IDS = 500
_DELIMITER = re.compile(r"<(\s*+/?\s*+attached_file)", re.IGNORECASE)

# A row has the columns id, message_id, name, media_type and size of an attachment.
_Row = dict[str, Any]
NAME_ESCAPES = str.maketrans({'"': "'", "<": "‹", ">": "›"})


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageFiles:
    """The files of a message: the text to append, the images, and the files in that text."""

    text: str = ""
    images: tuple[Image, ...] = ()
    files: tuple[File, ...] = ()

    def add_to_message(self, message: ChatMessage) -> ChatMessage:
        """Return the message with the files' text, images and estimated tokens added."""
        content = "\n\n".join(part for part in (message.content, self.text) if part)
        return replace(
            message,
            content=content,
            images=self.images,
            files=self.files,
            token_estimate=message.token_estimate + estimate_tokens(len(self.text)),
        )


def load_message_files(
    session_id: UUID, message_ids: Collection[int], *, accepts_images: bool
) -> dict[int, MessageFiles]:
    """Return the files of these messages, by the message's primary key.

    Messages without files are left out. Takes two queries, one more for images, and one more for
    images in the store. Of many images only the newest are sent (MAX_IMAGES, IMAGE_BYTES). Raises
    StorageAway.
    """
    id_set = set(message_ids)
    attachments = Attachment.objects.filter(
        session=session_id, kind=Attachment.Kind.FILE, message__isnull=False
    ).order_by("created_at", "id")
    # A condition with thousands of ids may exceed the number of parameters that a database accepts.
    # Then all rows of the session are read and filtered here.
    if len(id_set) <= MAX_LISTED_IDS:
        attachments = attachments.filter(message__in=id_set)
    columns = ("id", "message_id", "name", "media_type", "size")
    rows: list[_Row] = [
        {**row} for row in attachments.values(*columns) if row["message_id"] in id_set
    ]
    if not rows:
        return {}
    text_rows = [row for row in rows if not _is_image(row)]
    image_rows = [row for row in rows if _is_image(row)] if accepts_images else []
    texts = dict(_load_column(text_rows, "text"))
    newest_images = _select_newest_images(image_rows)
    images = _load_images(newest_images)
    rows_by_message: dict[int, list[_Row]] = {}
    for row in rows:
        rows_by_message.setdefault(row["message_id"], []).append(row)
    return {
        pk: _build_message_files(message_rows, texts, images, accepts_images=accepts_images)
        for pk, message_rows in rows_by_message.items()
    }


def replace_file_texts(request: Request, texts: Sequence[str]) -> Request:
    """Return the request with other texts in its files.

    `texts` has one text for each file, in the order of the messages and their files.
    """
    text_iterator = iter(texts)
    return replace(
        request,
        messages=tuple(
            _replace_texts(message, [next(text_iterator) for _ in message.files])
            for message in request.messages
        ),
    )


def fence_text(file: File) -> str:
    """Return a file's text between fences, as it is put into its message.

    A fence inside the text is changed, so that a file cannot pretend to end and to be followed by
    words of the user.
    """
    return FENCE.format(
        name=file.name.translate(NAME_ESCAPES), text=_DELIMITER.sub(r"‹\1", file.text)
    )


def _replace_texts(message: ChatMessage, texts: Sequence[str]) -> ChatMessage:
    content = message.content
    files = []
    for file, text in zip(message.files, texts, strict=True):
        new_file = replace(file, text=text)
        content = content.replace(fence_text(file), fence_text(new_file), 1)
        files.append(new_file)
    removed_tokens = (len(message.content) - len(content)) // CHARS_PER_TOKEN_ESTIMATE
    return replace(
        message,
        content=content,
        files=tuple(files),
        token_estimate=max(1, message.token_estimate - removed_tokens),
    )


def _build_message_files(
    rows: list[_Row], texts: dict[UUID, str], images: dict[UUID, bytes], *, accepts_images: bool
) -> MessageFiles:
    missing_image_note = IMAGE_OMITTED_NOTE if accepts_images else IMAGE_UNSUPPORTED_NOTE
    text_parts = []
    files = []
    for row in rows:
        name = row["name"].translate(NAME_ESCAPES)
        if texts.get(row["id"]):
            file = File(name=row["name"], size=row["size"], text=texts[row["id"]])
            files.append(file)
            text_parts.append(fence_text(file))
        elif not _is_image(row):
            text_parts.append(NO_TEXT_NOTE.format(name=name))
        elif row["id"] not in images:
            text_parts.append(missing_image_note.format(name=name))
    image_parts = tuple(
        Image(media_type=row["media_type"], data=images[row["id"]])
        for row in rows
        if row["id"] in images
    )
    return MessageFiles(text="\n\n".join(text_parts), images=image_parts, files=tuple(files))


def _select_newest_images(rows: list[_Row]) -> list[_Row]:
    """Return as many of the newest images as one request may contain."""
    newest_rows: list[_Row] = []
    size = 0
    for row in reversed(rows):
        size += row["size"]
        if size > IMAGE_BYTES or len(newest_rows) == MAX_IMAGES:
            break
        newest_rows.append(row)
    return newest_rows


def _load_column(rows: list[_Row], column: str) -> Iterable[tuple[UUID, Any]]:
    if not rows:
        return ()
    return Attachment.objects.filter(pk__in=[row["id"] for row in rows]).values_list("id", column)


def _load_images(rows: list[_Row]) -> dict[UUID, bytes]:
    """Return the images by their id, from their rows or the store; those that are lost are not."""
    images = {pk: bytes(data) for pk, data in _load_column(rows, "data")}
    moved_ids = [pk for pk, data in images.items() if not data]
    if moved_ids:
        images = {pk: data for pk, data in images.items() if data}
        images |= dict(output_store.read_objects(moved_ids))
    return images


def _is_image(row: _Row) -> bool:
    return bool(row["media_type"].startswith("image/"))
