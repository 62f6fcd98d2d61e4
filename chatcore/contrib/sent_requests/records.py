"""Store what each answer's request has sent, and put it together again for whoever asks.

A request repeats nearly all of the one before, so only what is new in it is stored: numbers for
messages that were sent as they are stored, and a digest for every other text. Deleting a message
deletes these texts, because any of them may repeat its words; those that are sent again come back.

All of it goes after CHATCORE["REQUEST_RETENTION_DAYS"]; 0 keeps it. The days count from the
upgrade on that brought this: `Installation.retention_since`. A text goes when no request of its
session that is left has it. What is on hold stays.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from chatcore.base.databases.batches import delete_in_batches, find_old_keys
from chatcore.base.databases.clock import read_clock
from chatcore.base.truncation import clean_text
from chatcore.contrib.sent_requests.models import SentRequest, SentText
from chatcore.extension import exclude_kept
from chatcore.models import CHAT_COLUMNS, Installation, Message, Session, Turn
from chatcore.models.statements import adapt_uuid, fetch_rows
from chatcore.providers.base import ChatMessage, Request, Tool

DIGEST_BYTES = 16
# A message as a request shows it: the fields of `_show_message`.
ShownMessage = dict[str, object]
ChatRow = tuple[object, ...]  # the values of CHAT_COLUMNS
SEQS_AT_ONCE = 1_000
# Numbers of messages, [first, last], or the digest of one message that is sent in another form.
Part = list[int] | str

BATCH_ROWS = 100  # deleted in one transaction, which blocks SQLite's other writers
TEXT_NAMES = ("system", "preface", "tools", "params")  # of a layout, each with a digest
_LAYOUT_FIELD = SentRequest._meta.get_field("layout")
# SentRequest.objects.create(...), and how many of its texts are stored. The ORM takes two.
_STORE_SQL = f"""
    INSERT INTO {SentRequest._meta.db_table} (answer_id, session_id, layout) VALUES (%s, %s, %s)
    RETURNING (
        SELECT count(*) FROM {SentText._meta.db_table}
        WHERE session_id = %s AND digest IN ({{digests}})
    )
"""  # noqa: S608


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
    tools: list[dict[str, object]]
    max_tokens: int | None
    params: dict[str, object]
    left_out: list[int]
    missing_parts: int


def store_request(
    sender: object, *, message: Message, request: Request, left_out: Sequence[int], **arguments: Any
) -> None:
    """Store the request of an answer, in the transaction that stores the answer.

    One statement, and another one where a text of the request is not stored yet.
    """
    texts: dict[str, str] = {}
    layout = _describe_request(request, texts)
    layout["left_out"] = join_seqs(left_out)
    session_key = adapt_uuid(message.session_id)
    statement = _STORE_SQL.format(digests=", ".join(["%s"] * len(texts)) or "NULL")
    layout_value = _LAYOUT_FIELD.get_db_prep_value(layout, connection)
    values = [message.pk, session_key, layout_value, session_key, *texts]
    [(known_count,)] = fetch_rows(statement, values)
    if known_count < len(texts):
        SentText.objects.bulk_create(
            [
                SentText(session_id=message.session_id, digest=digest, text=text)
                for digest, text in sorted(texts.items())
            ],
            ignore_conflicts=True,
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


def forget_texts(sender: object, *, session: Session, **arguments: object) -> None:
    """Delete the texts of a session's requests, which may repeat the words of a deleted message."""
    SentText.objects.filter(session=session).delete()


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


def _keep_text(text: str, texts: dict[str, str]) -> str:
    """Keep a text and return its digest; empty for an empty text."""
    if not text:
        return ""
    text = clean_text(text)
    digest = hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
    texts[digest] = text
    return digest


def _keep_json(value: object, texts: dict[str, str]) -> str:
    """Keep a JSON value and return its digest; empty for an empty one."""
    return _keep_text(json.dumps(value, ensure_ascii=False), texts) if value else ""


@dataclass
class _TextReader:
    """Reads the texts of one request, and counts those that are gone."""

    session_id: UUID
    layout: dict[str, Any]
    missing_count: int = 0
    _texts: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        digests = {self.layout[name] for name in TEXT_NAMES}
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


def _describe_request(request: Request, texts: dict[str, str]) -> dict[str, Any]:
    """Return the parts of a request, and add its texts."""
    return {
        "model": request.model,
        "system": _keep_text(request.system, texts),
        "preface": _keep_text(request.preface, texts),
        "messages": _describe_messages(request.messages, texts),
        "tools": _keep_json([_show_tool(tool) for tool in request.tools], texts),
        "max_tokens": request.max_tokens,
        "params": _keep_json(request.params, texts),
    }


def _describe_messages(messages: Sequence[ChatMessage], texts: dict[str, str]) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        seq = message.seq
        if seq is None or not _is_sent_as_stored(message):
            parts.append(_keep_json(_show_message(message), texts))
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


def prune_requests() -> int:
    """Delete all requests whose time is over, and texts that they alone had. Returns how many."""
    days = settings.CHATCORE["REQUEST_RETENTION_DAYS"]
    cutoff = read_clock() - timedelta(days=days)
    if not days or Installation.load().retention_since > cutoff:
        return 0
    count = 0
    for keys in find_old_keys(SentRequest.objects.all(), "answer__created_at", cutoff):
        requests = exclude_kept(SentRequest.objects.filter(pk__in=keys), "session__owner")
        answers: dict[UUID, list[int]] = defaultdict(list)
        for answer, session_id in requests.values_list("pk", "session_id"):
            answers[session_id].append(answer)
        for session_id, pks in answers.items():
            rows = SentRequest.objects.filter(pk__in=pks)
            count += delete_in_batches(rows, batch_rows=BATCH_ROWS)
            _delete_unused_texts(session_id, cutoff)
    return count


def _delete_unused_texts(session_id: UUID, cutoff: datetime) -> None:
    """Delete the old texts that no request of the session has any more.

    While an answer is written they stay: its request may have one that is not stored anew.
    """
    with transaction.atomic():
        # No turn begins while the session's row is locked.
        session = Session.objects.select_for_update().filter(pk=session_id).only("pk").first()
        open_turns = Turn.objects.filter(session=session_id, status__in=Turn.OPEN_STATUSES)
        if session is None or open_turns.exists():
            return
        old_texts = SentText.objects.filter(session=session_id, created_at__lt=cutoff)
        digests = dict(old_texts.values_list("digest", "pk"))
        if not digests:
            return
        layouts = SentRequest.objects.filter(session=session_id).values_list("layout", flat=True)
        for layout in layouts.iterator():
            for part in (*layout["messages"], *(layout[name] for name in TEXT_NAMES)):
                if isinstance(part, str):
                    digests.pop(part, None)
        SentText.objects.filter(pk__in=digests.values()).delete()
