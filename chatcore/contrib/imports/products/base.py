"""What all readers of products share.

A reader is one file here and one line in `__init__.py`. It says by the beginning of a file whether
it knows it, cuts it into chats, and turns each into a `Conversation`.
"""

import base64
import binascii
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from typing import ClassVar

from chatcore.contrib.imports.conversation import ChatFile, Conversation, ForeignProject
from chatcore.contrib.imports.export_files import Export, Member, Sample, parse_json, to_items
from chatcore.contrib.imports.json_items import (
    HEAD_BYTES,
    MAX_ITEM_BYTES,
    Item,
    join_words,
    read_lines,
    split_items,
    to_dict,
    to_list,
    to_text,
)

ANOTHER_FORM = "It has another form than expected."
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>(.*?)</think(?:ing)?>\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r'(?<![\w-])([\w-]++)="([^"]*+)"')
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*?;base64,")
_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


class OddChat(ValueError):
    """A chat that cannot be read; the text says why, for the person."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """Where a chat stands: its file, among the others of the export."""

    export: Export
    member: Member


class Reader:
    """The reader of a product."""

    key: ClassVar[str]  # stored with the ids of its chats
    name: ClassVar[str]
    path: ClassVar[Sequence[str]] = ()  # of the list of chats in an object
    is_file_a_chat: ClassVar[bool] = False  # whatever stands in it
    may_be_one_chat: ClassVar[bool] = False  # an object without the list
    is_own: ClassVar[bool] = False  # sessions that Chatcore exported
    has_projects: ClassVar[bool] = False  # and no chats: `read_projects` is asked

    def recognizes(self, sample: Sample, member: Member) -> bool:
        """Return True for a file of this product that has chats."""
        raise NotImplementedError

    def split(self, member: Member, sample: Sample) -> Iterator[Item]:
        """Yield the chats of a file as they stand in it; an object without a path as one."""
        kind = "object" if self.is_file_a_chat else sample.kind
        has_list = bool(self.path)
        if self.may_be_one_chat and kind == "object":
            has_list = self.path[0] in sample.keys
        with member.open() as stream:
            if kind == "lines":
                yield from read_lines(stream)
            elif kind == "list" or has_list:
                yield from split_items(stream, () if kind == "list" else self.path)
            else:
                raw = stream.read(MAX_ITEM_BYTES + 1)
                is_too_long = len(raw) > MAX_ITEM_BYTES
                yield Item(raw[:HEAD_BYTES] if is_too_long else raw, is_too_long=is_too_long)

    def parse(self, raw: bytes) -> object:
        """Return the value of an item. Raises ValueError."""
        return parse_json(raw)

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        """Yield the chats that an item has, mostly one. Any error means that it is odd."""
        yield from self.read_object(require_object(value), source)

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        """Yield the chats of an item that is an object, as `read` does."""
        raise NotImplementedError

    def read_projects(self, value: object, source: Source) -> Iterator[ForeignProject]:
        """Yield the projects that an item has, as `read` yields chats."""
        raise NotImplementedError


def require_object(value: object) -> dict[str, object]:
    """Return an object as it is. Raises OddChat for anything else."""
    if not isinstance(value, dict):
        raise OddChat(ANOTHER_FORM)
    return value


def parse_lines(raw: bytes) -> list[object]:
    """Return the values of JSON Lines, without those that are broken."""
    values = []
    for line in raw.splitlines():
        with contextlib.suppress(ValueError):
            values.append(parse_json(line))
    return values


def parse_text(value: object) -> object:
    """Return the JSON value that a text is, None where it is none, and other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def has_keys(sample: Sample, *names: str) -> bool:
    """Return True if one of the first objects has all of these keys."""
    return any(all(name in item for name in names) for item in sample.items)


def read_role(value: object) -> str:
    """Return who spoke: user, system, or for every other word assistant."""
    role = to_text(value)
    return role if role in ("user", "system") else "assistant"


def split_thoughts(text: str, role: str = "assistant") -> tuple[str, str]:
    """Return the thoughts at the beginning of an answer, and its words; others have words alone."""
    match = _THOUGHTS.match(text) if role == "assistant" else None
    return (match.group(1).strip(), text[match.end() :]) if match else ("", text)


def read_parts(content: object) -> tuple[str, list[ChatFile]]:
    """Return the words and files of a content as OpenAI's API has it: a text or parts."""
    if isinstance(content, str):
        return content, []
    texts, files = [], []
    for part in to_list(content):
        if isinstance(part, str):
            texts.append(part)
            continue
        part = to_dict(part)
        text = part.get("text")
        if isinstance(text, dict):  # Jan's, and that of assistants
            text = text.get("value")
        if isinstance(text, str):
            texts.append(text)
        elif image := part.get("image_url") or part.get("image"):
            url = image.get("url") if isinstance(image, dict) else image
            files.append(build_linked_file(to_text(url)))
        elif part.get("type") in ("input_audio", "audio", "file"):
            file = to_dict(part.get("file"))
            name = to_text(file.get("filename")) or "file"
            files.append(build_linked_file(to_text(file.get("file_data")), name))
    return join_words(*texts), files


def build_linked_file(url: str, name: str = "") -> ChatFile:
    """Return the file of a link; only one in the link itself has its bytes."""
    match = _DATA_URI.match(url[:200])
    if not match:
        base_name = url.split("?")[0].rsplit("/", 1)[-1]
        return ChatFile(name=name or base_name[:100] or "picture")
    extension = _EXTENSIONS.get(match.group(1) or "", "")
    return ChatFile(
        name=name or f"picture.{extension}".rstrip("."),
        load=partial(_decode_base64, url[match.end() :]),
    )


def find_file(member: Member | None, name: str) -> ChatFile:
    """Return a file of the export; without a member, one whose bytes are not there."""
    return ChatFile(name=name, load=member.read_bytes) if member else ChatFile(name=name)


def build_link(title: str, url: str) -> str:
    """Return a link in Markdown."""
    label = re.sub(r"[\[\]\s]+", " ", title).strip()
    if not label:
        return f"<{url}>"
    return f"[{label}](<{url}>)" if re.search(r"[\s()<>]", url) else f"[{label}]({url})"


def build_links(sources: object) -> list[str]:
    """Return a link to each of the pages that an answer names."""
    return [
        build_link(to_text(source.get("title")), to_text(source.get("url")))
        for source in to_items(sources)
        if source.get("url")
    ]


def list_links(links: Iterable[str]) -> str:
    """Return links as a list in Markdown."""
    return "\n".join(f"- {link}" for link in links)


def read_html(source: str) -> str:
    """Return HTML as plain Markdown."""
    reader = _HtmlReader()
    reader.feed(source)
    reader.close()
    text = "".join(reader.parts)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![ \t])[ \t]++\n", "\n", text)).strip()


def read_attributes(tag: str) -> dict[str, str]:
    """Return the attributes of a tag: the names with their values in double quotes."""
    return dict(_ATTRIBUTE.findall(tag))


def _decode_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


class _HtmlReader(HTMLParser):
    """Write what a page of an answer says in Markdown."""

    _BLOCKS = frozenset(
        [
            "p",
            "div",
            "section",
            "table",
            "tr",
            "ul",
            "ol",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "blockquote",
            "hr",
        ]
    )
    _STARTS: ClassVar[dict[str, str]] = {
        "br": "\n",
        "tr": "\n",
        "td": " | ",
        "th": " | ",
        **{f"h{level}": "\n\n" + "#" * level + " " for level in range(1, 7)},
    }
    _MARKS: ClassVar[dict[str, str]] = {
        "b": "**", "strong": "**", "i": "*", "em": "*", "code": "`"
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._links: list[str] = []
        self._lists: list[int | None] = []
        self._skipped = 0
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._skipped += 1
        elif tag == "pre":
            self._is_code = True
            self.parts.append("\n\n```\n")
        elif tag == "li":
            self.parts.append(self._start_item())
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
            self.parts.append("[")
        elif tag in self._MARKS and not self._is_code:
            self.parts.append(self._MARKS[tag])
        elif tag in self._STARTS:
            self.parts.append(self._STARTS[tag])
        elif tag in self._BLOCKS:
            if tag in ("ul", "ol"):
                self._lists.append(None if tag == "ul" else 1)
            self.parts.append("\n\n")

    def _start_item(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "\n- "
        self._lists[-1] = number + 1
        return f"\n{number}. "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._skipped = max(0, self._skipped - 1)
        elif tag == "pre":
            self._is_code = False
            self.parts.append("\n```\n\n")
        elif tag == "a" and self._links:
            self.parts.append(f"]({self._links.pop()})")
        elif tag in self._MARKS and not self._is_code:
            self.parts.append(self._MARKS[tag])
        elif tag in self._BLOCKS:
            if tag in ("ul", "ol") and self._lists:
                self._lists.pop()
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.parts.append(data if self._is_code else re.sub(r"[ \t\r\n]+", " ", data))
