"""Messages of a chat as people read them: tool results inside their calls, files, versions, and what is to be told about each turn."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Prefetch, prefetch_related_objects

from chatcore.models import Attachment, Message, Session, Turn
from chatcore.turns import versions


@dataclass(kw_only=True)
class Call:
    """A tool call, and its result when there is one."""

    id: str
    name: str
    arguments: str
    result: Message | None = None


@dataclass(kw_only=True)
class Entry:
    """One message as the page shows it. `versions` are the ids at its place, oldest first; empty when there is no other."""

    message: Message
    calls: list[Call] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    compacted: bool = False
    failed_turn: Turn | None = None  # set on the last message of a turn that failed

    @property
    def files(self) -> list[Attachment]:
        """What came with it."""
        return [
            each for each in self.message.attachments.all() if each.kind == Attachment.Kind.FILE
        ]

    @property
    def number(self) -> int:
        """Which of its versions it is, from 1."""
        return self.versions.index(self.message.pk) + 1

    @property
    def older(self) -> int | None:
        """The version before it."""
        return self.versions[self.number - 2] if self.number > 1 else None

    @property
    def newer(self) -> int | None:
        """The version after it."""
        return self.versions[self.number] if self.number < len(self.versions) else None


def with_files(messages: Iterable[Message]) -> list[Message]:
    """The messages, with what came with them at hand but for its bytes."""
    rows = list(messages)
    prefetch_related_objects(
        rows,
        Prefetch(
            "attachments", Attachment.objects.defer("data", "text").order_by("created_at", "id")
        ),
    )
    return rows


def entries(session: Session, messages: Iterable[Message]) -> list[Entry]:
    """Fold each tool result into the newest call of its id; a result whose call is not among them stands alone."""
    rows = with_files(messages)
    places = versions.places(session.pk)
    found: list[Entry] = []
    waiting: dict[str, Call] = {}
    for message in rows:
        call = (
            waiting.pop(message.tool_call_id, None) if message.role == Message.Role.TOOL else None
        )
        if call:
            call.result = message
            continue
        calls = [Call(**stored) for stored in message.tool_calls]
        waiting |= {call.id: call for call in calls}
        compacted = message.seq < (session.compact_boundary_seq or 0)
        found.append(
            Entry(
                message=message,
                calls=calls,
                versions=places.get(message.pk, []),
                compacted=compacted,
            )
        )
    return _with_failed_turns(found)


def _with_failed_turns(found: list[Entry]) -> list[Entry]:
    """A turn that failed is told at its end, as long as nothing else answers its question."""
    for entry, following in zip(found, [*found[1:], None], strict=False):
        turn = entry.message.turn
        if following is None or following.message.role == Message.Role.USER:
            entry.failed_turn = turn if turn and turn.error else None
    if found and found[-1].message.role == Message.Role.USER:
        asked = found[-1].message
        others = Turn.objects.filter(question=asked).exclude(messages=asked)
        again = others.order_by("-started_at").first()
        found[-1].failed_turn = again if again and again.error else found[-1].failed_turn
    return found
