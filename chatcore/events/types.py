"""The names of all events of a session's log, and the fields that each event carries.

Names and fields are public: clients read them from the event stream, so neither may change.
"""

import functools
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID


class EventType(StrEnum):
    """The name of an event. The page's `event_types.js` is generated from this list."""

    TURN_STARTED = "turn.started"
    TURN_WAITING = "turn.waiting"
    TURN_COMPLETED = "turn.completed"
    TURN_FAILED = "turn.failed"
    TURN_CANCELLED = "turn.cancelled"
    APPROVAL_DECIDED = "approval.decided"
    TURN_READING = "turn.reading"
    TOOLS_LISTED = "tools.listed"
    MESSAGE_CREATED = "message.created"
    MESSAGE_DELTA = "message.delta"
    MESSAGE_COMPLETED = "message.completed"
    REASONING_DELTA = "reasoning.delta"
    TOOL_CALL_STARTED = "tool_call.started"
    TOOL_CALL_COMPLETED = "tool_call.completed"
    COMPACTION_STARTED = "compaction.started"
    COMPACTION_PROGRESS = "compaction.progress"
    COMPACTION_APPLIED = "compaction.applied"
    COMPACTION_SKIPPED = "compaction.skipped"
    COMPACTION_FAILED = "compaction.failed"
    CONTEXT_USAGE = "context.usage"
    CONTEXT_TRIMMED = "context.trimmed"
    SESSION_UPDATED = "session.updated"
    EVENTS_DROPPED = "events.dropped"  # sent to one reader, never stored


@dataclass(frozen=True, kw_only=True)
class Event:
    """One stored event as clients see it."""

    session: UUID
    seq: int
    name: str
    data: dict[str, Any]
    at: datetime

    def to_payload(self) -> dict[str, object]:
        """Return the event's JSON object: its own fields with `session`, `seq` and `at`."""
        return {
            "session": str(self.session),
            "seq": self.seq,
            "at": self.at.isoformat(),
            **self.data,
        }

    @functools.cached_property
    def payload_json(self) -> str:
        """The event's JSON text, which all of its readers share."""
        return json.dumps(self.to_payload(), separators=(",", ":"), ensure_ascii=False)


TurnEndType = Literal[EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED]
DeltaType = Literal[EventType.MESSAGE_DELTA, EventType.REASONING_DELTA]

TURN_END_EVENTS: frozenset[EventType] = frozenset(
    {EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_CANCELLED}
)
# After these a turn says nothing more, until its client has sent what it waits for.
PAUSE_EVENTS = TURN_END_EVENTS | {EventType.TURN_WAITING}
DELTA_TYPES: tuple[DeltaType, ...] = (EventType.MESSAGE_DELTA, EventType.REASONING_DELTA)
DELTA_EVENTS: frozenset[EventType] = frozenset(DELTA_TYPES)


class TurnStartedPayload(TypedDict):
    """The turn's id, and the primary key of the user's message (null when an answer is redone)."""

    turn: str
    question: int | None


class TurnReadingPayload(TypedDict):
    """How much of a request its model has read, in tokens; sent while it reads for seconds."""

    turn: str
    read: int
    total: int


class ToolCallPayload(TypedDict):
    """A tool call as the model made it; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class ApprovalRequestPayload(ToolCallPayload):
    """A call that a person has to allow: its MCP server, and what the tool is called there."""

    server: str
    tool: str


class TurnWaitingPayload(TypedDict):
    """The calls whose results the client must send before the turn can continue.

    `approvals` are the calls that a person has to allow or to refuse before, if there are any.
    """

    turn: str
    tool_calls: list[ToolCallPayload]
    approvals: NotRequired[list[ApprovalRequestPayload]]


class ApprovalDecidedPayload(TypedDict):
    """What a person decided about the call `id`: once, always, deny or never."""

    turn: str
    id: str
    decision: str


class ToolsListedPayload(TypedDict):
    """What an MCP server of the turn's request offers: how many tools; `error` says why none."""

    turn: str
    server: str
    name: str
    tools: int
    error: str


class TurnEndPayload(TypedDict):
    """The end of a turn: `message` when it completed, `type` and `detail` when it failed.

    `context_trimmed` says of the message whether its request was trimmed.
    """

    turn: str
    message: NotRequired[int]
    context_trimmed: NotRequired[bool]
    type: NotRequired[str]
    detail: NotRequired[str]


class MessageCreatedPayload(TypedDict):
    """A new message. `replaces` is the primary key of its earlier version, if there is one.

    `recalled` is how many passages from before the boundary its turn has brought back, if any;
    `left_out` how many messages an answer's request left out to fit, if it was trimmed.
    """

    message: int
    role: str
    message_seq: int
    turn: str | None
    replaces: NotRequired[int]
    recalled: NotRequired[int]
    left_out: NotRequired[int]


class DeltaPayload(TypedDict):
    """Text added to a message at `offset`, counted in code points."""

    message: int
    offset: int
    text: str


class UsagePayload(TypedDict):
    """The provider's token counts for one answer."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None


class MessageCompletedPayload(TypedDict):
    """The final state of a message; `usage` is null when the provider gave no counts.

    `finish_reason` is why an answer ended, null if it did not end, or for another message.
    `context_trimmed` is true of an answer whose request was trimmed.
    """

    message: int
    role: str
    status: str
    usage: UsagePayload | None
    turn: str | None
    finish_reason: str | None
    context_trimmed: bool


class ToolCallStartedPayload(ToolCallPayload):
    """A tool call that begins to run; `message` is the assistant's message that contains it."""

    message: int


class ToolCallCompletedPayload(TypedDict):
    """A tool call with its result stored; `message` is the message that holds the result."""

    message: int
    id: str
    name: str
    is_error: bool


class CompactionStartedPayload(TypedDict):
    """A compaction run that begins to change the context; `targets` counts changed messages.

    `expected_seconds` is None where the speed of its model was never measured.
    """

    run: str
    messages_count: int
    force: bool
    targets: int
    expected_seconds: int | None


class CompactionProgressPayload(TypedDict):
    """What a summary model has written since the last event, at most one event a second.

    `part` of `parts` is being summarized; `offset` is where `text` begins in it, in code points.
    """

    run: str
    part: int
    parts: int
    offset: int
    text: str


class CompactionAppliedPayload(TypedDict):
    """A compaction run that changed the context; counts are in tokens unless named otherwise.

    `summary_model` is the model that somebody chose for this run, empty if nobody did.
    """

    run: str
    model: str
    summary_model: str
    cost: float | None
    targets_count: int
    tokens_saved: int | None
    messages_compacted: int
    tokens_before: int | None
    tokens_after: int | None
    duration_ms: int | None
    stages_used: list[str]
    reason: str


class CompactionEndedPayload(TypedDict):
    """A compaction run that changed nothing, and why."""

    run: str
    reason: str


class ContextUsagePayload(TypedDict):
    """The fill level of the context in tokens; fields are null while the window is unknown."""

    estimated_input_tokens: int
    source: str
    should_compact: bool
    available_input_tokens: int | None
    context_window: int | None
    window_source: str | None
    threshold_tokens: int | None
    usage_ratio: float | None
    level: str | None
    message_count: int
    live_message_count: int
    breakdown: dict[str, int]
    policy: str
    automatic: str
    compacting: bool
    next_request: str


class ContextTrimmedPayload(TypedDict):
    """The sentence to show to the user because old messages are left out of requests."""

    notice: str
    run: NotRequired[str]


class UpdatedMessagePayload(TypedDict, total=False):
    """A message that was pinned or unpinned; part of `session.updated`."""

    message: int
    pinned: bool


class SessionUpdatedPayload(UpdatedMessagePayload, total=False):
    """The session's changed fields, or the new version of its context."""

    fields: list[str]
    context_version: int


class EventsDroppedPayload(TypedDict):
    """The number up to which events are too old to be kept; the reader asked for some of them."""

    until: int


# What `append_events` accepts: each event type paired with the payload it carries.
NewEvent = (
    tuple[Literal[EventType.TURN_STARTED], TurnStartedPayload]
    | tuple[Literal[EventType.TURN_WAITING], TurnWaitingPayload]
    | tuple[Literal[EventType.APPROVAL_DECIDED], ApprovalDecidedPayload]
    | tuple[Literal[EventType.TURN_READING], TurnReadingPayload]
    | tuple[Literal[EventType.TOOLS_LISTED], ToolsListedPayload]
    | tuple[TurnEndType, TurnEndPayload]
    | tuple[Literal[EventType.MESSAGE_CREATED], MessageCreatedPayload]
    | tuple[DeltaType, DeltaPayload]
    | tuple[Literal[EventType.MESSAGE_COMPLETED], MessageCompletedPayload]
    | tuple[Literal[EventType.TOOL_CALL_STARTED], ToolCallStartedPayload]
    | tuple[Literal[EventType.TOOL_CALL_COMPLETED], ToolCallCompletedPayload]
    | tuple[Literal[EventType.COMPACTION_STARTED], CompactionStartedPayload]
    | tuple[Literal[EventType.COMPACTION_PROGRESS], CompactionProgressPayload]
    | tuple[Literal[EventType.COMPACTION_APPLIED], CompactionAppliedPayload]
    | tuple[
        Literal[EventType.COMPACTION_SKIPPED, EventType.COMPACTION_FAILED], CompactionEndedPayload
    ]
    | tuple[Literal[EventType.CONTEXT_USAGE], ContextUsagePayload]
    | tuple[Literal[EventType.CONTEXT_TRIMMED], ContextTrimmedPayload]
    | tuple[Literal[EventType.SESSION_UPDATED], SessionUpdatedPayload]
)


def render_event_types_js() -> str:
    """Return the content of the page's module `event_types.js`, which lists the same names."""
    members = "".join(f'  {event.name}: "{event.value}",\n' for event in EventType)
    return (
        "// List the types of the session's events. The server defines them;"
        " the page takes them from here.\n\n"
        f"export const EventType = Object.freeze({{\n{members}}});\n"
    )
