"""Read the chats of an export, whatever product made it, one after the other."""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chatcore.contrib.imports.conversation import Conversation, ForeignProject
from chatcore.contrib.imports.export_files import (
    UNREADABLE,
    Export,
    Member,
    Sample,
    UnreadableExport,
    parse_json,
    take_sample,
)
from chatcore.contrib.imports.json_items import HEAD_BYTES, MAX_ITEM_BYTES, Item
from chatcore.contrib.imports.products import READERS, OddChat, Reader, Source
from chatcore.contrib.imports.products.base import ANOTHER_FORM

logger = logging.getLogger(__name__)

# Names of files that are looked into; a media file is none.
_READ_EXTENSIONS = frozenset(
    ("", ".json", ".jsonl", ".ndjson", ".csv", ".txt", ".html", ".htm", ".agi", ".cherry")
)
_TITLE = re.compile(rb'"(?:title|name|topic|chatTitle|context_title)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_NOTHING_KNOWN = (
    "This is no export that is known here: it has no conversations.json of ChatGPT or Claude, no"
    " chats of another product of docs/import.md, and no sessions of Chatcore."
)


@dataclass(frozen=True, kw_only=True)
class FoundItem:
    """A piece of an export, which is mostly one chat: those in it, or why there is none."""

    product: str
    product_name: str
    raw: bytes
    member_name: str
    conversations: list[Conversation] = field(default_factory=list)
    projects: list[ForeignProject] = field(default_factory=list)
    own_session: object = None  # a session that Chatcore exported
    title: str = ""
    problem: str = ""


def read_export(export: Export, *, skip: int = 0) -> Iterator[FoundItem]:
    """Yield what is found, without the first `skip` pieces. Raises UnreadableExport.

    A file that ends too early, or is broken, is a piece with a problem.
    """
    number = 0
    known = 0
    last_error = ""
    for member in export.members:
        if member.extension not in _READ_EXTENSIONS and len(export.members) > 1:
            continue
        try:
            sample = take_sample(member)
        except UNREADABLE as error:
            last_error = f"{member.name} cannot be read: {error}."
            continue
        reader = next((r for r in READERS if _recognizes(r, sample, member)), None)
        if reader is None:
            last_error = last_error or _say_what_is_wrong(member, sample)
            continue
        known += 1
        for item in _split(reader, member, sample):
            number += 1
            if number > skip:
                yield _read_item(reader, item, Source(export=export, member=member))
    if not known:
        raise UnreadableExport(last_error or _NOTHING_KNOWN)


def _recognizes(reader: Reader, sample: Sample, member: Member) -> bool:
    try:
        return reader.recognizes(sample, member)
    except Exception:  # a stranger's file, which no reader may die of
        logger.info("a file is not known, by an error", exc_info=True)
        return False


def _say_what_is_wrong(member: Member, sample: Sample) -> str:
    """Return why a file is no export: it cannot be parsed, or is something else."""
    if sample.kind == "text" and member.extension not in (".json", ".jsonl"):
        return _NOTHING_KNOWN
    try:
        parse_json(member.read(MAX_ITEM_BYTES))
    except UNREADABLE as error:
        return f"{member.name} cannot be read: {error}."
    return _NOTHING_KNOWN


def _split(reader: Reader, member: Member, sample: Sample) -> Iterator[Item | str]:
    """Yield the chats of a file; a text says why there are no more."""
    try:
        yield from reader.split(member, sample)
    except UNREADABLE as error:
        yield f"{member.name} cannot be read to its end: {error}. What stands before it came in."


def _read_item(reader: Reader, item: Item | str, source: Source) -> FoundItem:
    values: dict[str, Any] = {
        "product": reader.key,
        "product_name": reader.name,
        "member_name": source.member.name,
    }
    if isinstance(item, str):
        return FoundItem(**values, raw=b"", title=source.member.base_name, problem=item)
    title = _find_title(item.raw)
    values |= {"raw": item.raw, "title": title}
    if item.is_too_long:
        megabytes = MAX_ITEM_BYTES // 1_000_000
        return FoundItem(**values, problem=f"It is larger than {megabytes} MB.")
    try:
        value = reader.parse(item.raw)
        if reader.is_own:
            return FoundItem(**values, own_session=value)
        if reader.has_projects:
            return FoundItem(**values, projects=list(reader.read_projects(value, source)))
        conversations = list(reader.read(value, source))
    except OddChat as error:
        return FoundItem(**values, problem=str(error))
    except ValueError as error:
        return FoundItem(**values, problem=f"It cannot be read: {error}.")
    except Exception:  # a shape that nobody has seen
        logger.info("a chat of %s could not be read", reader.name, exc_info=True)
        return FoundItem(**values, problem=ANOTHER_FORM)
    return FoundItem(**values, conversations=conversations)


def _find_title(raw: bytes) -> str:
    match = _TITLE.search(raw[:HEAD_BYTES])
    if not match:
        return ""
    text = match.group(1).decode(errors="replace")
    try:
        return text.encode("ascii", "backslashreplace").decode("unicode_escape")[:200]
    except ValueError:
        return text[:200]
