"""Follow the turn of a stored response, and write its events: live, again, or from a number on."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any

from chatcore.events import log as event_log
from chatcore.events import retention
from chatcore.events.types import TURN_END_EVENTS, EventType
from chatcore.events.types import Event as LogEvent
from chatcore.faces.responses import errors, ids, records, resource
from chatcore.faces.responses.output_items import Item, build_answer_items
from chatcore.faces.responses.request import get_reasoning_form
from chatcore.faces.responses.stream_events import Event, EventWriter, encode_event
from chatcore.models import Message, StoredResponse, Turn
from chatcore.threads import run_in_thread
from chatcore.turns import service

HEARTBEAT_COMMENT = b": waiting\n\n"  # clients ignore comments
DONE_EVENT = b"data: [DONE]\n\n"
OPEN_STATUSES = ("queued", "in_progress")
PAUSE_EVENTS = TURN_END_EVENTS | {EventType.TURN_WAITING}  # after which a turn says nothing more


async def stream_response(
    record: StoredResponse, *, starting_after: int | None = None
) -> AsyncGenerator[bytes]:
    """Yield a stored response as Server-Sent Events, from its first event or after a number."""
    events = follow_response(record)
    async with aclosing(encode_events(events, starting_after=starting_after)) as chunks:
        async for chunk in chunks:
            yield chunk


async def encode_events(
    events: AsyncGenerator[Event | None], *, starting_after: int | None = None
) -> AsyncGenerator[bytes]:
    """Yield events as Server-Sent Events, those after a number if one is given.

    The status is sent before an answer can fail, so an error becomes an event.
    """
    number = 0
    try:
        async with aclosing(events):
            async for event in events:
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
        service.cancel_turn(record.session_id)


async def follow_response(record: StoredResponse) -> AsyncGenerator[Event | None]:
    """Yield the events of a response, stored and future ones; None is a heartbeat."""
    writer = EventWriter(get_reasoning_form(record.request))
    for event in writer.begin(await run_in_thread(_load_first_resource, record)):
        yield event
    if record.compaction:
        for event in writer.add_compaction(records.build_compaction_item(record)):
            yield event
    if record.turn is not None and await run_in_thread(_has_log, record):
        async for part in _follow_log(record, writer):
            yield part
    else:
        for stem, items in await run_in_thread(_load_stored_items, record):
            writer.begin_message(stem)
            for event in writer.end_message(items):
                yield event
    last_resource = await run_in_thread(resource.load_resource, record)
    for event in writer.finish(last_resource, _build_error_payload(last_resource)):
        yield event


async def _follow_log(record: StoredResponse, writer: EventWriter) -> AsyncIterator[Event | None]:
    """Yield the events that the log has of the response, up to the end of its output."""
    message_ids: set[int] = set()
    async for log_event in event_log.follow_events(record.session_id, record.after_event_seq):
        if log_event is None:
            yield None
            continue
        data = log_event.data
        is_own = data.get("turn") == str(record.turn_id)
        if is_own and log_event.name in PAUSE_EVENTS:
            return
        if is_own and log_event.name == EventType.MESSAGE_CREATED:
            if data["role"] == Message.Role.ASSISTANT:
                message_ids.add(data["message"])
                writer.begin_message(ids.build_stem(record.session_id, data["message_seq"]))
        elif data.get("message") in message_ids:
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
    return ()


def _load_first_resource(record: StoredResponse) -> dict[str, Any]:
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


def _load_stored_items(record: StoredResponse) -> list[tuple[str, list[Item]]]:
    return [
        (
            ids.build_stem(record.session_id, message.seq),
            _load_message_items(record, message.pk),
        )
        for message in records.load_output_messages(record)
    ]


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


def _build_error_payload(last_resource: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error that comes before the end of a response that failed."""
    error = last_resource["error"]
    return errors.describe_failure(error["code"], error["message"]) if error else None
