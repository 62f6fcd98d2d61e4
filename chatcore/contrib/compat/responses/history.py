"""Recognize a conversation that a client sends back whole, by a hash of its messages.

Many clients send their whole history with each request, and name no earlier response. The hash of
the messages before the newest answer leads to the response that gave this answer.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from chatcore.contrib.compat.chat_completions.messages import normalize_arguments
from chatcore.contrib.compat.client_messages import ClientMessage
from chatcore.contrib.compat.content_parts import find_lasting_text
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import ids, records
from chatcore.contrib.compat.responses.output_items import list_client_calls
from chatcore.models import Message, Session
from chatcore.providers.base import ToolCall

MAX_CANDIDATES = 8  # responses to the same messages, of which the newest are compared


@dataclass(frozen=True, kw_only=True)
class KnownHistory:
    """The response that a client's history continues, and the messages that are new."""

    record: StoredResponse
    new_messages: list[ClientMessage]


def find_known_history(
    user: User,
    messages: Sequence[ClientMessage],
    *,
    seed: str = "",
    session: Session | None = None,
) -> KnownHistory | None:
    """Return the user's response that gave the newest answer in these messages, if there is one.

    `seed` begins the hash: each token knows its own conversations. With `session`, only its
    responses are looked at.
    """
    answer_indexes = [
        index for index, message in enumerate(messages) if message.role == "assistant"
    ]
    if not answer_indexes or answer_indexes[-1] == 0:
        return None
    index = answer_indexes[-1]
    candidates = records.select_owned_responses(user).filter(
        input_key=extend_key(seed, messages[:index])
    )
    if session:
        candidates = candidates.filter(session=session)
    for record in candidates.order_by("-created_at")[:MAX_CANDIDATES]:
        if _is_same_answer(records.load_output_messages(record), messages[index]):
            return KnownHistory(record=record, new_messages=list(messages[index + 1 :]))
    return None


def drop_server_calls(
    messages: Sequence[ClientMessage], call_ids: Collection[str]
) -> list[ClientMessage]:
    """Return messages without the calls that ran here, and their results.

    What the model said before and after them is one answer, as it is in the response that gave it;
    but a call that a person allowed ran in a later response.
    """
    if not call_ids:
        return list(messages)
    kept_messages: list[ClientMessage] = []
    is_same_answer = False
    for message in messages:
        if message.role == "tool" and message.call_id in call_ids:
            is_same_answer = not message.call_id.startswith(ids.APPROVAL_PREFIX)
            continue
        calls = tuple(call for call in message.calls if call.id not in call_ids)
        message = replace(message, calls=calls)
        if message.role == "assistant" and not message.has_content:
            continue
        last_message = kept_messages[-1] if kept_messages else None
        is_rest = is_same_answer and last_message is not None
        if is_rest and last_message and {last_message.role, message.role} == {"assistant"}:
            texts = (last_message.content, message.content)
            content = "\n\n".join(text for text in texts if text)
            kept_messages[-1] = replace(message, content=content)
        else:
            kept_messages.append(message)
    return kept_messages


def extend_key(key: str, messages: Iterable[ClientMessage]) -> str:
    """Return the hash of a conversation, given that of its beginning and the messages after it."""
    for message in messages:
        parts = [
            key,
            message.role,
            find_lasting_text(message.role, message.content),
            [_simplify_call(call) for call in message.calls],
            message.call_id,
            len(message.files),
        ]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return key


def build_next_key(record: StoredResponse) -> str:
    """Return the hash of a conversation up to the end of a response; empty if it is unknown."""
    messages = records.load_output_messages(record)
    if not record.input_key or not messages:
        return ""
    answer = _join_answers(messages)
    # One that only asks a person something is not there for a client that sends what was said.
    return extend_key(record.input_key, [answer]) if answer.has_content else record.input_key


def _is_same_answer(messages: Sequence[Message], answer: ClientMessage) -> bool:
    if not messages:
        return False
    return extend_key("", [_join_answers(messages)]) == extend_key("", [answer])


def _join_answers(messages: Sequence[Message]) -> ClientMessage:
    """Return the model's messages of one response as a client sends them back: as one."""
    return ClientMessage(
        role="assistant",
        content="\n\n".join(message.content for message in messages if message.content),
        calls=tuple(call for message in messages for call in list_client_calls(message)),
    )


def _simplify_call(call: ToolCall) -> list[str]:
    return [call.id, call.name, normalize_arguments(call.arguments)]
