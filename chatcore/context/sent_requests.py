"""Store what each answer's request has sent, and put it together again for whoever asks.

A request repeats nearly all of the one before, so only what is new in it is stored: numbers for
messages that were sent as they are stored, and a digest for every other text. Deleting a message
deletes these texts, because any of them may repeat its words; those that are sent again come back.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chatcore.base.truncation import clean_text
from chatcore.models import CHAT_COLUMNS, Message, SentRequest, SentText
from chatcore.providers.base import ChatMessage, Request, Tool

DIGEST_BYTES = 16
# A message as a request shows it: the fields of `_show_message`.
ShownMessage = dict[str, Any]
ChatRow = tuple[Any, ...]  # the values of CHAT_COLUMNS
SEQS_AT_ONCE = 1_000
# Numbers of messages, [first, last], or the digest of one message that is sent in another form.
Part = list[int] | str


@dataclass(frozen=True, kw_only=True)
class DescribedRequest:
    """A request in the form in which it is stored; its new texts are by their digests."""

    layout: dict[str, Any]
    new_texts: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class ShownRequest:
    """A request as it was sent, without the bytes of images.

    `left_out` has the numbers of messages that did not fit. `missing_parts` counts what is gone
    because a message was deleted since.
    """

    model: str
    system: str
    preface: str
    messages: list[ShownMessage]
    tools: list[dict[str, Any]]
    max_tokens: int | None
    params: dict[str, Any]
    left_out: list[int]
    missing_parts: int


def describe_request(
    session_id: UUID, request: Request, *, left_out: Sequence[int] = ()
) -> DescribedRequest:
    """Return what is stored of a request. This reads which of its texts are known."""
    texts = _TextBox()
    layout = {
        "model": request.model,
        "system": texts.keep_text(request.system),
        "preface": texts.keep_text(request.preface),
        "messages": _describe_messages(request.messages, texts),
        "tools": texts.keep_json([_show_tool(tool) for tool in request.tools]),
        "max_tokens": request.max_tokens,
        "params": texts.keep_json(request.params),
        "left_out": join_seqs(left_out),
    }
    known_texts = SentText.objects.filter(session=session_id, digest__in=list(texts.texts))
    for digest in known_texts.values_list("digest", flat=True):
        del texts.texts[digest]
    return DescribedRequest(layout=layout, new_texts=texts.texts)


def store_request(answer: Message, described_request: DescribedRequest) -> None:
    """Store the request of an answer, inside the transaction that stores the answer."""
    SentText.objects.bulk_create(
        [
            SentText(session_id=answer.session_id, digest=digest, text=text)
            for digest, text in sorted(described_request.new_texts.items())
        ],
        ignore_conflicts=True,
    )
    SentRequest.objects.create(
        answer_id=answer.pk, session_id=answer.session_id, layout=described_request.layout
    )


def load_request(answer: Message) -> ShownRequest | None:
    """Return the request that an answer came from; None if it is not known."""
    row = SentRequest.objects.filter(answer=answer).first()
    if row is None:
        return None
    layout = row.layout
    reader = _TextReader(row.session_id, layout)
    messages = list(_show_parts(row.session_id, layout["messages"], reader))
    return ShownRequest(
        model=layout["model"],
        system=reader.read_text(layout["system"]),
        preface=reader.read_text(layout["preface"]),
        messages=messages,
        tools=reader.read_json(layout["tools"], []),
        max_tokens=layout["max_tokens"],
        params=reader.read_json(layout["params"], {}),
        left_out=list(split_spans(layout["left_out"])),
        missing_parts=reader.missing_count,
    )


def forget_texts(session_id: UUID) -> None:
    """Delete the texts of a session's requests, which may repeat the words of any message."""
    SentText.objects.filter(session=session_id).delete()


def list_left_out(whole_request: Request, sent_request: Request) -> list[int]:
    """Return the numbers of the messages of a request that were left out to make it fit."""
    if sent_request.messages is whole_request.messages:
        return []
    sent_seqs = {message.seq for message in sent_request.messages}
    return [
        message.seq
        for message in whole_request.messages
        if message.seq and message.seq not in sent_seqs
    ]


def join_seqs(seqs: Iterable[int]) -> list[list[int]]:
    """Return numbers as spans without a gap, each as [first, last]."""
    spans: list[list[int]] = []
    for seq in seqs:
        if spans and spans[-1][1] == seq - 1:
            spans[-1][1] = seq
        else:
            spans.append([seq, seq])
    return spans


def split_spans(spans: Iterable[Sequence[int]]) -> Iterator[int]:
    """Yield the numbers of spans."""
    for first, last in spans:
        yield from range(first, last + 1)


class _TextBox:
    """Texts by their digests."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def keep_text(self, text: str) -> str:
        """Keep a text and return its digest; empty for an empty text."""
        if not text:
            return ""
        text = clean_text(text)
        digest = hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
        self.texts[digest] = text
        return digest

    def keep_json(self, value: object) -> str:
        """Keep a JSON value and return its digest; empty for an empty one."""
        return self.keep_text(json.dumps(value, ensure_ascii=False)) if value else ""


@dataclass
class _TextReader:
    """Reads the texts of one request, and counts those that are gone."""

    session_id: UUID
    layout: dict[str, Any]
    missing_count: int = 0
    _texts: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        names = ("system", "preface", "tools", "params")
        digests = {self.layout[name] for name in names}
        digests.update(part for part in self.layout["messages"] if isinstance(part, str))
        rows = SentText.objects.filter(session=self.session_id, digest__in=digests)
        self._texts = dict(rows.values_list("digest", "text"))

    def read_text(self, digest: str) -> str:
        """Return a text; empty if it is gone."""
        if digest and digest not in self._texts:
            self.missing_count += 1
        return self._texts.get(digest, "")

    def read_json(self, digest: str, default: object) -> Any:
        """Return a JSON value; the default if it is gone, or was empty."""
        text = self.read_text(digest)
        return json.loads(text) if text else default


def _describe_messages(messages: Sequence[ChatMessage], texts: _TextBox) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        seq = message.seq
        if seq is None or not _is_sent_as_stored(message):
            parts.append(texts.keep_json(_show_message(message)))
        elif parts and isinstance(parts[-1], list) and parts[-1][1] == seq - 1:
            parts[-1][1] = seq
        else:
            parts.append([seq, seq])
    return parts


def _load_chat_rows(session_id: UUID, seqs: Sequence[int]) -> dict[int, ChatRow]:
    """Return the messages with these numbers, superseded ones too."""
    rows: dict[int, ChatRow] = {}
    for start in range(0, len(seqs), SEQS_AT_ONCE):
        messages = Message.objects.filter(
            session=session_id, seq__in=seqs[start : start + SEQS_AT_ONCE]
        )
        rows.update((row[0], row) for row in messages.order_by().values_list(*CHAT_COLUMNS))
    return rows


def _is_sent_as_stored(message: ChatMessage) -> bool:
    if message.images or message.aside:
        return False
    return message.stored == (message.content, message.tool_calls)


def _show_parts(
    session_id: UUID, parts: Sequence[Part], reader: _TextReader
) -> Iterator[ShownMessage]:
    seqs = list(split_spans(part for part in parts if not isinstance(part, str)))
    rows = _load_chat_rows(session_id, seqs)
    reader.missing_count += len(seqs) - len(rows)
    for part in parts:
        if isinstance(part, str):
            message = reader.read_json(part, None)
            if message is not None:
                yield message
        else:
            yield from (_show_row(rows[seq]) for seq in split_spans([part]) if seq in rows)


def _show_row(row: ChatRow) -> ShownMessage:
    return {**dict(zip(CHAT_COLUMNS, row, strict=True)), "aside": False, "images": []}


def _show_message(message: ChatMessage) -> ShownMessage:
    return {
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
        "tool_calls": _show_calls(message),
        "tool_call_id": message.tool_call_id,
        "tool_name": message.tool_name,
        "is_error": message.is_error,
        "aside": message.aside,
        "images": [
            {"media_type": image.media_type, "size": image.size} for image in message.images
        ],
    }


def _show_calls(message: ChatMessage) -> list[dict[str, str]]:
    return [
        {"id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]


def _show_tool(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
