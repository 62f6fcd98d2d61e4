"""Read a whole chat from its first to its last message, so that a long one fills no memory."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterator
from dataclasses import dataclass

from django.utils import timezone, translation

from chatcore.base.threads import run_in_thread
from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.models import Attachment, Message, MessageQuerySet, Session

# What is in memory at once: so many messages, and about so many characters of them.
PART_MESSAGES = 100
PART_CHARS = 500_000

# First and last number of neighboring messages, as they are stored with a snapshot.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A message and its files, without what is in those.

    They are side by side, because Django's own prefetching ties rows in circles, which stay in
    memory until the garbage collector comes.
    """

    message: Message
    files: list[Attachment]


def select_current_messages(session: Session) -> MessageQuerySet:
    """Return the finished messages of the conversation as it is now."""
    other_states = (Message.Status.STREAMING, Message.Status.FAILED)
    return session.messages.exclude_superseded().exclude(status__in=other_states)


def list_spans(messages: MessageQuerySet) -> list[Span]:
    """Return the numbers of messages as spans without a gap."""
    spans: list[Span] = []
    for seq in messages.order_by("seq").values_list("seq", flat=True).iterator(chunk_size=5000):
        if spans and spans[-1][1] == seq - 1:
            spans[-1] = (spans[-1][0], seq)
        else:
            spans.append((seq, seq))
    return spans


def read_parts(messages: MessageQuerySet) -> Iterator[list[TranscriptEntry]]:
    """Yield the messages in order, some at a time, each with the names of its files.

    What is added meanwhile is not read. No query is open between two parts, because each may be
    read in another thread.
    """
    last_seq = messages.order_by("-seq").values_list("seq", flat=True).first() or 0
    seq = 0
    while seq < last_seq:
        rows = messages.filter(seq__gt=seq, seq__lte=last_seq).order_by("seq")
        sizes = list(rows.values_list("seq", "token_estimate")[:PART_MESSAGES])
        if not sizes:
            return
        seq = _find_end(sizes)
        yield _load_entries(rows.filter(seq__lte=seq))


def _find_end(sizes: Collection[tuple[int, int]]) -> int:
    """Return the number of the last message that fits into a part, which has at least one."""
    end, chars = 0, 0
    for seq, tokens in sizes:
        chars += tokens * CHARS_PER_TOKEN_ESTIMATE
        if end and chars > PART_CHARS:
            break
        end = seq
    return end


def _load_entries(messages: MessageQuerySet) -> list[TranscriptEntry]:
    rows = list(messages)
    files_by_message: dict[int | None, list[Attachment]] = defaultdict(list)
    files = Attachment.objects.filter(kind=Attachment.Kind.FILE, message__in=rows)
    for file in files.defer("data", "text").order_by("created_at", "pk"):
        files_by_message[file.message_id].append(file)
    return [TranscriptEntry(row, files_by_message[row.pk]) for row in rows]


def stream_texts(texts: Iterator[str]) -> AsyncGenerator[bytes]:
    """Encode texts that are made one by one in threads, in the language and zone of the caller."""
    language, zone = translation.get_language(), timezone.get_current_timezone()

    def take_next() -> str | None:
        with translation.override(language), timezone.override(zone):
            return next(texts, None)

    async def encode() -> AsyncGenerator[bytes]:
        while (text := await run_in_thread(take_next)) is not None:
            yield text.encode()

    return encode()
