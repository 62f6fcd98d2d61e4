"""A page of a conversation as people read it: tool results inside their calls, and what is to be told about each turn."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from chatcore.models import Message, Session, Turn

PAGE_SIZE = 60  # messages


@dataclass(kw_only=True)
class Call:
    """A tool call, and its result when there is one."""

    id: str
    name: str
    arguments: str
    result: Message | None = None


@dataclass(kw_only=True)
class Entry:
    """One message as the page shows it."""

    message: Message
    calls: list[Call] = field(default_factory=list)
    compacted: bool = False
    failed_turn: Turn | None = None  # set on the last message of a turn that failed


@dataclass(frozen=True, kw_only=True)
class Page:
    """Entries in reading order; `earlier` is the `seq` before which there are more, None at the beginning."""

    entries: list[Entry]
    earlier: int | None


def page(session: Session, *, before: int | None = None) -> Page:
    """The newest messages, or those before `before`: one indexed range whatever the length of the chat."""
    rows = session.messages.current().exclude(role=Message.Role.SYSTEM).select_related("turn").order_by("-seq")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    newest = list(rows[: PAGE_SIZE + 1])
    shown = newest[:PAGE_SIZE][::-1]
    return Page(entries=entries(session, shown), earlier=shown[0].seq if len(newest) > PAGE_SIZE else None)


def entries(session: Session, messages: Iterable[Message]) -> list[Entry]:
    """Fold each tool result into the newest call of its id; a result whose call is on an earlier page stands alone."""
    found: list[Entry] = []
    waiting: dict[str, Call] = {}
    for message in messages:
        call = waiting.pop(message.tool_call_id, None) if message.role == Message.Role.TOOL else None
        if call:
            call.result = message
            continue
        calls = [Call(**stored) for stored in message.tool_calls]
        waiting |= {call.id: call for call in calls}
        found.append(Entry(message=message, calls=calls, compacted=message.seq < (session.compact_boundary_seq or 0)))
    return _with_failed_turns(found)


def _with_failed_turns(found: list[Entry]) -> list[Entry]:
    last_of_turn = {entry.message.turn_id: entry for entry in found}
    for entry in last_of_turn.values():
        turn = entry.message.turn
        entry.failed_turn = turn if turn and turn.error else None
    return found
