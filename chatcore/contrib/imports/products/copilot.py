"""Microsoft Copilot: CSV files of the privacy dashboard; chats have only names."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime

from chatcore.contrib.imports.conversation import ChatMessage, Conversation, chain
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import to_text
from chatcore.contrib.imports.products.base import Reader, Source
from chatcore.files.text import decode_text
from chatcore.transfer.times import parse_time

_HEADS = ("Conversation,Time,Author,Message", "CreatedAt,MessageContent,Author,ChatName",
          "Timestamp,ClientApp,Prompt")  # fmt: skip
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class CopilotReader(Reader):
    """Chats with Copilot."""

    key = "copilot"
    name = "Microsoft Copilot"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        if sample.kind != "text":
            return False
        first_line = sample.head.lstrip("\ufeff").split("\n")[0].replace('"', "").strip()
        return first_line.replace(", ", ",") in _HEADS

    def parse(self, raw: bytes) -> list[object]:
        text = decode_text(raw) or raw.decode(errors="replace")
        csv.field_size_limit(10_000_000)
        rows = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), skipinitialspace=True)
        return list(rows)

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        chats: dict[str, list[tuple[datetime, int, ChatMessage]]] = {}
        for fields in to_items(value):
            row = {name: to_text(field) for name, field in fields.items()}
            name = row.get("Conversation") or row.get("ChatName") or row.get("ClientApp") or ""
            text = row.get("Message") or row.get("MessageContent") or row.get("Prompt") or ""
            time = _read_time(row.get("Time") or row.get("CreatedAt") or row.get("Timestamp") or "")
            author = (row.get("Author") or "user").strip().lower()
            message = ChatMessage(
                role="user" if author in ("user", "human", "me") else "assistant",
                text=text,
                created_at=time,
            )
            # Of one moment the question comes first.
            place = (time or _EARLIEST, int(message.role != "user"), message)
            chats.setdefault(name.strip(), []).append(place)
        for name, places in chats.items():
            messages = [place[2] for place in sorted(places, key=lambda place: place[:2])]
            yield Conversation(
                id=f"{source.member.base_name}/{name}",
                title=name,
                created_at=messages[0].created_at,
                updated_at=messages[-1].created_at,
                nodes=chain(messages),
            )


def _read_time(text: str) -> datetime | None:
    if not text:
        return None
    for form in ("%m/%d/%Y %H:%M:%S %z", "%m/%d/%Y %I:%M:%S %p %z", "%m/%d/%Y %H:%M:%S",
                 "%m/%d/%Y %I:%M:%S %p"):  # fmt: skip
        try:
            moment = datetime.strptime(text.strip(), form)
        except ValueError:
            continue
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return parse_time(text)
