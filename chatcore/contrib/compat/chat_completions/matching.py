"""Find where a client's history continues the stored one, or leaves it.

The client sends its whole history with each request. The longest beginning of it that is also the
end of the stored history is known; what follows is new. A history without such a beginning was
changed by the client. By default it is an edit: the stored messages after the last common one are
superseded, and stay as a version. One that begins with a summary of the client's own is no edit
(client_summaries.py).
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice, takewhile

from chatcore.contrib.compat.chat_completions.client_summaries import (
    MAX_MESSAGES,
    MIN_CHARS,
    ClientSummary,
    build_summary,
    drop_known_summaries,
    find_client_summary,
    find_summary_behind_questions,
    list_known_keys,
)
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.messages import (
    MESSAGE_COLUMNS,
    StoredMessage,
    build_stored_messages,
    find_asked_message,
    normalize_arguments,
)
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.models import Attachment, Message, Session
from chatcore.tools import output as tool_output

MAX_STOPPED_MESSAGES = 8  # the newest ones; a client may have only the beginnings of these
# Of a result that a client has cleared: what is stored at least, and what the client has at most.
MIN_CLEARED_CHARS = 200
MAX_CLEARED_RATIO = 0.5
THINK_START, THINK_END = "<think>", "</think>"

# Stored messages to read besides as many as the client sent: an answer that it does not have yet,
# with its rounds of tool calls.
EXTRA_MESSAGES = 64
# Overlaps to compare in full. There are several only where the same messages come again and again.
MAX_ATTEMPTS = 8


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
        stopped_text = normalize_text(stopped_message.content)
        for index, message in enumerate(messages):
            text = normalize_text(message.content)
            is_beginning = bool(text) and stopped_text.startswith(text)
            if message.role == "assistant" and not message.calls and is_beginning:
                keys[index] = build_key(stopped_message)
    for index, message in enumerate(messages):
        previous_message = messages[index - 1] if index else None
        asked_message = find_asked_message(message, previous_message, stored_messages)
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
    return message.role, normalize_text(message.content), calls


def normalize_text(text: str) -> str:
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

    That is the content of tool results, and files by their sizes. A program that clears old results
    to save room edits nothing.
    """
    pairs = list(zip(messages, stored_messages, strict=True))
    newest_index = max(
        (index for index, message in enumerate(messages) if message.role != "tool"), default=0
    )
    pks = [stored_message.pk for message, stored_message in pairs if message.files]
    stored_sizes = _load_file_sizes(pks) if pks else {}
    for index, (client_message, stored_message) in enumerate(pairs):
        sizes = sorted(file.size for file in client_message.files)
        if sizes and stored_sizes.get(stored_message.pk, []) != sizes:
            return index
        if client_message.role != "tool":
            continue
        if index < newest_index and _is_cleared(client_message, stored_message):
            continue
        if not _is_same_result(session, client_message, stored_message):
            return index
    return len(pairs)


def _is_cleared(client_message: ClientMessage, stored_message: StoredMessage) -> bool:
    """Return True if a client has much less of a long result than is stored."""
    stored_length = len(stored_message.content)
    is_long = stored_length >= MIN_CLEARED_CHARS
    return is_long and len(client_message.content) < stored_length * MAX_CLEARED_RATIO


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


def find_overlaps(
    client_keys: Sequence[Hashable], stored_keys: Sequence[Hashable]
) -> Iterator[int]:
    """Yield each length at which `client_keys` begins as `stored_keys` ends, longest first.

    By Knuth, Morris and Pratt: the time grows with the sum of both lengths.
    """
    borders = _find_borders(client_keys)
    length = 0
    for length in measure_beginnings(client_keys, stored_keys):  # noqa: B007
        pass  # the last one counts: it ends where what is stored ends
    while length:
        yield length
        length = borders[length]


def measure_beginnings(
    client_keys: Sequence[Hashable], stored_keys: Sequence[Hashable]
) -> Iterator[int]:
    """Yield for each place of what is stored how long a beginning of `client_keys` ends there."""
    if not client_keys:
        return
    borders = _find_borders(client_keys)
    length = 0
    for key in stored_keys:
        while length and (length == len(client_keys) or client_keys[length] != key):
            length = borders[length]
        length += client_keys[length] == key
        yield length


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
    `replaced_pk` is the one that the only new message is another version of. `summary` is what the
    client sends in place of older messages, which stay.
    """

    new_messages: Sequence[ClientMessage] = ()
    regenerate_pk: int | None = None
    superseded_after: int | None = None
    replaced_pk: int | None = None
    summary: ClientSummary | None = None


def match_history(
    session: Session,
    messages: Sequence[ClientMessage],
    on_divergence: OnDivergence | None = None,
    *,
    summary_length: int = 0,
) -> HistoryMatch:
    """Find where the client's history continues the stored one, or leaves it.

    Without `on_divergence`, a history that leaves the stored one is an edit, and messages of the
    user alone are new ones: many clients send only these. The first `summary_length` messages are
    known to be a summary of the client's. Raises the 409 problem `history_diverged` if the history
    leaves the stored one, and that is to be refused.
    """
    # The end of a long session is enough to find what a history continues.
    limit = len(messages) + EXTRA_MESSAGES
    stored_messages, is_from_start = _load_messages(session, "-seq", limit)
    if not stored_messages:
        return HistoryMatch(new_messages=messages)
    may_be_summary = on_divergence in (None, OnDivergence.APPEND)
    history_match = (
        _match_summarized(session, messages, stored_messages, summary_length)
        if summary_length
        else _match_continued(session, messages, stored_messages)
        or (may_be_summary and _match_summarized(session, messages, stored_messages, 0))
    )
    if history_match:
        return history_match
    is_edit = on_divergence is OnDivergence.EDIT
    if not is_edit and all(message.role != "assistant" for message in messages):
        return HistoryMatch(new_messages=messages)
    if is_edit or on_divergence is None:
        edit = _match_edit(session, messages, stored_messages, is_from_start=is_from_start)
        edit = edit or _match_early_edit(session, messages, replaces_all=is_edit)
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


def _load_messages(session: Session, order: str, limit: int) -> tuple[list[StoredMessage], bool]:
    """Return the newest or the oldest current messages, in their order, and if these are all.

    `order` is "-seq" for the newest ones, "seq" for the oldest.
    """
    current_messages = session.messages.exclude_superseded().exclude(role=Message.Role.SYSTEM)
    rows = list(current_messages.order_by(order).values(*MESSAGE_COLUMNS)[:limit])
    rows.sort(key=lambda row: row["seq"])
    stored_messages = build_stored_messages(
        row for row in rows if row["status"] in ("complete", "interrupted")
    )
    return stored_messages, len(rows) < limit


def _match_continued(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> HistoryMatch | None:
    """Return the match if the client's history continues the stored one."""
    candidates = [stored_messages]
    # A client may or may not have seen an answer that was interrupted, so both are tried.
    complete_messages = [message for message in stored_messages if not message.is_interrupted]
    if len(complete_messages) < len(stored_messages):
        candidates.append(complete_messages)
    matches = (_match_stored(session, messages, candidate) for candidate in candidates)
    return next((history_match for history_match in matches if history_match), None)


def _match_summarized(
    session: Session,
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    summary_length: int,
) -> HistoryMatch | None:
    """Return the match of a history that begins with a summary of the client's own.

    What follows the summary continues the stored messages, or is an edit of the newest ones.
    """
    known_keys = list_known_keys(session)
    rest = drop_known_summaries(messages, known_keys) if known_keys else messages
    if not rest:
        return HistoryMatch(regenerate_pk=stored_messages[-1].pk)
    if rest[0] is not messages[0]:
        return _match_behind_summary(session, rest, stored_messages)
    if summary_length:
        return _match_known_summary(session, messages, stored_messages, summary_length)
    behind_first = _match_behind_first_messages(session, rest, stored_messages)
    if behind_first:
        return behind_first
    summary = find_summary_behind_questions(session, rest, stored_messages)
    if summary:
        # Inside a task the summary is the newest message, and it is what is answered.
        new_messages = rest[summary.length :] or rest[summary.length - 1 :]
        return HistoryMatch(new_messages=new_messages, summary=summary)
    head_length, start, length = _find_tail(rest, stored_messages)
    summary = find_client_summary(
        session,
        rest,
        stored_messages,
        head_length=head_length,
        tail_start=start if length else None,
    )
    if summary is None:
        return None
    rest = rest[summary.length :]
    if not length:
        return HistoryMatch(new_messages=rest, summary=summary)
    return replace(_match_behind_summary(session, rest, stored_messages), summary=summary)


def _match_behind_first_messages(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> HistoryMatch | None:
    """Return the match of a history whose summary stands behind the session's first messages."""
    kept_length = count_first_messages(session, messages)
    if not kept_length:
        return None
    head_length, start, length = _find_tail(messages[kept_length:], stored_messages)
    if not length:
        return None
    summary = find_client_summary(
        session,
        messages,
        stored_messages,
        head_length=kept_length + head_length,
        tail_start=start,
        kept_length=kept_length,
    )
    if summary is None:
        return None
    rest = messages[summary.length :]
    return replace(_match_behind_summary(session, rest, stored_messages), summary=summary)


def count_first_messages(session: Session, messages: Sequence[ClientMessage]) -> int:
    """Return how many messages, up to MAX_MESSAGES, are the first ones of a session."""
    first_messages, _ = _load_messages(session, "seq", MAX_MESSAGES)
    client_keys = build_client_keys(messages[:MAX_MESSAGES], first_messages)
    pairs = zip(client_keys, map(build_key, first_messages), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def measure_client_summary(session: Session, messages: Sequence[ClientMessage]) -> int:
    """Return the length of a summary of the client's own that stands before stored messages.

    It is a number of messages, and 0 if a history has no such summary.
    """
    limit = len(messages) + EXTRA_MESSAGES
    stored_messages, _ = _load_messages(session, "-seq", limit)
    if not stored_messages:
        return 0
    history_match = _match_summarized(session, messages, stored_messages, 0)
    summary = history_match.summary if history_match else None
    return summary.length if summary and summary.boundary_seq is not None else 0


def _match_known_summary(
    session: Session,
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    length: int,
) -> HistoryMatch:
    """Return the match of a history whose first messages are a summary, whatever follows them."""
    length += _count_acknowledgements(messages[length:], stored_messages)
    rest = list(messages[length:])
    if rest and rest[0].calls:
        # Some programs write a word of their own into the answer that follows their summary.
        call_ids = [call.id for call in rest[0].calls]
        same_answers = [
            each for each in stored_messages if [call.id for call in each.calls] == call_ids
        ]
        if same_answers:
            rest[0] = replace(rest[0], content=same_answers[-1].content)
    start, common_length = _find_common_run(rest, stored_messages)
    if common_length == 1 and rest[0].role == "assistant" and not rest[0].calls:
        # One answer alone is the newest one. An older one has the same text by chance: the model
        # said it to the summary.
        end = _find_end_before_summary(messages[:length], stored_messages)
        common_length = int(start == end - 1)
    summary = build_summary(
        messages[:length], stored_messages, tail_start=start if common_length else None
    )
    if not common_length:
        return HistoryMatch(new_messages=rest, summary=summary)
    return replace(_match_behind_summary(session, rest, stored_messages), summary=summary)


def _find_end_before_summary(
    head: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> int:
    """Return how many messages are stored before the exchange that asked for a summary, if any."""
    text = normalize_text(stored_messages[-1].content)
    is_asked = len(text) >= MIN_CHARS and any(text in message.content for message in head)
    return len(stored_messages) - 2 * is_asked


def _count_acknowledgements(
    messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> int:
    """Return how many messages behind a summary are the program's own, before stored ones.

    Some write an answer to their summary, and a request to go on with the task.
    """
    stored_keys = {build_key(message) for message in stored_messages}
    client_keys = build_client_keys(messages, stored_messages)
    for index, message in enumerate(messages[:MAX_MESSAGES]):
        if message.calls or client_keys[index] in stored_keys:
            return index
        if message.role == "tool":
            break
    return 0


def _find_tail(
    messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> tuple[int, int, int]:
    """Return how many messages come before the first stored ones, and where these are stored.

    The length of these is 0 if the newest stored messages are not among those of the client. The
    summary may be the newest stored answer, if the program asked for it in the session. Then the
    messages that were stored before that question stand behind it.
    """
    stored_keys = [build_key(message) for message in stored_messages]
    known_keys = set(stored_keys)
    client_keys = build_client_keys(messages, stored_messages)
    index = 0
    while True:
        while index < len(messages) and client_keys[index] not in known_keys:
            index += 1
        start, length = _find_common_run(messages[index:], stored_messages)
        earlier_start, earlier_length = _find_common_run(
            messages[index + length :], stored_messages[:start]
        )
        goes_back = earlier_length and earlier_start + earlier_length >= start - 1
        is_newest = start == len(stored_messages) - 1
        may_be_summary = index or (is_newest and len(stored_messages[start].content) >= MIN_CHARS)
        if not (length and goes_back and may_be_summary):
            break
        index += length
    later_messages = stored_messages[start + length :]
    last_keys = set(stored_keys[_find_second_last_question(stored_messages) :])
    # A program asks for its summary in one exchange, which may be stored behind the tail.
    is_end = sum(message.role == "user" for message in later_messages) <= 1
    is_end |= any(key in client_keys[index:] for key in last_keys)
    return index, start, length if is_end else 0


def _find_second_last_question(stored_messages: Sequence[StoredMessage]) -> int:
    questions = [index for index, each in enumerate(stored_messages) if each.role == "user"]
    return questions[-2] if len(questions) > 1 else 0


def _match_behind_summary(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> HistoryMatch:
    """Return the match of what follows a client's summary. Nothing before it is superseded."""
    history_match = _match_continued(session, messages, stored_messages)
    if history_match:
        return history_match
    start, length = _find_common_run(messages, stored_messages)
    common_messages = stored_messages[start : start + length]
    length = count_same_contents(session, messages[:length], common_messages)
    if length == 0:
        return HistoryMatch(new_messages=_list_messages_after_answer(messages))
    if length == len(messages):
        return HistoryMatch(regenerate_pk=common_messages[-1].pk)
    return HistoryMatch(
        new_messages=messages[length:], superseded_after=common_messages[length - 1].seq
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
    # Where the same is said again and again, the newest message may also be the next one. The
    # latter is meant, unless the client has all that is stored before it.
    is_next = 0 < overlap_length == len(messages) - 1 < len(unanswered_messages) - 1
    if has_answer and not is_next and len(unanswered_messages) < len(stored_messages):
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


def _match_early_edit(
    session: Session, messages: Sequence[ClientMessage], *, replaces_all: bool
) -> HistoryMatch | None:
    """Return the match of an edit in the beginning of a session of which only the end was read.

    None if the histories have no beginning in common, unless the client says that this is an edit
    of everything.
    """
    stored_messages, _ = _load_messages(session, "seq", len(messages) + 1)
    if not stored_messages:
        return None
    has_same_beginning = build_key(messages[0]) == build_key(stored_messages[0])
    if not (has_same_beginning or replaces_all):
        return None
    return _match_edit(session, messages, stored_messages, is_from_start=True)


def _find_common_run(
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    *,
    is_from_start: bool = False,
) -> tuple[int, int]:
    """Return where the longest beginning of the client's history is stored, and its length.

    A client sends its whole history more often than a part of it, so the stored beginning counts
    first, and then the latest place.
    """
    client_keys = build_client_keys(messages, stored_messages)
    stored_keys = [build_key(message) for message in stored_messages]
    lengths = list(measure_beginnings(client_keys, stored_keys))
    best_length = max(lengths, default=0)
    if best_length == 0:
        return 0, 0
    if is_from_start and lengths[best_length - 1] == best_length:
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
