"""Find where a client's history continues the stored one, or leaves it.

The client sends its whole history with each request. The longest beginning of it that is also the
end of the stored history is known; what follows is new. A history without such a beginning was
changed by the client. By default it is an edit: the stored messages after the last common one are
superseded, and stay as a version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from chatcore.contrib.compat.chat_completions.comparison import (
    build_client_keys,
    build_key,
    count_same_contents,
)
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.overlaps import find_overlaps, measure_beginnings
from chatcore.contrib.compat.chat_completions.stored_messages import (
    MESSAGE_COLUMNS,
    StoredMessage,
    build_stored_messages,
)
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.models import Message, Session

# Stored messages to read besides as many as the client sent: an answer that it does not have yet,
# with its rounds of tool calls.
EXTRA_MESSAGES = 64
# Overlaps to compare in full. There are several only where the same messages come again and again.
MAX_ATTEMPTS = 8


class OnDivergence(StrEnum):
    """What a history that does not continue the stored one means."""

    EDIT = "edit"  # what is stored behind the last common message is superseded
    APPEND = "append"  # only what follows the client's last answer is new
    REFUSE = "refuse"


@dataclass(frozen=True, kw_only=True)
class HistoryMatch:
    """How a client's history continues the stored one.

    With `new_messages`; or with none, and then `regenerate_pk` is the message to answer again. In
    an edit, the stored messages with a `seq` above `superseded_after` are superseded first, and
    `replaced_pk` is the one that the only new message is another version of.
    """

    new_messages: Sequence[ClientMessage] = ()
    regenerate_pk: int | None = None
    superseded_after: int | None = None
    replaced_pk: int | None = None


def match_history(
    session: Session,
    messages: Sequence[ClientMessage],
    on_divergence: OnDivergence = OnDivergence.EDIT,
) -> HistoryMatch:
    """Find where the client's history continues the stored one, or leaves it.

    Reads at most EXTRA_MESSAGES rows more than the client sent messages. Raises the 409 problem
    `history_diverged` if the history leaves the stored one, and that is to be refused.
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
        history_match = _match_stored(session, messages, candidate)
        if history_match:
            return history_match
    if all(message.role != "assistant" for message in messages):
        return HistoryMatch(new_messages=messages)
    if on_divergence is OnDivergence.EDIT:
        edit = _match_edit(session, messages, stored_messages, is_from_start=is_from_start)
        if edit:
            return edit
    if on_divergence is not OnDivergence.REFUSE:
        new_messages = _list_messages_after_answer(messages)
        if new_messages and new_messages[-1].role == "user":
            return HistoryMatch(new_messages=new_messages)
    raise OpenAIProblem(
        409,
        "history_diverged",
        "These messages do not continue the messages of the session.",
        param="messages",
    )


def _match_stored(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> HistoryMatch | None:
    """Return the match if the client knows the end of what is stored, or all but its answer."""
    overlap_length = _find_longest_overlap(session, messages, stored_messages)
    if overlap_length == len(messages):
        if messages[-1].role == "user":
            return HistoryMatch(regenerate_pk=stored_messages[-1].pk)
        return HistoryMatch()
    # A client that wants another answer sends the history that ends before the stored answer. Only
    # messages of the user do not say so: a bot asks the same question each hour.
    unanswered_messages = _drop_answer(stored_messages, messages[-1].role)
    has_answer = any(message.role != "user" for message in messages)
    if has_answer and len(unanswered_messages) < len(stored_messages):
        length = _find_longest_overlap(session, messages, unanswered_messages)
        if length == len(messages):
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


def _match_edit(
    session: Session,
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    *,
    is_from_start: bool,
) -> HistoryMatch | None:
    """Return the match if the histories have a beginning in common, or nothing at all.

    None if it is not known: then there are stored messages that were not read.
    """
    start, length = _find_common_run(messages, stored_messages, is_from_start=is_from_start)
    if length == 0 and not is_from_start:
        return None
    common_messages = stored_messages[start : start + length]
    length = count_same_contents(session, messages[:length], common_messages)
    if length == len(messages):
        return HistoryMatch(regenerate_pk=common_messages[-1].pk)
    new_messages = messages[length:]
    replaced_pks = [
        message.pk for message in stored_messages[start + length :][:1] if message.role == "user"
    ]
    is_version = [message.role for message in new_messages] == ["user"]
    return HistoryMatch(
        new_messages=new_messages,
        superseded_after=common_messages[length - 1].seq if length else 0,
        replaced_pk=replaced_pks[0] if replaced_pks and is_version else None,
    )


def _find_common_run(
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    *,
    is_from_start: bool,
) -> tuple[int, int]:
    """Return where the longest beginning of the client's history is stored, and its length.

    A client sends its whole history more often than a part of it, so the stored beginning counts
    first, and then the latest place.
    """
    client_keys = build_client_keys(messages, stored_messages)
    stored_keys = [build_key(message) for message in stored_messages]
    lengths = list(measure_beginnings(client_keys, stored_keys))
    best_length = max(lengths, default=0)
    if is_from_start and best_length and lengths[best_length - 1] == best_length:
        return 0, best_length
    last_index = max(
        (index for index, each in enumerate(lengths) if each == best_length), default=0
    )
    return last_index + 1 - best_length, best_length


def _list_messages_after_answer(messages: Sequence[ClientMessage]) -> Sequence[ClientMessage]:
    """Return what follows the last answer, and the results of its calls."""
    for end in range(len(messages), 0, -1):
        if messages[end - 1].role != "user":
            return messages[end:]
    return messages


def _find_longest_overlap(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> int:
    client_keys = build_client_keys(messages, stored_messages)
    stored_keys = [build_key(message) for message in stored_messages]
    for length in islice(find_overlaps(client_keys, stored_keys), MAX_ATTEMPTS):
        stored_end = stored_messages[len(stored_messages) - length :]
        if count_same_contents(session, messages[:length], stored_end) == length:
            return length
    return 0
