"""Store what each answer's request has sent, and put it together again for whoever asks.

A request repeats nearly all of the one before, so only what is new in it is stored: numbers for
messages that were sent as they are stored, and a digest for every other text. Deleting a message
deletes these texts, because any of them may repeat its words; those that are sent again come back.

How much of its files a question's first request held is remembered with the question: later
requests have less room for files, and a summary tells of what was read.

All of it goes after CHATCORE["REQUEST_RETENTION_DAYS"]; 0 keeps it. The days count from the
upgrade on that brought this: `Installation.retention_since`. A text goes when no request of its
session that is left has it. What is on hold stays.
"""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from chatcore.base.databases.clock import read_clock
from chatcore.base.truncation import clean_text
from chatcore.extension import exclude_kept
from chatcore.models import (
    CHAT_COLUMNS,
    Installation,
    Message,
    SentRequest,
    SentText,
    Session,
    Turn,
)
from chatcore.providers.base import ChatMessage, File, Request, Tool
from chatcore.providers.overflow import measure_request

DIGEST_BYTES = 16
# A message as a request shows it: the fields of `_show_message`.
ShownMessage = dict[str, object]
ChatRow = tuple[object, ...]  # the values of CHAT_COLUMNS
SEQS_AT_ONCE = 1_000
# Numbers of messages, [first, last], or the digest of one message that is sent in another form.
Part = list[int] | str

MIN_CHARS = 32  # a shorter beginning may stand in a notice by chance

SCAN_ROWS = 1_000  # read at once
BATCH_ROWS = 100  # deleted in one transaction, which blocks SQLite's other writers
TEXT_NAMES = ("system", "preface", "tools", "params")  # of a layout, each with a digest


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
    tools: list[dict[str, object]]
    max_tokens: int | None
    params: dict[str, object]
    left_out: list[int]
    missing_parts: int


def describe_request(
    session_id: UUID,
    request: Request,
    *,
    left_out: Sequence[int] = (),
    tokens: int | None = None,
) -> DescribedRequest:
    """Return what is stored of a request. This reads which of its texts are known.

    `tokens` is its estimated size; without it, four characters are counted as a token.
    """
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
        "tokens": measure_request(request).tokens if tokens is None else tokens,
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


def load_sent_tokens(session_id: UUID) -> int | None:
    """Return the tokens of the newest request that was answered, trimmed or not.

    They are the provider's count, or our estimate of what was sent; None if neither is known.
    """
    answers = Message.objects.filter(
        session=session_id, branch=None, role=Message.Role.ASSISTANT, turn__isnull=False
    ).exclude(status=Message.Status.STREAMING)
    counts = answers.order_by("-seq").values_list(
        "token_count_input", "sent_request__layout__tokens"
    )
    counted_tokens, estimated_tokens = counts.first() or (None, None)
    return estimated_tokens if counted_tokens is None else counted_tokens


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


def record_sent_files(turn: Turn, whole_request: Request, sent_request: Request) -> None:
    """Store what is sent of the files of the newest question, unless that is known already."""
    question = _find_question(whole_request)
    if question is None or question.seq is None or not question.files:
        return
    sent_question = _find_question(sent_request)
    if sent_question is None or len(sent_question.files) != len(question.files):
        return
    char_counts = [
        count_sent_chars(file, sent_file)
        for file, sent_file in zip(question.files, sent_question.files, strict=True)
    ]
    unknown = Message.objects.filter(
        session=turn.session_id, seq=question.seq, sent_file_chars__isnull=True
    )
    unknown.update(sent_file_chars=char_counts)


def forget_sent_files(turn: Turn) -> None:
    """Forget it after a provider refused the first request: the next one may hold less."""
    has_answer = turn.messages.filter(role=Message.Role.ASSISTANT).exists()
    if turn.question_id and not has_answer:
        Message.objects.filter(pk=turn.question_id).update(sent_file_chars=None)


def count_sent_chars(file: File, sent_file: File) -> int | None:
    """Return how much of the file's beginning stands in what was sent of it; None for all."""
    if file.text == sent_file.text:
        return None
    low, high = 0, len(file.text)
    while low < high:
        middle = (low + high + 1) // 2
        if file.text[:middle] in sent_file.text:
            low = middle
        else:
            high = middle - 1
    return low if low >= MIN_CHARS else 0


def _find_question(request: Request) -> ChatMessage | None:
    messages = reversed(request.messages)
    return next((each for each in messages if each.role == "user" and each.seq), None)


def prune_requests() -> int:
    """Delete all requests whose time is over, and texts that they alone had. Returns how many.

    Between two transactions other writers get as much time as the first one took.
    """
    days = settings.CHATCORE["REQUEST_RETENTION_DAYS"]
    cutoff = read_clock() - timedelta(days=days)
    if not days or Installation.load().retention_since > cutoff:
        return 0
    count = 0
    for rows in _find_old_requests(cutoff):
        answers: dict[UUID, list[int]] = defaultdict(list)
        for answer, session_id in rows:
            answers[session_id].append(answer)
        for session_id, session_answers in answers.items():
            count += _delete_requests(session_answers)
            _delete_unused_texts(session_id, cutoff)
    return count


def _find_old_requests(cutoff: datetime) -> Iterator[list[tuple[int, UUID]]]:
    """Yield answers and their sessions. Keys rise with time: the first page without one ends it."""
    last_pk = 0
    while True:
        requests = SentRequest.objects.filter(pk__gt=last_pk).order_by("pk")
        rows = list(requests.values_list("pk", "answer__created_at")[:SCAN_ROWS])
        old_pks = [pk for pk, created_at in rows if created_at < cutoff]
        if not old_pks:
            return
        last_pk = rows[-1][0]
        old_requests = exclude_kept(SentRequest.objects.filter(pk__in=old_pks), "session__owner")
        yield list(old_requests.order_by("pk").values_list("pk", "session_id"))


def _delete_requests(pks: list[int]) -> int:
    count = 0
    for start in range(0, len(pks), BATCH_ROWS):
        start_time = time.perf_counter()
        with transaction.atomic():
            rows = SentRequest.objects.filter(pk__in=pks[start : start + BATCH_ROWS])
            count += rows.delete()[0]
        time.sleep(time.perf_counter() - start_time)
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
