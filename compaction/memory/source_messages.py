"""Read stored messages by their numbers, whether or not they are still sent."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from chatcore.models import ContextEdit, ContextRevision, Message
from compaction.sessions.source_messages import query_batches

RECENT = timedelta(hours=1)
RECENT_MESSAGES = 100  # at most


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceMessage:
    """A message of the user or a tool as it is stored, without its files."""

    seq: int
    role: str
    text: str


def load_source_messages(
    session_id: UUID, *, after_seq: int, up_to_seq: int, limit: int
) -> list[SourceMessage]:
    """Return the first current messages of users and tools in a range, in order.

    `after_seq` is excluded, `up_to_seq` included. Messages that are not complete are left out.
    """
    messages = (
        Message.objects.filter(session=session_id, seq__gt=after_seq, seq__lte=up_to_seq)
        .filter(branch=None, role__in=[Message.Role.USER, Message.Role.TOOL])
        .exclude(status__in=[Message.Status.STREAMING, Message.Status.FAILED])
    )
    return [
        SourceMessage(seq=seq, role=role, text=text)
        for seq, role, text in messages.order_by("seq").values_list("seq", "role", "content")[
            :limit
        ]
    ]


def map_message_ids(session_id: UUID, seqs: Collection[int]) -> dict[int, int]:
    """Return the id of each message that exists, by its number."""
    ids: dict[int, int] = {}
    for messages in query_batches(session_id, seqs):
        ids.update(messages.values_list("seq", "id"))
    return ids


def find_recent_seq(session_id: UUID) -> int | None:
    """Return the number of the first message within an hour before the newest one."""
    messages = Message.objects.filter(session=session_id, branch=None).order_by("-seq")
    times = list(messages.values_list("seq", "created_at")[:RECENT_MESSAGES])
    return min((seq for seq, at in times if at >= times[0][1] - RECENT), default=None)


def find_message_seq(session_id: UUID, message_id: int) -> int | None:
    """Return the number of the session's message with this id; None if there is none."""
    messages = Message.objects.filter(session=session_id, pk=message_id)
    return messages.values_list("seq", flat=True).first()


def list_shortened_seqs(session_id: UUID, *, first_seq: int) -> frozenset[int]:
    """Return the numbers of messages from `first_seq` on that are sent in another form."""
    edits = ContextEdit.objects.filter(
        session=session_id, until_version=None, message__seq__gte=first_seq
    )
    return frozenset(edits.values_list("message__seq", flat=True))


def erase_background(session_id: UUID, texts: Collection[str]) -> None:
    """Clear the background of every revision that holds one of these texts."""
    for text in texts:
        revisions = ContextRevision.objects.filter(session=session_id)
        revisions.filter(background__contains=text).update(background="")
