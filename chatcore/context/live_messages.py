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

_MAX_GAP = 8  # messages that may stand between a call and its results, besides the results


@dataclass(frozen=True, kw_only=True)
class ActiveRevision:
    """What decides what a session's next request sends: its revision's fields, and whether any message has a file."""

    version: int = 0
    summary: str | None = None
    boundary_seq: int | None = None
    kept_seqs: Sequence[int] = ()
    background: str = ""
    placement: Mapping[str, Any] = field(default_factory=dict)
    has_files: bool = False


@dataclass(frozen=True, kw_only=True)
class LiveMessage:
    """A stored message as it is sent. `original` is its stored text where an edit gave it another one."""

    message: ChatMessage
    pk: int
    pinned: bool = False
    original_text: str | None = None
    is_hidden: bool = False

    @property
    def seq(self) -> int:
        """Its number in the session."""
        return self.message.seq or 0


def load_active_revision(session: Session) -> ActiveRevision:
    """Read what is in force, and refresh the session's context fields with it: one query, and one for the revision if there is any."""
    sent_files = Attachment.objects.filter(
        session=OuterRef("pk"), kind=Attachment.Kind.FILE, message__isnull=False
    )
    names = ("compacted_summary", "compact_boundary_seq", "context_version")
    row = (
        Session.objects.filter(pk=session.pk)
        .annotate(files=Exists(sent_files))
        .order_by()
        .values(*names, "files")
        .get()
    )
    for name in names:
        setattr(session, name, row[name])
    revision_fields: dict[str, Any] = {}
    if session.context_version:
        revisions = session.revisions.filter(version=session.context_version).order_by()
        revision_fields = dict(
            revisions.values("kept_seqs", "background", "placement").first() or {}
        )
    return ActiveRevision(
        version=session.context_version,
        summary=session.compacted_summary,
        boundary_seq=session.compact_boundary_seq,
        has_files=row["files"],
        **revision_fields,
    )


def query_live_messages(
    session_id: UUID, boundary_seq: int | None, kept_seqs: Collection[int] = ()
) -> QuerySet[Message]:
    """The messages that are sent: from the boundary on, pinned or kept; none superseded, failed or still being written.

    A union, because databases turn an OR over three indexes into a walk through the whole session: so the cost grows with what is found.
    """
    messages = Message.objects.filter(session=session_id).order_by()
    if boundary_seq:
        early_pins = messages.filter(pinned=True, seq__lt=boundary_seq).values("pk")
        kept_queries = [messages.filter(seq__in=kept_seqs).values("pk")] if kept_seqs else []
        messages = Message.objects.filter(
            pk__in=messages.filter(seq__gte=boundary_seq)
            .values("pk")
            .union(early_pins, *kept_queries)
        )
    return _filter_sendable(messages)


def load_live_messages(session: Session, revision: ActiveRevision) -> list[LiveMessage]:
    """The messages in order. What is sent from before the boundary brings the rest of its calls and results with it."""
    rows = _add_early_pairs(
        session,
        revision,
        list(
            query_live_messages(session.pk, revision.boundary_seq, revision.kept_seqs).values(
                *_COLUMNS
            )
        ),
    )
    edits = _load_edits(session, revision, rows)
    unedited_ids = [row["id"] for row in rows if row["id"] not in edits]
    supports_images = session.model is not None and session.model.supports_images
    attachments = (
        rendering.load_message_files(session.pk, unedited_ids, accepts_images=supports_images)
        if revision.has_files
        else {}
    )
    return [
        _build_live_message(row, edits.get(row["id"]), attachments.get(row["id"])) for row in rows
    ]


def pair_live_messages(
    live_messages: Sequence[LiveMessage], boundary_seq: int | None
) -> list[ChatMessage]:
    """The messages as a request sends them: without hidden ones, every call with its results."""
    hidden_call_ids = {
        live_message.message.tool_call_id
        for live_message in live_messages
        if live_message.is_hidden and live_message.message.role == "tool"
    }
    repairable_seqs = {
        live_message.seq
        for live_message in live_messages
        if live_message.pinned or live_message.seq < (boundary_seq or 0)
    }
    visible_messages = [
        live_message.message for live_message in live_messages if not live_message.is_hidden
    ]
    return tool_pairs.pair_tool_calls(
        visible_messages,
        boundary_seq=boundary_seq or 0,
        hidden_call_ids=hidden_call_ids,
        repairable_seqs=repairable_seqs,
    )


def select_sent_messages(
    live_messages: Sequence[LiveMessage], boundary_seq: int | None
) -> list[LiveMessage]:
    """Those of them that a request sends, in the order of their numbers; without words of ours in place of what is missing."""
    seqs = {message.seq for message in pair_live_messages(live_messages, boundary_seq)}
    return [live_message for live_message in live_messages if live_message.seq in seqs]


def _filter_sendable(messages: QuerySet[Message]) -> QuerySet[Message]:
    unsent_statuses = [Message.Status.STREAMING, Message.Status.FAILED]
    return (
        messages.filter(branch=None)
        .exclude(status__in=unsent_statuses)
        .exclude(role=Message.Role.SYSTEM)
        .order_by("seq")
    )


def _add_early_pairs(
    session: Session, revision: ActiveRevision, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows, and the callers and results that those before the boundary are paired with; no query where no tool is among them."""
    early_rows = [row for row in rows if row["seq"] < (revision.boundary_seq or 0)]
    call_ids_by_seq = {
        row["seq"]: row["tool_call_id"] for row in early_rows if row["role"] == Message.Role.TOOL
    }
    if not call_ids_by_seq and not any(row["tool_calls"] for row in early_rows):
        return rows
    rows_by_seq = {row["seq"]: row for row in rows}
    early_messages = _filter_sendable(session.messages.filter(seq__lt=revision.boundary_seq))
    for row in early_messages.filter(seq__in=_find_callers(session, call_ids_by_seq)).values(
        *_COLUMNS
    ):
        if any(call["id"] in call_ids_by_seq.values() for call in row["tool_calls"]):
            rows_by_seq.setdefault(row["seq"], row)
    calling_rows = [
        row
        for row in rows_by_seq.values()
        if row["tool_calls"] and row["seq"] < (revision.boundary_seq or 0)
    ]
    nearby_seqs = {
        row["seq"] + step
        for row in calling_rows
        for step in range(1, len(row["tool_calls"]) + 1 + _MAX_GAP)
    }
    nearby_rows = {
        row["seq"]: row for row in early_messages.filter(seq__in=nearby_seqs).values(*_COLUMNS)
    } | rows_by_seq
    result_rows = [result for row in calling_rows for result in _find_results(row, nearby_rows)]
    return sorted(
        (rows_by_seq | {row["seq"]: row for row in result_rows}).values(), key=itemgetter("seq")
    )


def _find_callers(session: Session, result_seqs: Collection[int]) -> set[int]:
    """The seqs of the nearest answer before each of these results."""
    earlier_answers = Message.objects.filter(
        session=OuterRef("session"),
        branch=None,
        seq__lt=OuterRef("seq"),
        role=Message.Role.ASSISTANT,
    )
    nearest_seq = Subquery(earlier_answers.order_by("-seq").values("seq")[:1])
    caller_seqs = (
        session.messages.filter(seq__in=result_seqs)
        .order_by()
        .annotate(caller=nearest_seq)
        .values_list("caller", flat=True)
    )
    return {seq for seq in caller_seqs if seq is not None}


def _find_results(
    calling_row: Mapping[str, Any], nearby_rows: Mapping[int, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The results of a row's calls among the rows after it. An id that a later call uses again is that one's from there on."""
    open_call_ids = {call["id"] for call in calling_row["tool_calls"]}
    for seq in range(
        calling_row["seq"] + 1, calling_row["seq"] + len(open_call_ids) + 1 + _MAX_GAP
    ):
        row = nearby_rows.get(seq)
        if (
            row is not None
            and row["role"] == Message.Role.TOOL
            and row["tool_call_id"] in open_call_ids
        ):
            open_call_ids.remove(row["tool_call_id"])
            yield row
        elif row is not None:
            open_call_ids -= {call["id"] for call in row["tool_calls"]}


def _load_edits(
    session: Session, revision: ActiveRevision, rows: Sequence[Mapping[str, Any]]
) -> dict[int, tuple[str, str]]:
    """Kind and replacement by message, of those that are sent."""
    early_ids = [row["id"] for row in rows if row["seq"] < (revision.boundary_seq or 0)]
    message_filter = Q(message__seq__gte=revision.boundary_seq or 0)
    edits = session.context_edits.filter(until_version=None).filter(
        message_filter | Q(message_id__in=early_ids) if early_ids else message_filter
    )
    return {
        pk: (kind, replacement)
        for pk, kind, replacement in edits.values_list("message_id", "kind", "replacement")
    }


def _build_live_message(
    row: Mapping[str, Any], edit: tuple[str, str] | None, attachments: rendering.MessageFiles | None
) -> LiveMessage:
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
        return LiveMessage(
            message=attachments.add_to_message(message) if attachments else message,
            pk=row["id"],
            pinned=row["pinned"],
        )
    kind, replacement = edit
    tokens = estimate_tokens(
        len(replacement) + sum(len(call.name) + len(call.arguments) for call in calls)
    )
    return LiveMessage(
        message=replace(message, content=replacement, provider_data={}, token_estimate=tokens),
        pk=row["id"],
        pinned=row["pinned"],
        original_text=row["content"],
        is_hidden=kind == ContextEdit.Kind.HIDDEN,
    )
