"""Gemini by Google's Takeout: records of questions with their answers, newest first, without chats.

Records that follow each other within half an hour make a chat. Chats of Workspace accounts are
files of their own.
"""

import html
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from chatcore.contrib.imports.conversation import ChatMessage, Conversation, Node, chain
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import join_words, to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import OddChat, Reader, Source, find_file, read_html
from chatcore.files.text import decode_text
from chatcore.transfer.times import parse_time

SILENCE = timedelta(minutes=30)
_QUESTION = re.compile(
    r"(?:Prompted with:|Prompted|Asked Gemini:|Asked Bard:|Asked|Said|Branched|Answered"
    r"|Fez uma pergunta|Perguntou|Gefragt|Eingegebener Prompt|Requête)[: \u00a0]+",
    re.IGNORECASE,
)
_NO_QUESTION = re.compile(
    r"(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Visited)\b", re.IGNORECASE
)
_ATTACHED = re.compile(r"(?<!\s)\s*+Attached \d++ files?\.?\s*+\Z")
_CELL = re.compile(
    r'<div class="[^"]*content-cell[^"]*mdl-typography--body-1"[^>]*>'
    r"(.*?)</div>(?=\s*<div|\s*</div)",
    re.DOTALL,
)
_HTML_DATE = re.compile(
    r"([A-Z][a-z]{2,8} \d{1,2}, \d{4}, \d{1,2}:\d{2}:\d{2}[\s\u202f\u00a0]*[AP]M)"
    r"[\s\u202f\u00a0]*([A-Z]{2,5})?"
)
_CHAT_ID = re.compile(r"https://gemini\.google\.com/app/(?:c/)?([0-9a-zA-Z_-]+)")


class GeminiReader(Reader):
    """The records of an account. Chats are made of all of them, so they are read together."""

    key = "gemini"
    name = "Gemini"
    is_file_a_chat = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind == "list" and any(_is_record(item) for item in sample.items)

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        records = [item for item in to_items(value) if _is_record(item)]
        exchanges = [_read_record(record, source) for record in records]
        yield from _group([exchange for exchange in exchanges if exchange])


class GeminiPageReader(Reader):
    """The records as a page, which is what Takeout makes unless JSON is chosen."""

    key = "gemini"
    name = "Gemini"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        is_page = member.extension in (".html", ".htm")
        return is_page and "content-cell" in sample.head and "Gemini" in sample.head

    def parse(self, raw: bytes) -> str:
        return decode_text(raw) or raw.decode(errors="replace")

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        exchanges = [_read_cell(cell) for cell in _CELL.findall(str(value))]
        yield from _group([exchange for exchange in exchanges if exchange])


class WorkspaceReader(Reader):
    """Chats of an account of a company or school: a file each, JSON in spite of its name."""

    key = "gemini"
    name = "Gemini"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return "conversation_turns" in sample.keys

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        nodes: list[Node] = []
        ends: dict[int, str | None] = {}  # the last node of each turn that was told so far
        for number, turn in enumerate(to_items(value.get("conversation_turns"))):
            is_question = "user_turn" in turn
            data = to_dict(turn.get("user_turn") or turn.get("system_turn"))
            index = data.get("turn_index")
            index = index if isinstance(index, int) else number
            # A repeated number is an edited turn: another version beside the first.
            before = [ends[other] for other in sorted(ends) if other < index]
            node = Node(
                id=str(number),
                parent=before[-1] if before else None,
                message=_read_turn(data, is_question=is_question),
            )
            nodes.append(node)
            ends = {other: end for other, end in ends.items() if other < index} | {index: node.id}
        yield Conversation(
            id=source.member.base_name + to_text(value.get("creation_time")),
            title=to_text(value.get("title")),
            created_at=parse_time(value.get("creation_time")),
            updated_at=parse_time(value.get("last_modification_time")),
            nodes=nodes,
        )


Exchange = tuple[datetime | None, str, list[ChatMessage]]


def _is_record(item: Mapping[str, object]) -> bool:
    names = [to_text(item.get("header")), *map(to_text, to_list(item.get("products")))]
    return "time" in item and any("Gemini" in name or "Bard" in name for name in names)


def _read_record(record: Mapping[str, object], source: Source) -> Exchange | None:
    title = html.unescape(to_text(record.get("title")))
    answer = record.get("safeHtmlItem")
    pieces = to_items(answer) or [to_dict(answer)]
    words = read_html(
        "\n".join(to_text(piece.get("html") or piece.get("htmlValue")) for piece in pieces)
    )
    match = _QUESTION.match(title)
    if match is None and (_NO_QUESTION.match(title) or not words):
        return None
    # In another language the verb is unknown and stays with the question.
    question = _ATTACHED.sub("", title[match.end() :] if match else title)
    time = parse_time(record.get("time"))
    names = [to_text(name) for name in to_list(record.get("attachedFiles"))]
    names += [to_text(record.get("imageFile"))]
    folder = source.member.name.rsplit("/", 1)[0]
    files = [
        find_file(
            source.export.find_by_path(f"{folder}/{name}") or source.export.by_base_name.get(name),
            name,
        )
        for name in dict.fromkeys(names)
        if name
    ]
    chat_id = _CHAT_ID.search(to_text(record.get("titleUrl")))
    asked = ChatMessage(role="user", text=question, created_at=time, files=files)
    answered = ChatMessage(role="assistant", text=words, created_at=time)
    messages = [asked, answered] if words else [asked]
    return time, chat_id.group(1) if chat_id else "", messages


def _read_cell(cell: str) -> Exchange | None:
    date = _HTML_DATE.search(cell)
    if date is None:
        return None
    before, after = cell[: date.start()], cell[date.end() :]
    question = re.sub(r"\s+", " ", read_html(before).replace("\u00a0", " ")).strip()
    match = _QUESTION.match(question)
    if match is None:
        return None
    time = _parse_local_time(date.group(1))
    words = read_html(after)
    chat_id = _CHAT_ID.search(cell)
    asked = ChatMessage(
        role="user", text=_ATTACHED.sub("", question[match.end() :]), created_at=time
    )
    messages = [asked]
    if words:
        messages.append(ChatMessage(role="assistant", text=words, created_at=time))
    return time, chat_id.group(1) if chat_id else "", messages


def _parse_local_time(text: str) -> datetime | None:
    plain = re.sub(r"[\s\u202f\u00a0]+", " ", text)
    for form in ("%b %d, %Y, %I:%M:%S %p", "%B %d, %Y, %I:%M:%S %p"):
        try:
            return datetime.strptime(plain, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _group(exchanges: list[Exchange]) -> Iterator[Conversation]:
    """Yield chats: exchanges with the same id, or those that follow each other closely."""
    if not exchanges:
        raise OddChat("No question stands in it.")
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    exchanges.reverse()  # the records are newest first
    ordered = sorted(exchanges, key=lambda exchange: exchange[0] or epoch)
    groups: dict[str, list[ChatMessage]] = {}
    last_time: datetime | None = None
    last_group = ""
    for time, chat_id, messages in ordered:
        is_same = last_time and time and time - last_time <= SILENCE and not chat_id
        if chat_id:
            group = chat_id
        else:
            group = last_group if is_same and last_group else f"{time}"
            last_group = group
        last_time = time
        groups.setdefault(group, []).extend(messages)
    for group, messages in groups.items():
        yield Conversation(
            id=group,
            created_at=messages[0].created_at,
            updated_at=messages[-1].created_at,
            nodes=chain(messages),
        )


def _read_turn(data: Mapping[str, object], *, is_question: bool) -> ChatMessage:
    created_at = parse_time(data.get("turn_last_modified"))
    if is_question:
        return ChatMessage(role="user", text=to_text(data.get("prompt")), created_at=created_at)
    texts = [
        join_words(
            to_text(part.get("data")),
            *(to_text(card.get("content")) for card in to_items(part.get("cards"))),
        )
        for part in to_items(data.get("text"))
    ]
    thoughts = [
        join_words(to_text(thought.get("headline")), to_text(thought.get("description")))
        for thought in to_items(data.get("model_thoughts"))
    ]
    names = [to_text(image) for image in to_list(data.get("images"))]
    return ChatMessage(
        role="assistant",
        text=join_words(*texts),
        reasoning=join_words(*thoughts),
        created_at=created_at,
        files=[find_file(None, name) for name in names if name],
    )
