"""Follow the turn of a stored response, and write its events: live, again, or from a number on."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

from chatcore.base.threads import run_in_thread
from chatcore.contrib.compat.chat_completions.streams import (
    DONE_EVENT,
    HEARTBEAT_COMMENT,
    add_heartbeats,
)
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import errors, ids, records, resource
from chatcore.contrib.compat.responses.mcp import items as mcp_items
from chatcore.contrib.compat.responses.output_items import Item, build_answer_items
from chatcore.contrib.compat.responses.request import get_reasoning_form
from chatcore.contrib.compat.responses.stream_events import Event, EventWriter, encode_event
from chatcore.events import log as event_log
from chatcore.events import retention
from chatcore.events.types import PAUSE_EVENTS, EventType
from chatcore.events.types import Event as LogEvent
from chatcore.models import Message, Turn
from chatcore.tools.mcp import catalog
from chatcore.turns import control

OPEN_STATUSES = ("queued", "in_progress")
SERVER_EVENTS = (EventType.TOOLS_LISTED, EventType.TOOL_CALL_COMPLETED)


async def stream_response(
    record: StoredResponse, *, starting_after: int | None = None
) -> AsyncGenerator[bytes]:
    """Yield a stored response as Server-Sent Events, from its first event or after a number."""
    events = follow_response(record)
    async with aclosing(encode_events(events, starting_after=starting_after)) as chunks:
        async for chunk in chunks:
            yield chunk


async def encode_events(
    events: AsyncGenerator[Event], *, starting_after: int | None = None
) -> AsyncGenerator[bytes]:
    """Yield events as Server-Sent Events with heartbeats, those after a number if one is given.

    The status is sent before an answer can fail, so an error becomes an event.
    """
    number = 0
    try:
        async with aclosing(add_heartbeats(events)) as parts:
            async for event in parts:
                if event is None:
                    yield HEARTBEAT_COMMENT
                    continue
                number = event["sequence_number"]
                if starting_after is None or number > starting_after:
                    yield encode_event(event)
                elif is_end(event):
                    # The words are no longer in the log in pieces, so there are fewer events now.
                    # The client must learn of the end all the same.
                    yield encode_event(event | {"sequence_number": starting_after + 1})
    except Exception as error:  # noqa: BLE001 - logged where it becomes an event
        yield encode_event(build_error_event(error, number + 1))
    yield DONE_EVENT


def is_end(event: Event) -> bool:
    """Return True for the last event of a response."""
    return "response" in event and event["response"]["status"] not in OPEN_STATUSES


def build_error_event(error: Exception, number: int) -> Event:
    """Return the event for an error in the middle of a response."""
    _, payload = errors.describe_error(error)
    return {"type": "error", "sequence_number": number, "error": payload}


def cancel_response(record: StoredResponse) -> None:
    """Stop the answer of a response if it is still being written."""
    turns = Turn.objects.filter(responses=record, status=Turn.Status.RUNNING)
    if turns.exists():
        control.cancel_turn(record.session_id)


async def follow_response(record: StoredResponse) -> AsyncGenerator[Event]:
    """Yield the events of a response, stored and future ones."""
    writer = EventWriter(get_reasoning_form(record.request))
    for event in writer.begin(await run_in_thread(_load_first_resource, record)):
        yield event
    if record.compaction:
        for event in writer.add_compaction(records.build_compaction_item(record)):
            yield event
    if record.turn is not None and await run_in_thread(_has_log, record):
        async with aclosing(_follow_log(record, writer)) as parts:
            async for part in parts:
                yield part
    else:
        for event in await run_in_thread(_write_stored_items, record, writer):
            yield event
    last_resource = await run_in_thread(resource.load_resource, record)
    for event in writer.finish(last_resource, _build_error_payload(last_resource)):
        yield event


async def _follow_log(record: StoredResponse, writer: EventWriter) -> AsyncGenerator[Event]:
    """Yield the events that the log has of the response, up to the end of its output."""
    message_ids: set[int] = set()
    for event in await run_in_thread(_begin_items, record, writer):
        yield event
    log_events = event_log.follow_events(record.session_id, record.after_event_seq)
    async with aclosing(log_events):
        async for log_event in log_events:
            if log_event is None:
                continue
            data = log_event.data
            is_own = data.get("turn") == str(record.turn_id)
            if is_own and log_event.name in PAUSE_EVENTS:
                return
            if is_own and log_event.name == EventType.MESSAGE_CREATED:
                if data["role"] == Message.Role.ASSISTANT:
                    message_ids.add(data["message"])
                    writer.begin_message(ids.build_stem(record.session_id, data["message_seq"]))
            elif data.get("message") in message_ids or log_event.name in SERVER_EVENTS:
                for event in await _write_message_event(record, writer, log_event):
                    yield event


async def _write_message_event(
    record: StoredResponse, writer: EventWriter, log_event: LogEvent
) -> Iterable[Event]:
    """Return the events for one event of a message that the log has."""
    match log_event.name:
        case EventType.MESSAGE_DELTA:
            return writer.add_text(log_event.data["text"])
        case EventType.REASONING_DELTA:
            return writer.add_reasoning(log_event.data["text"])
        case EventType.MESSAGE_COMPLETED:
            message_id = log_event.data["message"]
            return writer.end_message(await run_in_thread(_load_message_items, record, message_id))
        case EventType.TOOLS_LISTED | EventType.TOOL_CALL_COMPLETED:
            return await run_in_thread(_close_items, record, writer, log_event)
    return ()


def _begin_items(record: StoredResponse, writer: EventWriter) -> list[Event]:
    """Return the beginning of what precedes the messages: lists, and calls that were allowed."""
    events: list[Event] = []
    for server in records.load_servers(record):
        events += writer.begin_list(mcp_items.build_list_item(server))
    for call in records.load_asked_calls(record):
        events += writer.add_server_item(mcp_items.build_call_item(call))
    return events


def _close_items(record: StoredResponse, writer: EventWriter, log_event: LogEvent) -> list[Event]:
    """Return the end of the list or the call of which the log says that it is there."""
    data = log_event.data
    if log_event.name == EventType.TOOLS_LISTED:
        items = [
            mcp_items.build_list_item(server)
            for server in records.load_servers(record)
            if str(server.pk) == data["server"]
        ]
    elif catalog.is_tool_name(data["name"]):
        items = [mcp_items.build_call_item(call) for call in _find_calls(record, data["message"])]
    else:
        return []
    return [event for item in items for event in writer.close_server_item(item)]


def _find_calls(record: StoredResponse, result_id: int) -> list[mcp_items.ServerCall]:
    """Return the call that a result belongs to."""
    result = Message.objects.filter(pk=result_id, turn=record.turn).first()
    if result is None or record.turn is None:
        return []
    message = mcp_items.find_asked_message(record.turn, result.seq)
    calls = mcp_items.load_server_calls(message) if message else []
    return [call for call in calls if call.call.id == result.tool_call_id]


def _load_first_resource(record: StoredResponse) -> dict[str, object]:
    """Return the response as it was when it began."""
    return resource.load_resource(record) | {
        "status": "in_progress",
        "completed_at": None,
        "incomplete_details": None,
        "output": [],
        "error": None,
        "usage": None,
    }


def _has_log(record: StoredResponse) -> bool:
    turn = records.reload_response(record).turn
    return turn is not None and (turn.status in Turn.OPEN_STATUSES or retention.has_events_of(turn))


def _write_stored_items(record: StoredResponse, writer: EventWriter) -> list[Event]:
    """Return the events of an output that the log no longer has."""
    events: list[Event] = []
    for item in records.build_first_items(record):
        events += writer.add_server_item(item)
    for message in records.load_output_messages(record):
        writer.begin_message(ids.build_stem(record.session_id, message.seq))
        events += writer.end_message(_load_message_items(record, message.pk))
    return events


def _load_message_items(record: StoredResponse, message_id: int) -> list[Item]:
    """Return the items of one message of the response; none if it was deleted meanwhile."""
    messages = records.load_output_messages(record)
    status = records.get_status(records.reload_response(record), messages)
    form = get_reasoning_form(record.request)
    return [
        item
        for message in messages
        if message.pk == message_id
        for item in build_answer_items(
            records.build_answer(record, message, messages, status), form
        )
    ]


def _build_error_payload(last_resource: dict[str, Any]) -> dict[str, object] | None:
    """Return the error that comes before the end of a response that failed."""
    error = last_resource["error"]
    return errors.describe_failure(error["code"], error["message"]) if error else None
