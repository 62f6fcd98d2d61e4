"""Export and import what connects messages: numbers, versions, branches and files."""

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from chatcore.base.token_estimate import estimate_tokens
from chatcore.base.truncation import clean_text
from chatcore.files import intake, names, output_store
from chatcore.models import Attachment, Message
from chatcore.transfer.reader import InvalidImport, is_number

_BRANCH_AFTER_RULE = "It must be the number of an earlier message, or 0."
MAX_SEQ = 10**9  # the column holds twice as many, so an imported conversation can continue


def export_links(message: Message) -> dict[str, object]:
    """Return the links of a message as JSON values; missing ones are left out."""
    links: dict[str, object] = {}
    if message.branch:
        links |= {"branch": str(message.branch), "branch_after": message.branch_after}
    if message.replaces:
        links["replaces"] = message.replaces.seq
    attachments = [_export_attachment(attachment) for attachment in message.attachments.all()]
    if attachments:
        links["attachments"] = attachments
    return links


def assign_seqs(items: Sequence[Any], rows: Sequence[Message]) -> int:
    """Number the rows as the file does, and return the last number.

    The numbers must stay the same, because summaries and edits refer to them. Without numbers in
    the file, messages are numbered from 1. Raises InvalidImport.
    """
    item_seqs: list[object] = [item.get("seq") for item in items]
    if all(seq is None for seq in item_seqs):
        item_seqs = list(range(1, len(rows) + 1))
    last_seq = 0
    for index, (seq, row) in enumerate(zip(item_seqs, rows, strict=True)):
        if not is_number(seq) or not last_seq < seq <= MAX_SEQ:
            raise InvalidImport(
                f"messages[{index}].seq",
                "It must be a whole number greater than that of the message before.",
            )
        row.seq = seq
        last_seq = seq
    return last_seq


def restore_links(items: Sequence[Any], rows: Sequence[Message]) -> None:
    """Restore branches and versions of the numbered rows, unsaved. Raises InvalidImport."""
    rows_by_seq = {row.seq: row for row in rows}
    branches: dict[str, tuple[UUID, int]] = {}
    for index, (item, row) in enumerate(zip(items, rows, strict=True)):
        path = f"messages[{index}]"
        if item.get("branch") is not None:
            _mark_superseded(item, row, branches, rows_by_seq, path)
        if item.get("replaces") is not None:
            row.replaces = _find_replaced_message(item["replaces"], row, rows_by_seq, path)


def read_files(items: Sequence[Any], *, owner_id: object) -> list[tuple[int, Attachment]]:
    """Return the messages' files, inspected but not stored, each with the index of its message.

    An output that was lost before the export is left out.

    Raises InvalidImport.
    """
    return [
        (index, file)
        for index, item in enumerate(items)
        for file in _parse_files(item.get("attachments", []), f"messages[{index}]", owner_id)
    ]


def _mark_superseded(
    item: Mapping[str, object],
    row: Message,
    branches: dict[str, tuple[UUID, int]],
    known_seqs: Collection[int],
    path: str,
) -> None:
    """Put a row into its branch, under a new id. Raises InvalidImport.

    All messages of a branch follow the same message, which comes before them; 0 means that they
    follow none. A file that breaks this rule would make restoring the branch run for ever.
    """
    branch_after = item.get("branch_after")
    if not is_number(branch_after) or branch_after >= row.seq:
        raise InvalidImport(f"{path}.branch_after", _BRANCH_AFTER_RULE)
    if branch_after and branch_after not in known_seqs:
        raise InvalidImport(f"{path}.branch_after", _BRANCH_AFTER_RULE)
    row.branch, row.branch_after = branches.setdefault(str(item["branch"]), (uuid4(), branch_after))
    if row.branch_after != branch_after:
        raise InvalidImport(
            f"{path}.branch_after", "All messages of a branch must follow the same message."
        )


def _find_replaced_message(
    seq: object, row: Message, rows_by_seq: Mapping[int, Message], path: str
) -> Message:
    """Return the earlier version that this message replaces. Raises InvalidImport.

    At most one of two versions can be current.
    """
    message = rows_by_seq.get(seq) if is_number(seq) else None
    if message is None or message.seq >= row.seq:
        raise InvalidImport(f"{path}.replaces", "It must be the number of an earlier message.")
    if message.branch is None and row.branch is None:
        raise InvalidImport(f"{path}.replaces", "That message was not superseded.")
    return message


def _export_attachment(attachment: Attachment) -> dict[str, object]:
    values: dict[str, object] = {"name": attachment.name, "media_type": attachment.media_type}
    if attachment.kind != Attachment.Kind.FILE:
        values["kind"] = attachment.kind
    try:
        values["data"] = base64.b64encode(output_store.read_bytes(attachment)).decode()
    except output_store.OutputLost:
        values["lost"] = True
    return values


def _parse_files(items: object, path: str, owner_id: object) -> Iterator[Attachment]:
    if not isinstance(items, list) or len(items) > intake.MAX_FILES:
        raise InvalidImport(
            f"{path}.attachments", f"It must be a list of at most {intake.MAX_FILES} files."
        )
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("lost") is True:
            continue
        yield _parse_file(item, f"{path}.attachments[{index}]", owner_id)


def _parse_file(item: object, path: str, owner_id: object) -> Attachment:
    values = item if isinstance(item, Mapping) else {}
    name = values.get("name")
    encoded_data = values.get("data")
    if not isinstance(name, str) or not isinstance(encoded_data, str):
        raise InvalidImport(path, "It must be an object with name and data.")
    try:
        data = base64.b64decode(encoded_data, validate=True)
        if values.get("kind") == Attachment.Kind.OUTPUT:
            return _build_output(name, data)
        return intake.inspect_file(name=name, data=data, owner_id=owner_id)
    except (binascii.Error, ValueError):
        raise InvalidImport(
            f"{path}.data", "It must be base64; the output of a tool must be a text."
        ) from None
    except intake.FileRejected as error:
        raise InvalidImport(path, str(error)) from None


def _build_output(name: str, data: bytes) -> Attachment:
    """Return the attachment for the whole output of a tool. Raises FileRejected, ValueError."""
    if len(data) > intake.MAX_BYTES:
        raise intake.FileRejected(f"An output has at most {intake.MAX_BYTES // 1024**2} MB.")
    text = clean_text(data.decode())
    return Attachment(
        kind=Attachment.Kind.OUTPUT,
        name=names.clean_file_name(name),
        media_type="text/plain",
        size=len(data),
        data=b"",
        text=text,
        token_estimate=estimate_tokens(len(text)),
    )
