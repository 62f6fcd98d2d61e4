"""What clients say of tools: those they run themselves, their results, and how many are called."""

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chatcore.context.live_messages import ActiveRevision
from chatcore.events.types import EventType, NewEvent, ToolCallCompletedPayload
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import Request, StreamEnd, Tool, ToolCall
from chatcore.providers.protocols import load_protocol
from chatcore.sessions.tool_calls import find_calling_message, load_results, query_results
from chatcore.tools import output as tool_output
from chatcore.tools import registry as tool_registry
from chatcore.tools.mcp.catalog import list_turn_tools
from chatcore.tools.output import ToolOutput
from chatcore.turns.messages import append_message, build_created_event

MAX_TOOLS = 128  # of a request over REST; providers limit those of the compatible APIs
MAX_NAME_CHARS = 1_024  # of a tool; no provider accepts a longer name than `fit_name` makes of it
# The key of a stored tool under which an API notes how its client knows the tool.
CLIENT_FORM = "client"
WHERE_TO_CHANGE = (
    "If it does, an operator changes that in the admin: Language models, the field Supports tools."
)
# Names that every provider accepts; others are sent in a form that they accept (`fit_name`).
TOOL_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class InvalidClientTools(Exception):
    """Tools that cannot be offered; `field` is the path of the wrong value, e.g. tools[3].name."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class InvalidToolResult(Exception):
    """A result of an unknown call, or another result than before; `field` is its path."""

    def __init__(self, index: int, detail: str) -> None:
        super().__init__(detail)
        self.field = f"results[{index}].tool_call_id"
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class ClientToolResult:
    """The result of a tool that the client ran."""

    tool_call_id: str
    content: str
    is_error: bool = False


def validate_tools(
    session: Session, definitions: Sequence[Mapping[str, Any]]
) -> list[dict[str, object]]:
    """Return the definitions in the form in which they are stored. Raises InvalidClientTools."""
    if definitions and session.model is None:
        raise InvalidClientTools("tools", "There is no language model that could call them.")
    if definitions and session.model and not session.model.may_call_tools:
        raise InvalidClientTools(
            "tools", f"The language model {session.model} calls no tools. {WHERE_TO_CHANGE}"
        )
    used_names = {
        tool.name
        for tool in tool_registry.build_definitions(
            session.tools, has_outputs=True, has_hidden_files=True, session_id=session.pk
        )
    }
    valid_definitions = []
    for index, tool in enumerate(definitions):
        name = tool["name"]
        parameters = {"type": "object", "properties": {}} | dict(tool.get("parameters") or {})
        if not (name.strip() and name.isprintable() and len(name) <= MAX_NAME_CHARS):
            detail = f"A name of at most {MAX_NAME_CHARS:,} characters."
            raise InvalidClientTools(f"tools[{index}].name", detail)
        if name in used_names:
            raise InvalidClientTools(f"tools[{index}].name", "Another tool has this name.")
        if parameters["type"] != "object" or not isinstance(parameters["properties"], dict):
            raise InvalidClientTools(f"tools[{index}].parameters", "The JSON schema of an object.")
        used_names.add(name)
        definition = {
            "name": name,
            "description": tool.get("description") or "",
            "parameters": parameters,
        }
        if tool.get("strict"):
            definition["strict"] = True
        for key in ("cache_control", "native", CLIENT_FORM):
            if tool.get(key):
                definition[key] = tool[key]
        valid_definitions.append(definition)
    return valid_definitions


def list_offered_tools(session: Session, turn: Turn, revision: ActiveRevision) -> list[Tool]:
    """Return the tools of this turn: the session's, those of its MCP servers, the client's."""
    tools = {tool.name: tool for tool in tool_registry.list_session_tools(session, revision)}
    tools |= {tool.definition.name: tool.definition for tool in list_turn_tools(turn)}
    return merge_tools(list(tools.values()), turn.tools)


def merge_tools(
    built_in: Sequence[Tool], client_definitions: Sequence[Mapping[str, Any]]
) -> list[Tool]:
    """Return the tools of this server, then those of the client, which runs what has its names."""
    client_tools = [build_tool(tool) for tool in client_definitions]
    client_names = {tool.name for tool in client_tools}
    return [*(tool for tool in built_in if tool.name not in client_names), *client_tools]


def build_tool(definition: Mapping[str, Any]) -> Tool:
    """Return a stored tool as the provider is sent it."""
    return Tool(**{key: value for key, value in definition.items() if key != CLIENT_FORM})


def get_tool_names(turn: Turn) -> set[str]:
    """Return the names of the tools that the client runs in this turn."""
    return {tool["name"] for tool in turn.tools}


@contextlib.contextmanager
def put_outputs_away(
    session: Session, results: Sequence[ClientToolResult]
) -> Iterator[list[ToolOutput]]:
    """Prepare the results' outputs for a transaction; files that it did not need are deleted."""
    outputs = [output.put_away(session) for output in _build_outputs(session, results)]
    try:
        yield outputs
    finally:
        for output in outputs:
            output.discard_unused()


def accept_results(
    turn: Turn, results: Sequence[ClientToolResult], outputs: Sequence[ToolOutput] | None = None
) -> None:
    """Store results for a waiting turn whose row is locked; repeated ones are stored once.

    `outputs` are those of the results, put away; without them, whole outputs are stored in the
    database. Raises InvalidToolResult.
    """
    outputs = outputs or _build_outputs(turn.session, results)
    calls: dict[str, ToolCall] = {}
    stored_results: dict[str, Message] = {}
    calling_message = find_calling_message(turn)
    if calling_message:
        calls = {call["id"]: ToolCall(**call) for call in calling_message.tool_calls}
        stored_results = load_results(turn, calling_message)
    for index, result in enumerate(results):
        call = calls.get(result.tool_call_id)
        if call is None:
            raise InvalidToolResult(index, "No call that waits has this id.")
        if call.id not in stored_results:
            stored_results[call.id] = store_result(
                turn, call, outputs[index], is_error=result.is_error
            )
        elif not _is_same_result(stored_results[call.id], result):
            raise InvalidToolResult(index, "Another result was given before for this call.")


def has_results(turn: Turn, results: Collection[ClientToolResult]) -> bool:
    """Return True if the turn has exactly these results already."""
    messages = turn.messages.filter(
        role=Message.Role.TOOL, tool_call_id__in=[result.tool_call_id for result in results]
    )
    messages_by_call = {message.tool_call_id: message for message in messages.order_by("seq")}
    return all(
        result.tool_call_id in messages_by_call
        and _is_same_result(messages_by_call[result.tool_call_id], result)
        for result in results
    )


def has_result(turn: Turn, calling_message: Message, call: ToolCall) -> bool:
    """Return True if the result of a call of this message is stored."""
    return query_results(turn, calling_message).filter(tool_call_id=call.id).exists()


def store_result(turn: Turn, call: ToolCall, output: ToolOutput, *, is_error: bool) -> Message:
    """Store the result of a call and announce it, while the turn's row is locked."""
    message_fields = {"role": Message.Role.TOOL, "is_error": is_error, **output.message_fields}

    def build_call_completed_event(message: Message) -> NewEvent:
        return EventType.TOOL_CALL_COMPLETED, ToolCallCompletedPayload(
            message=message.pk, id=call.id, name=call.name, is_error=is_error
        )

    message = append_message(
        turn.session_id,
        turn,
        build_created_event,
        build_call_completed_event,
        **message_fields,
        tool_call_id=call.id,
        tool_name=call.name,
    )
    output.attach_full_text(message)
    return message


def _build_outputs(session: Session, results: Sequence[ClientToolResult]) -> list[ToolOutput]:
    return [tool_output.build_tool_output(session, "", result.content) for result in results]


def _is_same_result(message: Message, result: ClientToolResult) -> bool:
    expected_output = tool_output.build_tool_output(
        message.session, message.tool_name, result.content
    )
    is_same_text = expected_output.is_in(message.content, message.seq)
    return is_same_text and message.is_error == result.is_error


def limit_calls(turn: Turn, count: int | None) -> None:
    """Let the turn call so many more tools from now on; None for any number."""
    limit = None if count is None else _count_calls(turn) + count
    if limit != turn.max_tool_calls:
        turn.max_tool_calls = limit
        turn.save(update_fields=["max_tool_calls"])


def forbid_calls_over_limit(turn: Turn, request: Request) -> Request:
    """Return a request that lets the model call no tools if it has called as many as it may.

    The tools stay in the request: providers want to know those of earlier calls.
    """
    if not request.tools or _count_calls_left(turn) != 0:
        return request
    model = turn.session.model
    assert model is not None
    choice = load_protocol(model.provider.protocol).translate_params({"tool_choice": "none"})
    return replace(request, params={**request.params, **choice})


def drop_calls_over_limit(turn: Turn, completion: StreamEnd) -> StreamEnd:
    """Return an answer without the calls that are too many.

    OpenAI ignores them as well: they are neither run nor shown to the client.
    """
    count = _count_calls_left(turn) if completion.tool_calls else None
    return keep_first_calls(completion, count)


def keep_first_calls(completion: StreamEnd, count: int | None) -> StreamEnd:
    """Return an answer with its first calls; None for all of them."""
    if count is None or len(completion.tool_calls) <= count:
        return completion
    calls = completion.tool_calls[:count]
    return replace(completion, tool_calls=calls, reason="tool_calls" if calls else "stop")


def _count_calls_left(turn: Turn) -> int | None:
    if turn.max_tool_calls is None:
        return None
    return max(0, turn.max_tool_calls - _count_calls(turn))


def _count_calls(turn: Turn) -> int:
    answers = turn.messages.filter(role=Message.Role.ASSISTANT)
    return sum(len(calls) for calls in answers.values_list("tool_calls", flat=True))


def extend_tools(turn: Turn, tools: Sequence[Mapping[str, object]]) -> None:
    """Offer the tools of a request that goes on with a turn; earlier ones stay known by name.

    A client may search for tools and add what it has found.
    """
    definitions = {tool["name"]: tool for tool in (*turn.tools, *tools)}
    if list(definitions.values()) != turn.tools:
        turn.tools = list(definitions.values())
        turn.save(update_fields=["tools"])
