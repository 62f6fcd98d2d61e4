"""Find where a client's history continues the stored one.

The client sends its whole history with each request. The longest beginning of it that is also the
end of the stored history is known; what follows is new.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.messages import ClientMessage, normalize_arguments
from chatcore.models import Attachment, Message, Session
from chatcore.providers.base import ToolCall
from chatcore.tools import output as tool_output

# Stored messages to read besides as many as the client sent: an answer that it does not have yet,
# with its rounds of tool calls.
EXTRA_MESSAGES = 64
# Overlaps to compare in full. There are several only where the same messages come again and again.
MAX_ATTEMPTS = 8
MESSAGE_COLUMNS = (
    "pk",
    "seq",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "status",
    "original_chars",
    "turn_id",
    "turn__tools",
)


@dataclass(frozen=True, kw_only=True)
class StoredMessage:
    """A stored message in the form in which this API showed it to the client.

    It may join several rows; `pk` is then the last one.
    """

    pk: int
    seq: int
    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    is_interrupted: bool = False
    is_truncated: bool = False


@dataclass(frozen=True, kw_only=True)
class HistoryMatch:
    """How a client's history continues the stored one.

    With `new_messages`; or with none, and then `regenerate_pk` is the message to answer again.
    """

    new_messages: Sequence[ClientMessage] = ()
    regenerate_pk: int | None = None


def match_history(session: Session, messages: Sequence[ClientMessage]) -> HistoryMatch:
    """Find where the client's history continues the stored one.

    Reads at most EXTRA_MESSAGES rows more than the client sent messages. Raises the 409 problem
    `history_diverged` if the histories have nothing in common.
    """
    limit = len(messages) + EXTRA_MESSAGES
    rows = list(
        session.messages.exclude_superseded()
        .exclude(role=Message.Role.SYSTEM)
        .order_by("-seq")
        .values(*MESSAGE_COLUMNS)[:limit]
    )
    rows.reverse()
    is_from_start = len(rows) < limit
    stored_messages = build_stored_messages(
        row for row in rows if row["status"] in ("complete", "interrupted")
    )
    if not stored_messages:
        return HistoryMatch(new_messages=messages)
    candidates = [stored_messages]
    # A client may or may not have seen an answer that was interrupted, so both are tried.
    complete_messages = [message for message in stored_messages if not message.is_interrupted]
    if len(complete_messages) < len(stored_messages):
        candidates.append(complete_messages)
    for candidate in candidates:
        history_match = _match_stored(session, messages, candidate, is_from_start=is_from_start)
        if history_match:
            return history_match
    if all(message.role != "assistant" for message in messages):
        return HistoryMatch(new_messages=messages)
    raise OpenAIProblem(
        409,
        "history_diverged",
        "These messages do not continue the messages of the session.",
        param="messages",
    )


def build_stored_messages(rows: Iterable[Mapping[str, Any]]) -> list[StoredMessage]:
    """Return stored rows in the form in which the client received them.

    Built-in tools run on the server. Clients never see their calls and results, and the texts
    around them are one answer.
    """
    stored_messages: list[StoredMessage] = []
    pending_text = ""
    for row in rows:
        if row["role"] == Message.Role.TOOL and not _is_client_tool(row, row["tool_name"]):
            continue
        calls = tuple(
            ToolCall(**call) for call in row["tool_calls"] if _is_client_tool(row, call["name"])
        )
        content = row["content"]
        if row["role"] == Message.Role.ASSISTANT:
            content = "\n\n".join(text for text in (pending_text, content) if text)
        if row["tool_calls"] and not calls:
            pending_text = content
        else:
            pending_text = ""
            stored_messages.append(_build_stored_message(row, content, calls))
    return stored_messages


def find_overlaps(
    client_keys: Sequence[Hashable], stored_keys: Sequence[Hashable]
) -> Iterator[int]:
    """Yield each length at which `client_keys` begins as `stored_keys` ends, longest first.

    This is the algorithm of Knuth, Morris and Pratt: its time grows with the sum of both lengths.
    """
    if not client_keys:
        return
    borders = _find_borders(client_keys)
    length = 0
    for key in stored_keys:
        while length and (length == len(client_keys) or client_keys[length] != key):
            length = borders[length]
        length += client_keys[length] == key
    while length:
        yield length
        length = borders[length]


def _find_borders(keys: Sequence[Hashable]) -> list[int]:
    """Return for each length of a beginning of `keys` its longest border.

    A border of a sequence is a shorter beginning of it that is also its end.
    """
    borders = [0] * (len(keys) + 1)
    length = 0
    for index in range(1, len(keys)):
        while length and keys[length] != keys[index]:
            length = borders[length]
        length += keys[length] == keys[index]
        borders[index + 1] = length
    return borders


def _is_client_tool(row: Mapping[str, Any], tool_name: str) -> bool:
    """Return True if the client knows this tool of a row: its own, or any of an imported row."""
    if row["turn_id"] is None:
        return True
    return any(tool["name"] == tool_name for tool in row["turn__tools"])


def _build_stored_message(
    row: Mapping[str, Any], content: str, calls: tuple[ToolCall, ...]
) -> StoredMessage:
    return StoredMessage(
        pk=row["pk"],
        seq=row["seq"],
        role=row["role"],
        content=content,
        calls=calls,
        call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        is_interrupted=row["status"] == Message.Status.INTERRUPTED,
        is_truncated=row["original_chars"] is not None,
    )


def _match_stored(
    session: Session,
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    *,
    is_from_start: bool,
) -> HistoryMatch | None:
    """Return the match if the client knows the end of what is stored, or all but its answer."""
    overlap_length = _find_longest_overlap(session, messages, stored_messages)
    if overlap_length == len(messages):
        if messages[-1].role == "user":
            return HistoryMatch(regenerate_pk=stored_messages[-1].pk)
        return HistoryMatch()
    # A client that wants another answer sends the history that ends before the stored answer.
    unanswered_messages = _drop_answer(stored_messages, messages[-1].role)
    if len(unanswered_messages) < len(stored_messages):
        length = _find_longest_overlap(session, messages, unanswered_messages)
        is_whole_history = is_from_start and len(messages) == len(unanswered_messages)
        # A single "Hello" that is somewhere in the history does not mean another answer to it.
        is_certain = is_whole_history or any(message.role != "user" for message in messages)
        if length == len(messages) and is_certain:
            return HistoryMatch(regenerate_pk=unanswered_messages[-1].pk)
    if not overlap_length:
        return None
    return HistoryMatch(new_messages=messages[overlap_length:])


def _drop_answer(stored_messages: Sequence[StoredMessage], role: str) -> Sequence[StoredMessage]:
    """Return the stored messages up to the last one of this role."""
    for end in range(len(stored_messages), 0, -1):
        if stored_messages[end - 1].role == role:
            return stored_messages[:end]
    return ()


def _find_longest_overlap(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> int:
    client_keys = [_build_key(message) for message in messages]
    stored_keys = [_build_key(message) for message in stored_messages]
    for length in islice(find_overlaps(client_keys, stored_keys), MAX_ATTEMPTS):
        stored_end = stored_messages[len(stored_messages) - length :]
        if _has_same_content(session, messages[:length], stored_end):
            return length
    return 0


def _build_key(message: ClientMessage | StoredMessage) -> Hashable:
    """Return what is equal in equal messages.

    The content of a tool result is left out, because it may have been cut when it was stored.
    """
    if message.role == "tool":
        return message.role, message.call_id
    calls = tuple(
        (call.id, call.name, normalize_arguments(call.arguments)) for call in message.calls
    )
    return message.role, message.content, calls


def _has_same_content(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> bool:
    """Compare what the keys leave out: the content of tool results, and images by their sizes."""
    pairs = list(zip(messages, stored_messages, strict=True))
    for client_message, stored_message in pairs:
        if client_message.role == "tool" and not _is_same_result(
            session, client_message, stored_message
        ):
            return False
    image_sizes = {
        stored_message.pk: sorted(len(image.data) for image in client_message.images)
        for client_message, stored_message in pairs
        if client_message.images
    }
    return not image_sizes or _load_image_sizes(image_sizes) == image_sizes


def _is_same_result(
    session: Session, client_message: ClientMessage, stored_message: StoredMessage
) -> bool:
    if client_message.content == stored_message.content:
        return True
    if not stored_message.is_truncated:
        return False
    # Only the cut text is stored, so the client's full text is cut in the same way.
    output = tool_output.build_tool_output(
        session, stored_message.tool_name, client_message.content
    )
    return output.render_content(stored_message.seq) == stored_message.content


def _load_image_sizes(message_pks: Iterable[int]) -> dict[int, list[int]]:
    """Return the sizes in bytes of the images of each message, smallest first."""
    attachments = Attachment.objects.filter(
        message__in=message_pks, kind=Attachment.Kind.FILE, media_type__startswith="image/"
    )
    sizes: dict[int, list[int]] = {}
    for pk, size in attachments.order_by("size").values_list("message_id", "size"):
        sizes.setdefault(pk or 0, []).append(size)
    return sizes
