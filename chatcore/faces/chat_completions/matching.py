"""Where a client's history meets what is stored: the longest beginning of the one that is the end of the other."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.messages import ClientMessage, normalize_arguments
from chatcore.models import Attachment, Message, Session
from chatcore.providers.base import ToolCall
from chatcore.tools import output as tool_output

EXTRA_MESSAGES = 64  # stored messages read besides as many as the client sent: an answer that it has not, with its rounds of tools
MAX_ATTEMPTS = 8  # overlaps that are looked at in full, where the same words come again and again
MESSAGE_COLUMNS = (
    *(
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
    ),
)


@dataclass(frozen=True, kw_only=True)
class StoredMessage:
    """A stored message as a client of this face was shown it; `pk` is the stored one that it ends with."""

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
    """How a history goes on from what is stored: with `new` messages; or not at all, and then `again` is the message to answer anew."""

    new_messages: Sequence[ClientMessage] = ()
    regenerate_pk: int | None = None


def match_history(session: Session, messages: Sequence[ClientMessage]) -> HistoryMatch:
    """Where the client's history meets the stored one. Reads no more than it sent, and a little. Raises 409, history_diverged."""
    limit = len(messages) + EXTRA_MESSAGES
    rows = list(
        session.messages.exclude_superseded()
        .exclude(role=Message.Role.SYSTEM)
        .order_by("-seq")
        .values(*MESSAGE_COLUMNS)[:limit]
    )[::-1]
    stored_messages, is_from_start = (
        build_stored_messages(row for row in rows if row["status"] in ("complete", "interrupted")),
        len(rows) < limit,
    )
    if not stored_messages:
        return HistoryMatch(new_messages=messages)
    complete_messages = [message for message in stored_messages if not message.is_interrupted]
    for candidates in (
        (stored_messages, complete_messages)
        if len(complete_messages) < len(stored_messages)
        else (stored_messages,)
    ):
        history_match = _match_stored(session, messages, candidates, is_from_start=is_from_start)
        if history_match:
            return history_match
    if all(message.role != "assistant" for message in messages):
        return HistoryMatch(new_messages=messages)
    raise OpenAIProblem(
        409,
        "history_diverged",
        "These messages do not follow what the session holds.",
        param="messages",
    )


def build_stored_messages(rows: Any) -> list[StoredMessage]:
    """Stored messages as the client was shown them: without calls of built-in tools, whose answers are one with what follows them."""
    stored_messages: list[StoredMessage] = []
    pending_text = ""
    for row in rows:
        client_tool_names = (
            None if row["turn_id"] is None else {tool["name"] for tool in row["turn__tools"]}
        )
        if (
            row["role"] == Message.Role.TOOL
            and client_tool_names is not None
            and row["tool_name"] not in client_tool_names
        ):
            continue
        calls = tuple(
            ToolCall(**call)
            for call in row["tool_calls"]
            if client_tool_names is None or call["name"] in client_tool_names
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
    """The place, if what the client knows is the end of what is stored, or all but the answer at its end."""
    overlap_length = _find_longest_overlap(session, messages, stored_messages)
    if overlap_length == len(messages):
        return (
            HistoryMatch(regenerate_pk=stored_messages[-1].pk)
            if messages[-1].role == "user"
            else HistoryMatch()
        )
    unanswered_messages = _drop_answer(stored_messages, messages[-1].role)
    if len(unanswered_messages) < len(stored_messages) and _find_longest_overlap(
        session, messages, unanswered_messages
    ) == len(messages):
        is_whole_history = is_from_start and len(messages) == len(unanswered_messages)
        if is_whole_history or any(message.role != "user" for message in messages):
            return HistoryMatch(regenerate_pk=unanswered_messages[-1].pk)
    return HistoryMatch(new_messages=messages[overlap_length:]) if overlap_length else None


def _drop_answer(stored_messages: Sequence[StoredMessage], role: str) -> Sequence[StoredMessage]:
    """Up to the last stored message of the role that the client's history ends with."""
    end_indexes = [
        index for index, message in enumerate(stored_messages, start=1) if message.role == role
    ]
    return stored_messages[: end_indexes[-1]] if end_indexes else ()


def _find_longest_overlap(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> int:
    for _, length in zip(
        range(MAX_ATTEMPTS),
        _find_overlaps(
            [_build_key(message) for message in messages],
            [_build_key(message) for message in stored_messages],
        ),
        strict=False,
    ):
        if _has_same_content(
            session, messages[:length], stored_messages[len(stored_messages) - length :]
        ):
            return length
    return 0


def _find_overlaps(
    client_keys: Sequence[Hashable], stored_keys: Sequence[Hashable]
) -> Iterator[int]:
    """Every length at which `first` begins as `then` ends, the longest first (Knuth, Morris and Pratt)."""
    borders = [0] * (len(client_keys) + 1)
    length = 0
    for index in range(1, len(client_keys)):
        while length and client_keys[length] != client_keys[index]:
            length = borders[length]
        length += client_keys[length] == client_keys[index]
        borders[index + 1] = length
    length = 0
    for key in stored_keys if client_keys else ():
        while length and (length == len(client_keys) or client_keys[length] != key):
            length = borders[length]
        length += client_keys[length] == key
    while length:
        yield length
        length = borders[length]


def _build_key(message: ClientMessage | StoredMessage) -> Hashable:
    """What two messages that are the same have in common; a tool's result may have been cut when it was stored."""
    if message.role == "tool":
        return message.role, message.call_id
    return (
        message.role,
        message.content,
        tuple((call.id, call.name, normalize_arguments(call.arguments)) for call in message.calls),
    )


def _has_same_content(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> bool:
    """What the keys leave open: results, and images by their sizes."""
    results = [
        (client_message, stored_message)
        for client_message, stored_message in zip(messages, stored_messages, strict=True)
        if client_message.role == "tool" and client_message.content != stored_message.content
    ]
    if any(
        not stored_message.is_truncated
        or tool_output.build_tool_output(
            session, stored_message.tool_name, client_message.content
        ).render_content(stored_message.seq)
        != stored_message.content
        for client_message, stored_message in results
    ):
        return False
    image_sizes = {
        stored_message.pk: sorted(len(image.data) for image in client_message.images)
        for client_message, stored_message in zip(messages, stored_messages, strict=True)
        if client_message.images
    }
    if not image_sizes:
        return True
    attachments = Attachment.objects.filter(
        message__in=image_sizes, kind=Attachment.Kind.FILE, media_type__startswith="image/"
    )
    sizes: dict[int, list[int]] = {}
    for pk, size in attachments.order_by("size").values_list("message_id", "size"):
        sizes.setdefault(pk or 0, []).append(size)
    return sizes == image_sizes
