"""Compare a client's messages with stored ones."""

from collections.abc import Hashable, Iterable, Sequence

from chatcore.contrib.compat.chat_completions import questions
from chatcore.contrib.compat.chat_completions.messages import normalize_arguments
from chatcore.contrib.compat.chat_completions.stored_messages import StoredMessage
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.models import Attachment, Session
from chatcore.tools import output as tool_output

MAX_STOPPED_MESSAGES = 8  # the newest ones; a client may have only the beginnings of these
THINK_START, THINK_END = "<think>", "</think>"


def build_client_keys(
    messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> list[Hashable]:
    """Return the keys of the client's messages.

    A client that stopped an answer has only the beginning of what was stored of it, and that counts
    as the answer.
    """
    keys = [build_key(message) for message in messages]
    stopped_messages = [message for message in stored_messages if message.is_interrupted]
    for stopped_message in stopped_messages[-MAX_STOPPED_MESSAGES:]:
        stopped_text = _normalize_text(stopped_message.content)
        for index, message in enumerate(messages):
            text = _normalize_text(message.content)
            is_beginning = bool(text) and stopped_text.startswith(text)
            if message.role == "assistant" and not message.calls and is_beginning:
                keys[index] = build_key(stopped_message)
    for index, message in enumerate(messages):
        previous_message = messages[index - 1] if index else None
        asked_message = questions.find_asked_message(message, previous_message, stored_messages)
        if asked_message:
            keys[index] = build_key(asked_message)
    return keys


def build_key(message: ClientMessage | StoredMessage) -> Hashable:
    """Return what is equal in equal messages.

    Clients strip white space and what a model thought aloud, so neither counts. The content of a
    tool result is left out, because it may have been cut when it was stored.
    """
    if message.role == "tool":
        return message.role, message.call_id
    calls = tuple(
        (call.id, call.name, normalize_arguments(call.arguments)) for call in message.calls
    )
    return message.role, _normalize_text(message.content), calls


def _normalize_text(text: str) -> str:
    """Return a text without the parts in `<think>` tags and without white space around it."""
    pieces = []
    position = 0
    while (start := text.find(THINK_START, position)) >= 0:
        end = text.find(THINK_END, start)
        if end < 0:
            break
        pieces.append(text[position:start])
        position = end + len(THINK_END)
    return ("".join(pieces) + text[position:]).strip()


def count_same_contents(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> int:
    """Return how many messages are equal in what the keys leave out, from the first one on.

    That is the content of tool results, and files by their sizes.
    """
    pairs = list(zip(messages, stored_messages, strict=True))
    pks = [stored_message.pk for message, stored_message in pairs if message.files]
    stored_sizes = _load_file_sizes(pks) if pks else {}
    for index, (client_message, stored_message) in enumerate(pairs):
        sizes = sorted(file.size for file in client_message.files)
        if sizes and stored_sizes.get(stored_message.pk, []) != sizes:
            return index
        if client_message.role == "tool" and not _is_same_result(
            session, client_message, stored_message
        ):
            return index
    return len(pairs)


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
    return output.is_in(stored_message.content, stored_message.seq)


def _load_file_sizes(message_pks: Iterable[int]) -> dict[int, list[int]]:
    """Return the sizes in bytes of the files of each message, smallest first."""
    attachments = Attachment.objects.filter(message__in=message_pks, kind=Attachment.Kind.FILE)
    sizes: dict[int, list[int]] = {}
    for pk, size in attachments.order_by("size").values_list("message_id", "size"):
        sizes.setdefault(pk or 0, []).append(size)
    return sizes
