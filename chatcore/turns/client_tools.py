"""Tools that the client runs itself: what is offered, which calls wait for it, and the results it brings."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatcore.events import log as event_log
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import Tool, ToolCall
from chatcore.tools import output as tool_output
from chatcore.tools import registry as tool_registry
from chatcore.turns.recorder import created, next_message

MAX_TOOLS = 128
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what both protocols take


class ToolsRefused(Exception):
    """Tools that cannot be offered; `field` is the path of what is wrong, as in tools[3].name."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class ResultRefused(Exception):
    """A result of a call that is not known, or not the one that was given before; `field` is its path."""

    def __init__(self, index: int, detail: str) -> None:
        super().__init__(detail)
        self.field = f"results[{index}].tool_call_id"
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a tool that the client ran came to."""

    tool_call_id: str
    content: str
    is_error: bool = False


def check(session: Session, given: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The definitions as they are stored. Raises ToolsRefused, which names the field."""
    if given and not (session.model and session.model.supports_tools):
        raise ToolsRefused("tools", "The language model calls no tools.")
    if len(given) > MAX_TOOLS:
        raise ToolsRefused("tools", f"At most {MAX_TOOLS} tools.")
    taken = {tool.name for tool in tool_registry.definitions(session.tools, outputs_kept=True)}
    kept = []
    for index, tool in enumerate(given):
        name, parameters = (
            tool["name"],
            {"type": "object", "properties": {}} | dict(tool.get("parameters") or {}),
        )
        if not NAME.fullmatch(name):
            raise ToolsRefused(f"tools[{index}].name", "1 to 64 letters, digits, _ and -.")
        if name in taken:
            raise ToolsRefused(f"tools[{index}].name", "Another tool has this name.")
        if parameters["type"] != "object" or not isinstance(parameters["properties"], dict):
            raise ToolsRefused(f"tools[{index}].parameters", "The JSON schema of an object.")
        taken.add(name)
        kept.append(
            {"name": name, "description": tool.get("description") or "", "parameters": parameters}
        )
    return kept


def offered(session: Session, turn: Turn) -> list[Tool]:
    """What the model is told of in this turn: the built-in tools of the session, then the client's."""
    return beside(tool_registry.offered_to(session), turn.tools)


def beside(built_in: Sequence[Tool], theirs: Sequence[Mapping[str, Any]]) -> list[Tool]:
    """Built-in tools, then the client's, as they are stored; a name that is taken is passed over."""
    taken = {tool.name for tool in built_in}
    return [*built_in, *(Tool(**tool) for tool in theirs if tool["name"] not in taken)]


def names(turn: Turn) -> set[str]:
    """Of the tools that the client runs in this turn."""
    return {tool["name"] for tool in turn.tools}


def rounds(turn: Turn) -> int:
    """How often the model has called tools in this turn."""
    return _asking(turn).count()


def pending(turn: Turn) -> list[ToolCall]:
    """The calls of the newest round that have no result yet, in their order."""
    asking = _asking(turn).last()
    if asking is None:
        return []
    done = _results(turn, asking)
    return [ToolCall(**call) for call in asking.tool_calls if call["id"] not in done]


def waiting(turn: Turn, calls: Sequence[ToolCall]) -> tuple[str, dict[str, Any]]:
    """The event that says for which results the turn waits."""
    asked = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    return "turn.waiting", {"turn": str(turn.pk), "tool_calls": asked}


def take(turn: Turn, results: Sequence[Result]) -> None:
    """Store results of a turn that waits and is locked; one that was given before is passed over. Raises ResultRefused."""
    asking = _asking(turn).last()
    calls = {call["id"]: ToolCall(**call) for call in asking.tool_calls} if asking else {}
    done = _results(turn, asking) if asking else {}
    for index, result in enumerate(results):
        call = calls.get(result.tool_call_id)
        if call is None:
            raise ResultRefused(index, "No call that waits has this id.")
        if call.id not in done:
            done[call.id] = store_result(turn, call, result.content, is_error=result.is_error)
        elif not _same(done[call.id], result):
            raise ResultRefused(index, "Another result was given before for this call.")


def taken(turn: Turn, results: Collection[Result]) -> bool:
    """Whether all of these were given before, as they are."""
    asked = turn.messages.filter(
        role=Message.Role.TOOL, tool_call_id__in=[result.tool_call_id for result in results]
    )
    stored = {message.tool_call_id: message for message in asked.order_by("seq")}
    return all(
        result.tool_call_id in stored and _same(stored[result.tool_call_id], result)
        for result in results
    )


def store_result(turn: Turn, call: ToolCall, content: str, *, is_error: bool) -> Message:
    """Store what a call came to and say so, inside a transaction that holds the turn."""
    output = tool_output.of(turn.session, call.name, content)
    said = {"role": Message.Role.TOOL, "is_error": is_error, **output.fields}
    message = next_message(turn.session_id, turn, **said, tool_call_id=call.id, tool_name=call.name)
    output.keep(message)
    done = {"message": message.pk, "id": call.id, "name": call.name, "is_error": is_error}
    event_log.append(
        turn.session_id, ("message.created", created(message)), ("tool_call.completed", done)
    )
    return message


def _asking(turn: Turn) -> Any:
    return (
        turn.messages.filter(role=Message.Role.ASSISTANT, status=Message.Status.COMPLETE)
        .exclude(tool_calls=[])
        .order_by("seq")
    )


def _results(turn: Turn, asking: Message) -> dict[str, Message]:
    """By the id of their call. A model may begin to count its calls anew in each round, so only those after `asking`."""
    return {
        message.tool_call_id: message
        for message in turn.messages.filter(role=Message.Role.TOOL, seq__gt=asking.seq)
    }


def _same(stored: Message, given: Result) -> bool:
    again = tool_output.of(stored.session, stored.tool_name, given.content)
    return (stored.content, stored.is_error) == (again.shown(stored.seq), given.is_error)
