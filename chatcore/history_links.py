"""What leads from one exported message to others and to its files: versions, branches, attachments."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from django.db.models import F

from chatcore import files
from chatcore.history_reading import NotImportable
from chatcore.models import Attachment, Message, Session


def of(message: Message) -> dict[str, Any]:
    """As JSON values; only what there is."""
    links: dict[str, Any] = {}
    if message.branch:
        links |= {"branch": str(message.branch), "branch_after": message.branch_after}
    if message.replaces:
        links["replaces"] = message.replaces.seq
    sent = [_exported(each) for each in message.attachments.all() if each.kind == Attachment.Kind.FILE]
    return links | ({"attachments": sent} if sent else {})


def restore(session: Session, items: Sequence[Mapping[str, Any]], rows: Sequence[Message], seqs: Mapping[str, int]) -> None:
    """Link the stored messages as the file's were; `seqs` gives the new number for an old one. Raises NotImportable."""
    by_seq = {row.seq: row for row in rows}
    branches: dict[str, UUID] = {}
    linked = []
    for index, (item, row) in enumerate(zip(items, rows, strict=True)):
        path = f"messages[{index}]"
        if item.get("branch") is not None:
            row.branch = branches.setdefault(str(item["branch"]), uuid4())
            row.branch_after = _number(item.get("branch_after"), seqs, f"{path}.branch_after")
        if item.get("replaces") is not None:
            row.replaces = by_seq.get(_number(item["replaces"], seqs, f"{path}.replaces"))
        if row.branch or row.replaces:
            linked.append(row)
        _store_files(session, row, item.get("attachments", []), path)
    Message.objects.bulk_update(linked, ["branch", "branch_after", "replaces"], batch_size=200)
    Session.objects.filter(pk=session.pk).update(message_count=F("message_count") - sum(row.branch is not None for row in rows))


def _number(old: Any, seqs: Mapping[str, int], path: str) -> int:
    if old == 0:  # before the first message
        return 0
    if str(old) not in seqs:
        raise NotImportable(path, "There is no such message in the file.")
    return seqs[str(old)]


def _exported(attachment: Attachment) -> dict[str, str]:
    data = bytes(attachment.data) or attachment.text.encode()
    return {"name": attachment.name, "media_type": attachment.media_type, "data": base64.b64encode(data).decode()}


def _store_files(session: Session, row: Message, given: Any, path: str) -> None:
    if not isinstance(given, list):
        raise NotImportable(f"{path}.attachments", "A list of files.")
    for index, each in enumerate(given):
        place = f"{path}.attachments[{index}]"
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str) or not isinstance(each.get("data"), str):
            raise NotImportable(place, "An object with name and data.")
        try:
            stored = files.store(session, name=each["name"], data=base64.b64decode(each["data"], validate=True), waits=False)
        except (binascii.Error, ValueError):
            raise NotImportable(f"{place}.data", "Base64 is expected.") from None
        except files.NotTaken as wrong:
            raise NotImportable(place, str(wrong)) from None
        Attachment.objects.filter(pk=stored.pk).update(message=row)
