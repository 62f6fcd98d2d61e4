"""SillyTavern: a file for each chat, JSON Lines with a header; other answers stand in `swipes`."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from chatcore.contrib.imports.conversation import (
    ChatFile,
    ChatMessage,
    Conversation,
    Node,
    list_times,
)
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import OddChat, Reader, Source, has_keys, parse_lines
from chatcore.transfer.times import parse_time

_OLD_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@(\d{1,2})h ?(\d{1,2})m ?(\d{1,2})s")


class SillyTavernReader(Reader):
    """Chats of SillyTavern."""

    key = "sillytavern"
    name = "SillyTavern"
    is_file_a_chat = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        is_header = "character_name" in sample.keys and sample.kind in ("lines", "object")
        return is_header or has_keys(sample, "mes", "is_user")

    def parse(self, raw: bytes) -> list[object]:
        return parse_lines(raw)

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        lines = [line for line in to_items(value) if "mes" in line]
        if not lines:
            raise OddChat("Nothing was said in it.")
        nodes: list[Node] = []
        parent: str | None = None
        for index, line in enumerate(lines):
            if line.get("is_system") is True:
                continue  # a note that the model never saw
            nodes += _read_line(line, str(index), parent)
            parent = str(index)
        times = list_times(nodes)
        yield Conversation(
            id=source.member.name,
            title=source.member.base_name.removesuffix(".jsonl"),
            created_at=min(times, default=None),
            updated_at=max(times, default=None),
            nodes=nodes,
            leaf=parent if parent and any(node.id == parent for node in nodes) else None,
        )


def _read_line(line: Mapping[str, object], node_id: str, parent: str | None) -> Iterator[Node]:
    """Yield the other answers of a place, then the shown one, which has the id of the line."""
    extra = to_dict(line.get("extra"))
    shown = line.get("swipe_id")
    infos = to_list(line.get("swipe_info"))
    for number, swipe in enumerate(to_list(line.get("swipes"))):
        words = to_text(swipe) or to_text(to_dict(swipe).get("mes"))
        if number == shown or not words.strip():
            continue
        info = to_dict(infos[number]) if number < len(infos) else {}
        message = _build_message(line, words, to_dict(info.get("extra")), info.get("send_date"))
        yield Node(id=f"{node_id}/{number}", parent=parent, message=message)
    message = _build_message(line, to_text(line.get("mes")), extra, line.get("send_date"))
    image = to_text(extra.get("image"))
    if image:
        message.files.append(ChatFile(name=image.rsplit("/", 1)[-1]))
    yield Node(id=node_id, parent=parent, message=message)


def _build_message(
    line: Mapping[str, object], words: str, extra: Mapping[str, object], time: object
) -> ChatMessage:
    is_question = line.get("is_user") is True
    return ChatMessage(
        role="user" if is_question else "assistant",
        text=words,
        reasoning=to_text(extra.get("reasoning")),
        created_at=_read_time(time),
        model="" if is_question else to_text(extra.get("model")),
    )


def _read_time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return parse_time(value)
    if match := _OLD_DATE.search(value):
        try:
            year, month, day, hour, minute, second = map(int, match.groups())
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None
    try:
        return datetime.strptime(value.upper(), "%B %d, %Y %I:%M%p").replace(tzinfo=UTC)
    except ValueError:
        return parse_time(value)
