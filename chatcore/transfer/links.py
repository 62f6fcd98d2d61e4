"""What leads from one exported message to others and to its files: numbers, versions, branches, attachments."""

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from chatcore.files import intake, names
from chatcore.models import Attachment, Message
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.sessions.truncation import clean_text
from chatcore.transfer.reader import NotImportable, is_number

BIGGEST_NUMBER = (
    10**9
)  # of a message; the column holds twice as many, so that the conversation can go on


def of(message: Message) -> dict[str, Any]:
    """As JSON values; only what there is."""
    links: dict[str, Any] = {}
    if message.branch:
        links |= {"branch": str(message.branch), "branch_after": message.branch_after}
    if message.replaces:
        links["replaces"] = message.replaces.seq
    kept = [_exported(each) for each in message.attachments.all()]
    return links | ({"attachments": kept} if kept else {})


def number(items: Sequence[Any], rows: Sequence[Message]) -> int:
    """Give the rows the numbers that the file gives them; summaries speak of these. A file without any counts from 1. The last number."""
    given: list[Any] = [item.get("seq") for item in items]
    numbers = range(1, len(rows) + 1) if all(seq is None for seq in given) else given
    last = 0
    for index, (seq, row) in enumerate(zip(numbers, rows, strict=True)):
        if not is_number(seq) or not last < seq <= BIGGEST_NUMBER:
            raise NotImportable(
                f"messages[{index}].seq", "A whole number, greater than the one before."
            )
        row.seq = last = seq
    return last


def restore(items: Sequence[Any], rows: Sequence[Message]) -> None:
    """Link the stored, numbered rows as the file's messages were. Raises NotImportable."""
    known = {row.seq: row for row in rows}
    branches: dict[str, tuple[UUID, int]] = {}
    for index, (item, row) in enumerate(zip(items, rows, strict=True)):
        path = f"messages[{index}]"
        if item.get("branch") is not None:
            _supersede(item, row, branches, known, path)
        if item.get("replaces") is not None:
            row.replaces = _replaced(item["replaces"], row, known, path)
    linked = [row for row in rows if row.branch or row.replaces]
    Message.objects.bulk_update(linked, ["branch", "branch_after", "replaces"], batch_size=200)


def read_files(items: Sequence[Any]) -> list[tuple[int, Attachment]]:
    """The files of the messages, looked into but not stored, each with the place of its message. Raises NotImportable."""
    return [
        (index, file)
        for index, item in enumerate(items)
        for file in _files(item.get("attachments", []), f"messages[{index}]")
    ]


def store_files(found: Sequence[tuple[int, Attachment]], rows: Sequence[Message]) -> None:
    """Give the stored rows their files, one at a time: they may be large."""
    for index, attachment in found:
        attachment.message, attachment.session = rows[index], rows[index].session
        attachment.save(force_insert=True)


def _supersede(
    item: Mapping[str, Any],
    row: Message,
    branches: dict[str, tuple[UUID, int]],
    known: Collection[int],
    path: str,
) -> None:
    """A branch follows one message before all of its own, or none: else bringing it back would never end."""
    after = item.get("branch_after")
    if not is_number(after) or (after and after not in known) or after >= row.seq:
        raise NotImportable(f"{path}.branch_after", "The number of an earlier message, or 0.")
    row.branch, row.branch_after = branches.setdefault(str(item["branch"]), (uuid4(), after))
    if row.branch_after != after:
        raise NotImportable(
            f"{path}.branch_after", "The messages of a branch follow the same message."
        )


def _replaced(seq: Any, row: Message, known: Mapping[int, Message], path: str) -> Message:
    """The message of which it is another version: an earlier one, and only one of them is current."""
    found = known.get(seq) if is_number(seq) else None
    if found is None or found.seq >= row.seq:
        raise NotImportable(f"{path}.replaces", "The number of an earlier message.")
    if found.branch is None and row.branch is None:
        raise NotImportable(f"{path}.replaces", "That message was not superseded.")
    return found


def _exported(attachment: Attachment) -> dict[str, str]:
    data = bytes(attachment.data) or attachment.text.encode()
    shown = {
        "name": attachment.name,
        "media_type": attachment.media_type,
        "data": base64.b64encode(data).decode(),
    }
    return shown | ({"kind": attachment.kind} if attachment.kind != Attachment.Kind.FILE else {})


def _files(given: Any, path: str) -> Iterator[Attachment]:
    if not isinstance(given, list) or len(given) > intake.MAX_FILES:
        raise NotImportable(f"{path}.attachments", f"A list of at most {intake.MAX_FILES} files.")
    for index, each in enumerate(given):
        place = f"{path}.attachments[{index}]"
        if (
            not isinstance(each, Mapping)
            or not isinstance(each.get("name"), str)
            or not isinstance(each.get("data"), str)
        ):
            raise NotImportable(place, "An object with name and data.")
        try:
            data = base64.b64decode(each["data"], validate=True)
            yield (
                _output(each["name"], data)
                if each.get("kind") == Attachment.Kind.OUTPUT
                else intake.look(name=each["name"], data=data)
            )
        except (binascii.Error, ValueError):
            raise NotImportable(
                f"{place}.data", "Base64 is expected, and in an output text."
            ) from None
        except intake.NotTaken as wrong:
            raise NotImportable(place, str(wrong)) from None


def _output(name: str, data: bytes) -> Attachment:
    """The whole of a tool's output, of which the message holds a part."""
    if len(data) > intake.MAX_BYTES:
        raise intake.NotTaken("An output has at most 10 MB.")
    text = clean_text(data.decode())
    tokens = estimate_tokens(len(text))
    kind, shown = Attachment.Kind.OUTPUT, names.label(name)
    return Attachment(
        kind=kind,
        name=shown,
        media_type="text/plain",
        size=len(data),
        data=b"",
        text=text,
        token_estimate=tokens,
    )
