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
from chatcore.transfer.reader import InvalidImport, is_number

MAX_SEQ = 10**9  # of a message; the column holds twice as many, so that the conversation can go on


def export_links(message: Message) -> dict[str, Any]:
    """As JSON values; only what there is."""
    links: dict[str, Any] = {}
    if message.branch:
        links |= {"branch": str(message.branch), "branch_after": message.branch_after}
    if message.replaces:
        links["replaces"] = message.replaces.seq
    attachments = [_export_attachment(attachment) for attachment in message.attachments.all()]
    return links | ({"attachments": attachments} if attachments else {})


def assign_seqs(items: Sequence[Any], rows: Sequence[Message]) -> int:
    """Give the rows the numbers that the file gives them; summaries speak of these. A file without any counts from 1. The last number."""
    item_seqs: list[Any] = [item.get("seq") for item in items]
    seqs = range(1, len(rows) + 1) if all(seq is None for seq in item_seqs) else item_seqs
    last_seq = 0
    for index, (seq, row) in enumerate(zip(seqs, rows, strict=True)):
        if not is_number(seq) or not last_seq < seq <= MAX_SEQ:
            raise InvalidImport(
                f"messages[{index}].seq", "A whole number, greater than the one before."
            )
        row.seq = last_seq = seq
    return last_seq


def restore_links(items: Sequence[Any], rows: Sequence[Message]) -> None:
    """Link the stored, numbered rows as the file's messages were. Raises NotImportable."""
    rows_by_seq = {row.seq: row for row in rows}
    branches: dict[str, tuple[UUID, int]] = {}
    for index, (item, row) in enumerate(zip(items, rows, strict=True)):
        path = f"messages[{index}]"
        if item.get("branch") is not None:
            _mark_superseded(item, row, branches, rows_by_seq, path)
        if item.get("replaces") is not None:
            row.replaces = _find_replaced_message(item["replaces"], row, rows_by_seq, path)
    rows_with_links = [row for row in rows if row.branch or row.replaces]
    Message.objects.bulk_update(
        rows_with_links, ["branch", "branch_after", "replaces"], batch_size=200
    )


def read_files(items: Sequence[Any]) -> list[tuple[int, Attachment]]:
    """The files of the messages, looked into but not stored, each with the place of its message. Raises NotImportable."""
    return [
        (index, file)
        for index, item in enumerate(items)
        for file in _parse_files(item.get("attachments", []), f"messages[{index}]")
    ]


def store_files(attachments: Sequence[tuple[int, Attachment]], rows: Sequence[Message]) -> None:
    """Give the stored rows their files, one at a time: they may be large."""
    for index, attachment in attachments:
        attachment.message, attachment.session = rows[index], rows[index].session
        attachment.save(force_insert=True)


def _mark_superseded(
    item: Mapping[str, Any],
    row: Message,
    branches: dict[str, tuple[UUID, int]],
    known_seqs: Collection[int],
    path: str,
) -> None:
    """A branch follows one message before all of its own, or none: else bringing it back would never end."""
    branch_after = item.get("branch_after")
    if (
        not is_number(branch_after)
        or (branch_after and branch_after not in known_seqs)
        or branch_after >= row.seq
    ):
        raise InvalidImport(f"{path}.branch_after", "The number of an earlier message, or 0.")
    row.branch, row.branch_after = branches.setdefault(str(item["branch"]), (uuid4(), branch_after))
    if row.branch_after != branch_after:
        raise InvalidImport(
            f"{path}.branch_after", "The messages of a branch follow the same message."
        )


def _find_replaced_message(
    seq: Any, row: Message, rows_by_seq: Mapping[int, Message], path: str
) -> Message:
    """The message of which it is another version: an earlier one, and only one of them is current."""
    message = rows_by_seq.get(seq) if is_number(seq) else None
    if message is None or message.seq >= row.seq:
        raise InvalidImport(f"{path}.replaces", "The number of an earlier message.")
    if message.branch is None and row.branch is None:
        raise InvalidImport(f"{path}.replaces", "That message was not superseded.")
    return message


def _export_attachment(attachment: Attachment) -> dict[str, str]:
    data = bytes(attachment.data) or attachment.text.encode()
    values = {
        "name": attachment.name,
        "media_type": attachment.media_type,
        "data": base64.b64encode(data).decode(),
    }
    return values | ({"kind": attachment.kind} if attachment.kind != Attachment.Kind.FILE else {})


def _parse_files(items: Any, path: str) -> Iterator[Attachment]:
    if not isinstance(items, list) or len(items) > intake.MAX_FILES:
        raise InvalidImport(f"{path}.attachments", f"A list of at most {intake.MAX_FILES} files.")
    for index, item in enumerate(items):
        file_path = f"{path}.attachments[{index}]"
        if (
            not isinstance(item, Mapping)
            or not isinstance(item.get("name"), str)
            or not isinstance(item.get("data"), str)
        ):
            raise InvalidImport(file_path, "An object with name and data.")
        try:
            data = base64.b64decode(item["data"], validate=True)
            yield (
                _build_output(item["name"], data)
                if item.get("kind") == Attachment.Kind.OUTPUT
                else intake.inspect_file(name=item["name"], data=data)
            )
        except (binascii.Error, ValueError):
            raise InvalidImport(
                f"{file_path}.data", "Base64 is expected, and in an output text."
            ) from None
        except intake.FileRejected as error:
            raise InvalidImport(file_path, str(error)) from None


def _build_output(name: str, data: bytes) -> Attachment:
    """The whole of a tool's output, of which the message holds a part."""
    if len(data) > intake.MAX_BYTES:
        raise intake.FileRejected("An output has at most 10 MB.")
    text = clean_text(data.decode())
    tokens = estimate_tokens(len(text))
    kind, file_name = Attachment.Kind.OUTPUT, names.clean_file_name(name)
    return Attachment(
        kind=kind,
        name=file_name,
        media_type="text/plain",
        size=len(data),
        data=b"",
        text=text,
        token_estimate=tokens,
    )
