"""Which calls of tools of a turn have a result, and which wait for theirs."""

from django.db.models import QuerySet

from chatcore.models import Message, Turn
from chatcore.providers.base import ToolCall


def find_calling_message(turn: Turn) -> Message | None:
    """Return the turn's newest complete message that calls tools."""
    return (
        turn.messages.filter(role=Message.Role.ASSISTANT, status=Message.Status.COMPLETE)
        .exclude(tool_calls=[])
        .order_by("seq")
        .last()
    )


def find_pending_calls(turn: Turn, calling_message: Message | None = None) -> list[ToolCall]:
    """Return the calls of a message, or of the newest round, without a result, in their order."""
    calling_message = calling_message or find_calling_message(turn)
    if calling_message is None:
        return []
    stored_results = load_results(turn, calling_message)
    return [
        ToolCall(**call) for call in calling_message.tool_calls if call["id"] not in stored_results
    ]


def load_results(turn: Turn, calling_message: Message) -> dict[str, Message]:
    """Return the results of a message's calls by call id."""
    return {message.tool_call_id: message for message in query_results(turn, calling_message)}


def query_results(turn: Turn, calling_message: Message) -> QuerySet[Message]:
    """Select the results of a message's calls."""
    # Only results after this message, because some models use the same ids again in each round.
    return turn.messages.filter(role=Message.Role.TOOL, seq__gt=calling_message.seq)
