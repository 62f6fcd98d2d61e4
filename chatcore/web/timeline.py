"""Messages of a chat as people read them: tool results inside their calls, files, versions, and what is to be told about each turn."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Prefetch, prefetch_related_objects

from chatcore.models import Attachment, Message, Session, Turn
from chatcore.turns import versions


@dataclass(kw_only=True)
class TimelineCall:
    """A tool call, and its result when there is one."""

    id: str
    name: str
    arguments: str
    result: Message | None = None


@dataclass(kw_only=True)
class TimelineEntry:
    """One message as the page shows it. `versions` are the ids at its place, oldest first; empty when there is no other."""

    message: Message
    calls: list[TimelineCall] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    compacted: bool = False
    failed_turn: Turn | None = None  # set on the last message of a turn that failed

    @property
    def files(self) -> list[Attachment]:
        """What came with it."""
        return [
            attachment
            for attachment in self.message.attachments.all()
            if attachment.kind == Attachment.Kind.FILE
        ]

    @property
    def version_number(self) -> int:
        """Which of its versions it is, from 1."""
        return self.versions.index(self.message.pk) + 1

    @property
    def older_version(self) -> int | None:
        """The version before it."""
        return self.versions[self.version_number - 2] if self.version_number > 1 else None

    @property
    def newer_version(self) -> int | None:
        """The version after it."""
        return (
            self.versions[self.version_number] if self.version_number < len(self.versions) else None
        )


def prefetch_files(messages: Iterable[Message]) -> list[Message]:
    """The messages, with what came with them at hand but for its bytes."""
    rows = list(messages)
    prefetch_related_objects(
        rows,
        Prefetch(
            "attachments", Attachment.objects.defer("data", "text").order_by("created_at", "id")
        ),
    )
    return rows


def build_entries(session: Session, messages: Iterable[Message]) -> list[TimelineEntry]:
    """Fold each tool result into the newest call of its id; a result whose call is not among them stands alone."""
    rows = prefetch_files(messages)
    versions_by_message = versions.map_message_versions(session.pk)
    timeline_entries: list[TimelineEntry] = []
    open_calls: dict[str, TimelineCall] = {}
    for message in rows:
        call = (
            open_calls.pop(message.tool_call_id, None)
            if message.role == Message.Role.TOOL
            else None
        )
        if call:
            call.result = message
            continue
        calls = [TimelineCall(**call_data) for call_data in message.tool_calls]
        open_calls |= {call.id: call for call in calls}
        compacted = message.seq < (session.compact_boundary_seq or 0)
        timeline_entries.append(
            TimelineEntry(
                message=message,
                calls=calls,
                versions=versions_by_message.get(message.pk, []),
                compacted=compacted,
            )
        )
    return _mark_failed_turns(timeline_entries)


def _mark_failed_turns(timeline_entries: list[TimelineEntry]) -> list[TimelineEntry]:
    """A turn that failed is told at its end, as long as nothing else answers its question."""
    for entry, next_entry in zip(timeline_entries, [*timeline_entries[1:], None], strict=False):
        turn = entry.message.turn
        if next_entry is None or next_entry.message.role == Message.Role.USER:
            entry.failed_turn = turn if turn and turn.error else None
    if timeline_entries and timeline_entries[-1].message.role == Message.Role.USER:
        question = timeline_entries[-1].message
        other_turns = Turn.objects.filter(question=question).exclude(messages=question)
        retry_turn = other_turns.order_by("-started_at").first()
        timeline_entries[-1].failed_turn = (
            retry_turn if retry_turn and retry_turn.error else timeline_entries[-1].failed_turn
        )
    return timeline_entries
