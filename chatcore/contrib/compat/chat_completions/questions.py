"""Say that an answer waits for its person's word, in an API that has no form for it.

A call of an MCP server's tool that a person must allow is no call for the client: it could not
answer it. So the answer ends with a sentence that says who is asked what, and where to answer.
"""

from collections.abc import Sequence
from itertools import pairwise
from textwrap import shorten

from chatcore.contrib.compat.chat_completions.stored_messages import StoredMessage
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.models import Turn
from chatcore.turns import waiting

MARK = "[This answer waits for your word. "
MAX_ARGUMENT_CHARS = 300


def build_question(turn: Turn) -> str:
    """Return the sentence of a turn that waits for approvals; empty if it waits for none."""
    calls = waiting.find_open_calls(turn).undecided_calls
    if not calls:
        return ""
    texts = [
        f"{request['tool']} of {request['server']} with"
        f" {shorten(request['arguments'], MAX_ARGUMENT_CHARS, placeholder=' …')}"
        for request in waiting.build_approval_requests(turn, calls)
    ]
    return (
        f"{MARK}The model wants to call: {'; '.join(texts)}. Allow or refuse it on the page of"
        f" this chat, or with POST /api/v1/sessions/{turn.session_id}/approvals.]"
    )


def find_asked_message(
    message: ClientMessage,
    previous_message: ClientMessage | None,
    stored_messages: Sequence[StoredMessage],
) -> StoredMessage | None:
    """Return the stored answer that a client has with such a sentence at its end.

    It is the one to the same question that begins with the same words, and may say more by now.
    """
    if message.role != "assistant" or MARK not in message.content or previous_message is None:
        return None
    text = message.content[: message.content.index(MARK)].strip()
    for question, answer in pairwise(stored_messages):
        is_same_question = (question.role, question.content.strip()) == (
            previous_message.role,
            previous_message.content.strip(),
        )
        if is_same_question and answer.role == "assistant" and answer.content.startswith(text):
            return answer
    return None
