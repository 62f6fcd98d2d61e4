"""Find the conversation of a history that its program has rewritten with a summary of its own.

A program that names no conversation asks for its summary in words of its own, in any language, or
has it written elsewhere. So what follows the summary is recognized by what it is. Of exactly one of
the newest conversations of the token, one of these is true:

1. The summary stands in place of older messages (client_summaries.py), and the last answer of the
   history, behind it, is one of the newest answers that are stored.
2. The summary is the newest answer that is stored, and is as long as a summary.

Who pastes an answer into a new conversation asks there first, so that one is known by its first
message.
"""

from collections.abc import Iterable, Sequence

from chatcore.contrib.compat import summary_notes
from chatcore.contrib.compat.chat_completions.client_summaries import MIN_CHARS
from chatcore.contrib.compat.chat_completions.matching import (
    count_first_messages,
    measure_client_summary,
    normalize_text,
)
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.models import Message, Session

MIN_ANSWER_CHARS = 20  # of an answer without calls: shorter ones are often equal
RECENT_ANSWERS = 4  # the newest ones of a session: one or two of them may be the summary


def find_rewritten(
    sessions: Iterable[Session], messages: Sequence[ClientMessage]
) -> tuple[Session, int] | None:
    """Return the session that a rewritten history goes on in, and the length of its summary.

    The length is a number of messages.
    """
    found: list[tuple[Session, int]] = []
    longest_beginning = 0
    for session in sessions:
        kept_length = count_first_messages(session, messages)
        length = _measure_summary(session, messages)
        if length > kept_length:
            found.append((session, length))
        else:
            longest_beginning = max(longest_beginning, kept_length)
    if len(found) != 1 or found[0][1] <= longest_beginning:
        return None  # with a longer beginning of another conversation it is an edit of that one
    return found[0]


def _measure_summary(session: Session, messages: Sequence[ClientMessage]) -> int:
    answers = _load_newest_answers(session)
    last_answer = next((each for each in reversed(messages) if each.role == "assistant"), None)
    if last_answer and any(_is_same_answer(last_answer, each) for each in answers):
        return measure_client_summary(session, messages)
    newest_text = normalize_text(answers[0].content) if answers else ""
    if len(newest_text) < MIN_CHARS:
        return 0
    _, length = summary_notes.measure_head(newest_text, messages)
    return length if length < len(messages) else 0


def _load_newest_answers(session: Session) -> list[Message]:
    """Return the newest answers of a session, the newest one first."""
    messages = session.messages.exclude_superseded().filter(role=Message.Role.ASSISTANT)
    return list(messages.order_by("-seq")[:RECENT_ANSWERS])


def _is_same_answer(answer: ClientMessage, stored_answer: Message) -> bool:
    """Return True if an answer is a stored one, by its calls or by a text of some length."""
    stored_ids = [call["id"] for call in stored_answer.tool_calls]
    if stored_ids or answer.calls:
        return stored_ids == [call.id for call in answer.calls]
    text = normalize_text(answer.content)
    return len(text) >= MIN_ANSWER_CHARS and text == normalize_text(stored_answer.content)
