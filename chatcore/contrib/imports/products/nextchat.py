"""NextChat: the backup of all its stores in one JSON file."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from chatcore.contrib.imports.conversation import Call, ChatMessage, Conversation, chain
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_text
from chatcore.contrib.imports.products.base import (
    Reader,
    Source,
    read_parts,
    read_role,
    split_thoughts,
)
from chatcore.transfer.times import parse_time

STORE = "chat-next-web-store"
_NUMBERS = re.compile(r"\d+")


class NextChatReader(Reader):
    """Chats of NextChat."""

    key = "nextchat"
    name = "NextChat"
    path = (STORE, "sessions")

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return STORE in sample.keys

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        mask = to_dict(value.get("mask"))
        updated_at = parse_time(value.get("lastUpdate"))
        items = to_items(value.get("messages"))
        times = _read_times([to_text(item.get("date")) for item in items], updated_at)
        messages = [_build_message(item, time) for item, time in zip(items, times, strict=True)]
        prompts = [
            to_text(item.get("content"))
            for item in to_items(mask.get("context"))
            if item.get("role") == "system"
        ]
        yield Conversation(
            id=to_text(value.get("id")),
            title=to_text(value.get("topic")),
            created_at=times[0] if times else updated_at,
            updated_at=updated_at,
            system_prompt=join_words(*prompts),
            model=to_text(to_dict(mask.get("modelConfig")).get("model")),
            nodes=chain(messages),
        )


def _build_message(item: Mapping[str, object], time: datetime | None) -> ChatMessage:
    role = to_text(item.get("role"))
    text, files = read_parts(item.get("content"))
    thoughts, text = split_thoughts(text, role)
    calls = [
        Call(
            id=to_text(tool.get("id")),
            name=to_text(to_dict(tool.get("function")).get("name")) or "tool",
            arguments=to_text(to_dict(tool.get("function")).get("arguments")) or "{}",
            result=to_text(tool.get("content")),
            is_error=tool.get("isError") is True,
        )
        for tool in to_items(item.get("tools"))
    ]
    return ChatMessage(
        role=read_role(role),
        text=text,
        reasoning=thoughts,
        created_at=time,
        model=to_text(item.get("model")) if role == "assistant" else "",
        files=files,
        calls=calls,
    )


def _read_times(texts: list[str], last_time: datetime | None) -> list[datetime | None]:
    """Return the times of messages, which are local texts in an order of day and month unknown.

    The order is that in which all are dates, and the last is near to the session's own time.
    """
    candidates = []
    for is_day_first in (True, False):
        times = [parse_time(text) or _read_local(text, is_day_first) for text in texts]
        if all(times):
            end = max(time for time in times if time) if times else None
            distance = abs(end - last_time) if end and last_time else timedelta()
            candidates.append((distance, not is_day_first, times))
    if not candidates:
        return [None] * len(texts)
    distance, _, times = min(candidates, key=lambda candidate: candidate[:2])
    if last_time is None:
        return times
    if distance >= timedelta(days=2):
        return [None] * len(texts)
    # The zone of the texts is how far the last of them is from the session's own time.
    end = max(time for time in times if time)
    quarters = round((end - last_time) / timedelta(minutes=15))
    return [time - quarters * timedelta(minutes=15) if time else None for time in times]


def _read_local(text: str, is_day_first: bool) -> datetime | None:
    numbers = [int(number) for number in _NUMBERS.findall(text)]
    if len(numbers) < 5:
        return None
    first, second, third, hour, minute, *rest = numbers
    if first > 31:
        year, month, day = first, second, third
    elif is_day_first:
        day, month, year = first, second, third
    else:
        month, day, year = first, second, third
    lower = text.lower()
    if ("pm" in lower or "下午" in text) and hour < 12:
        hour += 12
    elif ("am" in lower or "上午" in text) and hour == 12:
        hour = 0
    try:
        return datetime(year, month, day, hour, minute, rest[0] if rest else 0, tzinfo=UTC)
    except ValueError:
        return None
