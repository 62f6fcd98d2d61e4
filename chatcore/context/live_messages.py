"""The stored messages that the next request sends, in the form their edits give them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from chatcore.context import tool_pairs
from chatcore.files import rendering
from chatcore.models import Attachment, ContextEdit, Message, Session
from chatcore.providers.base import ChatMessage, ToolCall
from chatcore.sessions.token_estimate import estimate_tokens

_COLUMNS = (
    "id",
    "seq",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "is_error",
    "provider_data",
    "token_estimate",
    "pinned",
)

_BETWEEN = 8  # messages that may stand between a call and its results, besides the results


@dataclass(frozen=True, kw_only=True)
class InForce:
    """What decides what a session's next request sends: its revision's fields, and whether any message has a file."""

    version: int = 0
    summary: str | None = None
    boundary_seq: int | None = None
    kept_seqs: Sequence[int] = ()
    background: str = ""
    placement: Mapping[str, Any] = field(default_factory=dict)
    files: bool = False


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A stored message as it is sent. `original` is its stored text where an edit gave it another one."""

    message: ChatMessage
    pk: int
    pinned: bool = False
    original: str | None = None
    hidden: bool = False

    @property
    def seq(self) -> int:
        """Its number in the session."""
        return self.message.seq or 0


def in_force(session: Session) -> InForce:
    """Read what is in force, and refresh the session's context fields with it: one query, and one for the revision if there is any."""
    files = Attachment.objects.filter(
        session=OuterRef("pk"), kind=Attachment.Kind.FILE, message__isnull=False
    )
    names = ("compacted_summary", "compact_boundary_seq", "context_version")
    row = (
        Session.objects.filter(pk=session.pk)
        .annotate(files=Exists(files))
        .order_by()
        .values(*names, "files")
        .get()
    )
    for name in names:
        setattr(session, name, row[name])
    revision: dict[str, Any] = {}
    if session.context_version:
        found = session.revisions.filter(version=session.context_version).order_by()
        revision = dict(found.values("kept_seqs", "background", "placement").first() or {})
    return InForce(
        version=session.context_version,
        summary=session.compacted_summary,
        boundary_seq=session.compact_boundary_seq,
        files=row["files"],
        **revision,
    )


def sent(
    session_id: UUID, boundary_seq: int | None, kept_seqs: Collection[int] = ()
) -> QuerySet[Message]:
    """The messages that are sent: from the boundary on, pinned or kept; none superseded, failed or still being written.

    A union, because databases turn an OR over three indexes into a walk through the whole session: so the cost grows with what is found.
    """
    messages = Message.objects.filter(session=session_id).order_by()
    if boundary_seq:
        early = messages.filter(pinned=True, seq__lt=boundary_seq).values("pk")
        kept = [messages.filter(seq__in=kept_seqs).values("pk")] if kept_seqs else []
        messages = Message.objects.filter(
            pk__in=messages.filter(seq__gte=boundary_seq).values("pk").union(early, *kept)
        )
    return _sendable(messages)


def read(session: Session, now: InForce) -> list[Shown]:
    """The messages in order. What is sent from before the boundary brings the rest of its calls and results with it."""
    rows = _early_pairs(
        session, now, list(sent(session.pk, now.boundary_seq, now.kept_seqs).values(*_COLUMNS))
    )
    edits = _edits(session, now, rows)
    unedited = [row["id"] for row in rows if row["id"] not in edits]
    sees = session.model is not None and session.model.supports_images
    attached = rendering.attached(session.pk, unedited, sees=sees) if now.files else {}
    return [_shown(row, edits.get(row["id"]), attached.get(row["id"])) for row in rows]


def paired(shown: Sequence[Shown], boundary_seq: int | None) -> list[ChatMessage]:
    """The messages as a request sends them: without hidden ones, every call with its results."""
    hidden = {
        each.message.tool_call_id for each in shown if each.hidden and each.message.role == "tool"
    }
    rescued = {each.seq for each in shown if each.pinned or each.seq < (boundary_seq or 0)}
    messages = [each.message for each in shown if not each.hidden]
    return tool_pairs.paired(
        messages, boundary_seq=boundary_seq or 0, hidden=hidden, rescued=rescued
    )


def whole(shown: Sequence[Shown], boundary_seq: int | None) -> list[Shown]:
    """Those of them that a request sends, in the order of their numbers; without words of ours in place of what is missing."""
    seqs = {message.seq for message in paired(shown, boundary_seq)}
    return [each for each in shown if each.seq in seqs]


def _sendable(messages: QuerySet[Message]) -> QuerySet[Message]:
    unsent = [Message.Status.STREAMING, Message.Status.FAILED]
    return (
        messages.filter(branch=None)
        .exclude(status__in=unsent)
        .exclude(role=Message.Role.SYSTEM)
        .order_by("seq")
    )


def _early_pairs(
    session: Session, now: InForce, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows, and the callers and results that those before the boundary are paired with; no query where no tool is among them."""
    early = [row for row in rows if row["seq"] < (now.boundary_seq or 0)]
    answered = {
        row["seq"]: row["tool_call_id"] for row in early if row["role"] == Message.Role.TOOL
    }
    if not answered and not any(row["tool_calls"] for row in early):
        return rows
    known = {row["seq"]: row for row in rows}
    before = _sendable(session.messages.filter(seq__lt=now.boundary_seq))
    for row in before.filter(seq__in=_callers(session, answered)).values(*_COLUMNS):
        if any(call["id"] in answered.values() for call in row["tool_calls"]):
            known.setdefault(row["seq"], row)
    calling = [
        row for row in known.values() if row["tool_calls"] and row["seq"] < (now.boundary_seq or 0)
    ]
    nearby = {
        row["seq"] + step
        for row in calling
        for step in range(1, len(row["tool_calls"]) + 1 + _BETWEEN)
    }
    around = {row["seq"]: row for row in before.filter(seq__in=nearby).values(*_COLUMNS)} | known
    found = [result for row in calling for result in _answers(row, around)]
    return sorted((known | {row["seq"]: row for row in found}).values(), key=itemgetter("seq"))


def _callers(session: Session, answered: Collection[int]) -> set[int]:
    """The seqs of the nearest answer before each of these results."""
    earlier = Message.objects.filter(
        session=OuterRef("session"),
        branch=None,
        seq__lt=OuterRef("seq"),
        role=Message.Role.ASSISTANT,
    )
    nearest = Subquery(earlier.order_by("-seq").values("seq")[:1])
    callers = (
        session.messages.filter(seq__in=answered)
        .order_by()
        .annotate(caller=nearest)
        .values_list("caller", flat=True)
    )
    return {seq for seq in callers if seq is not None}


def _answers(
    calling: Mapping[str, Any], around: Mapping[int, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The results of a row's calls among the rows after it. An id that a later call uses again is that one's from there on."""
    waiting = {call["id"] for call in calling["tool_calls"]}
    for seq in range(calling["seq"] + 1, calling["seq"] + len(waiting) + 1 + _BETWEEN):
        row = around.get(seq)
        if row is not None and row["role"] == Message.Role.TOOL and row["tool_call_id"] in waiting:
            waiting.remove(row["tool_call_id"])
            yield row
        elif row is not None:
            waiting -= {call["id"] for call in row["tool_calls"]}


def _edits(
    session: Session, now: InForce, rows: Sequence[Mapping[str, Any]]
) -> dict[int, tuple[str, str]]:
    """Kind and replacement by message, of those that are sent."""
    early = [row["id"] for row in rows if row["seq"] < (now.boundary_seq or 0)]
    wanted = Q(message__seq__gte=now.boundary_seq or 0)
    edits = session.context_edits.filter(until_version=None).filter(
        wanted | Q(message_id__in=early) if early else wanted
    )
    return {
        pk: (kind, replacement)
        for pk, kind, replacement in edits.values_list("message_id", "kind", "replacement")
    }


def _shown(
    row: Mapping[str, Any], edit: tuple[str, str] | None, attached: rendering.Attached | None
) -> Shown:
    """A row in its form. What another form hides goes with it: files, and what the protocol wants back for the whole answer only."""
    calls = tuple(ToolCall(**call) for call in row["tool_calls"])
    message = ChatMessage(
        seq=row["seq"],
        role=row["role"],
        content=row["content"],
        tool_calls=calls,
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        is_error=row["is_error"],
        provider_data=row["provider_data"],
        token_estimate=row["token_estimate"],
    )
    if edit is None:
        return Shown(
            message=attached.joined(message) if attached else message,
            pk=row["id"],
            pinned=row["pinned"],
        )
    kind, replacement = edit
    tokens = estimate_tokens(
        len(replacement) + sum(len(call.name) + len(call.arguments) for call in calls)
    )
    return Shown(
        message=replace(message, content=replacement, provider_data={}, token_estimate=tokens),
        pk=row["id"],
        pinned=row["pinned"],
        original=row["content"],
        hidden=kind == ContextEdit.Kind.HIDDEN,
    )
