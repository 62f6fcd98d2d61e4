"""Recognize the summary of a program that compacts its conversation by itself.

Such a program goes on with a history that begins with its own summary in place of older messages.
That is not an edit: the user has not changed the older messages. The summary is recognized by its
place and not by its words, because each program has others, in any language:

1. The history begins with at most MAX_MESSAGES messages that are stored nowhere in the session.
   They call no tools and have no files. An edit or a rewind begins with a stored message.
2. It replaces more stored messages than it has, with an answer among them. The edit of a first
   message replaces one by one.
3. Behind it stand stored messages, the newest ones among them. Where none is left, it is as long as
   a summary (MIN_CHARS), and replaces more than twice as many messages as it has.
4. Where it is as long as a summary and stands before the whole stored history, it replaces nothing:
   pi sends this where a single turn is all that there is.
5. It may stand behind the first messages of the session, which are then a part of it. Then it is as
   long as a summary too, since an edit in the middle of a history looks the same.

Codex keeps what the user said and leaves out the rest: its history begins with stored messages of
the user, and its summary stands behind the newest one. It is as long as a summary, and what comes
behind it is new. Inside a task nothing comes behind it, and then the stored task is not at its end.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from chatcore.contrib.compat.chat_completions.messages import StoredMessage
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.models import Session
from chatcore.signals import history_summarized

MAX_MESSAGES = 4
MIN_CHARS = 400
DIGEST_CHARS = 20  # of a message; the key of a summary has those of its messages
KEY_NAME = "client_summary"  # in the placement of the revision that has the summary


@dataclass(frozen=True, kw_only=True)
class ClientSummary:
    """What a client sends in place of older messages.

    `length` is the number of its messages. `boundary_seq` is the stored message that follows it;
    None if the first new message does.
    """

    text: str
    key: str
    length: int
    boundary_seq: int | None


def list_known_keys(session: Session) -> list[str]:
    """Return the keys of the client's summaries that the session has had, also undone ones."""
    revisions = session.revisions.filter(placement__has_key=KEY_NAME)
    return list(revisions.values_list(f"placement__{KEY_NAME}", flat=True))


def drop_known_summaries(
    messages: Sequence[ClientMessage], known_keys: Collection[str]
) -> list[ClientMessage]:
    """Return the messages without known summaries; an older one may stand behind a newer one."""
    digests = [_build_digest(message) for message in messages]
    lengths = sorted({key.count("-") + 1 for key in known_keys}, reverse=True)
    kept_messages: list[ClientMessage] = []
    index = 0
    while index < len(messages):
        keys = (("-".join(digests[index : index + length]), length) for length in lengths)
        known_length = next((length for key, length in keys if key in known_keys), 0)
        if not known_length:
            kept_messages.append(messages[index])
        index += known_length or 1
    return kept_messages


def find_client_summary(
    session: Session,
    messages: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    *,
    head_length: int,
    tail_start: int | None,
    kept_length: int = 0,
) -> ClientSummary | None:
    """Return the summary that a client's history begins with; None if it begins with none.

    Behind its first `head_length` messages stand those that are stored from the index `tail_start`
    on; None if no stored ones stand there. The first `kept_length` messages of these are the first
    ones of the session.
    """
    has_tail = tail_start is not None
    whole_head = messages[:head_length] if has_tail else _drop_questions(messages)
    head = whole_head[kept_length:]
    if not (0 < len(head) <= min(head_length, MAX_MESSAGES)):
        return None
    if not all(map(_may_be_summary, whole_head)):
        return None
    replaced_messages = stored_messages[kept_length:tail_start]
    has_answer = any(message.role == "assistant" for message in replaced_messages)
    text = "\n\n".join(message.content for message in head)
    min_count = len(head) if has_tail else 2 * len(head)
    if tail_start != 0 and (not has_answer or len(replaced_messages) <= min_count):
        return None
    if (not tail_start or kept_length) and len(text) < MIN_CHARS:
        return None
    same_messages = session.messages.filter(role=head[0].role, content=head[0].content)
    if tail_start:
        # The program may have asked for it in the session, behind the messages that it keeps.
        same_messages = same_messages.filter(seq__lt=stored_messages[tail_start].seq)
    if same_messages.exists():
        return None
    return build_summary(whole_head, stored_messages, tail_start=tail_start)


def find_summary_behind_questions(
    session: Session, messages: Sequence[ClientMessage], stored_messages: Sequence[StoredMessage]
) -> ClientSummary | None:
    """Return the summary that stands behind the user's messages; None if there is none.

    These are a part of it: the client sends them in place of the older messages, too.
    """
    questions = list(takewhile(lambda message: message.role == "user", messages))
    stored_questions = [message for message in stored_messages if message.role == "user"]
    if not stored_questions or stored_messages[-1].role == "user":
        return None
    newest_text = stored_questions[-1].content.strip()
    texts = [message.content.strip() for message in questions]
    if newest_text not in texts:
        return None
    length = len(texts) - texts[::-1].index(newest_text) + 1
    head = messages[:length]
    if length > len(questions) or len(head[-1].content) < MIN_CHARS or head[-1].files:
        return None
    is_open = stored_messages[-1].role == "tool" or bool(stored_messages[-1].calls)
    if length == len(messages) and not is_open:
        return None
    if session.messages.filter(role="user", content=head[-1].content).exists():
        return None
    return build_summary(head, stored_messages, tail_start=None)


def build_summary(
    head: Sequence[ClientMessage],
    stored_messages: Sequence[StoredMessage],
    *,
    tail_start: int | None,
) -> ClientSummary:
    """Return messages as the summary that they are.

    Behind them stand the messages that are stored from the index `tail_start` on; None for none.
    """
    return ClientSummary(
        text="\n\n".join(message.content for message in head),
        key="-".join(map(_build_digest, head)),
        length=len(head),
        boundary_seq=None if tail_start is None else _find_boundary(stored_messages, tail_start),
    )


def announce_summary(session: Session, summary: ClientSummary | None, *, after_seq: int) -> None:
    """Announce a new summary of the client, in the transaction that stored what follows it.

    `after_seq` was the newest message before. The caller has locked the session.
    """
    if summary is None:
        return
    boundary_seq = summary.boundary_seq
    if boundary_seq is None:
        new_messages = session.messages.exclude_superseded().filter(seq__gt=after_seq)
        boundary_seq = new_messages.order_by("seq").values_list("seq", flat=True).first()
    if boundary_seq is not None:
        history_summarized.send(
            Session,
            session=session,
            summary=summary.text,
            boundary_seq=boundary_seq,
            mark={KEY_NAME: summary.key},
        )


def _may_be_summary(message: ClientMessage) -> bool:
    return message.role != "tool" and not message.calls and not message.files


def _drop_questions(messages: Sequence[ClientMessage]) -> Sequence[ClientMessage]:
    """Return the messages up to the last answer."""
    end = len(messages)
    while end and messages[end - 1].role == "user":
        end -= 1
    return messages[:end]


def _find_boundary(stored_messages: Sequence[StoredMessage], index: int) -> int:
    """Return the `seq` of the message at an index, or of the call whose result it is."""
    while index and stored_messages[index].role == "tool":
        index -= 1
    return stored_messages[index].seq


def _build_digest(message: ClientMessage) -> str:
    text = f"{message.role} {message.content.strip()}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:DIGEST_CHARS]
