"""Load the stored messages that the next request sends, in the form that their edits give them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from chatcore.context import tool_pairs
from chatcore.files import rendering
from chatcore.models import CHAT_COLUMNS, Attachment, ContextEdit, Message, Session
from chatcore.providers.base import ChatMessage, ToolCall
from chatcore.sessions.token_estimate import estimate_tokens

_COLUMNS = ("id", *CHAT_COLUMNS, "provider_data", "token_estimate", "pinned")

# At most so many other messages are expected between a call and its results. Parallel calls and
# answers of other turns may stand there, and a limit keeps the query small.
_MAX_GAP = 8


@dataclass(frozen=True, kw_only=True)
class ActiveRevision:
    """The fields of the revision in force, which decide what the next request sends.

    `has_files` says whether any message has a file, so that most sessions need no query for files.
    """

    version: int = 0
    summary: str | None = None
    boundary_seq: int | None = None
    kept_seqs: Sequence[int] = ()
    background: str = ""
    placement: Mapping[str, Any] = field(default_factory=dict)
    has_files: bool = False


@dataclass(frozen=True, kw_only=True)
class LiveMessage:
    """A stored message as it is sent; `original_text` is the stored text if an edit replaced it."""

    message: ChatMessage
    pk: int
    pinned: bool = False
    original_text: str | None = None
    is_hidden: bool = False

    @property
    def seq(self) -> int:
        """Return the message's number in the session."""
        return self.message.seq or 0


def load_active_revision(session: Session) -> ActiveRevision:
    """Load the revision in force, and refresh the session's context fields from the database.

    This takes one query, and a second one if there is a revision.
    """
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
    """Return the messages that are sent: those from the boundary on, pinned ones, and kept ones.

    Superseded and failed messages, and those that are still being written, are left out.
    """
    messages = Message.objects.filter(session=session_id).order_by()
    if boundary_seq:
        # A union of three indexed queries, because databases answer an OR over three indexes by
        # reading the whole session. The cost then grows with what is sent, not with the history.
        late_messages = messages.filter(seq__gte=boundary_seq).values("pk")
        early_queries = [messages.filter(pinned=True, seq__lt=boundary_seq).values("pk")]
        if kept_seqs:
            early_queries.append(messages.filter(seq__in=kept_seqs).values("pk"))
        messages = Message.objects.filter(pk__in=late_messages.union(*early_queries))
    return _filter_sendable(messages)


def load_live_messages(session: Session, revision: ActiveRevision) -> list[LiveMessage]:
    """Load the messages in order, with the calls and results that early ones belong to."""
    messages = query_live_messages(session.pk, revision.boundary_seq, revision.kept_seqs)
    rows = _add_early_pairs(session, revision, list(messages.values(*_COLUMNS)))
    edits = _load_edits(session, revision, rows)
    files: Mapping[int, rendering.MessageFiles] = {}
    if revision.has_files:
        unedited_ids = [row["id"] for row in rows if row["id"] not in edits]
        supports_images = session.model is not None and session.model.supports_images
        files = rendering.load_message_files(
            session.pk, unedited_ids, accepts_images=supports_images
        )
    return [_build_live_message(row, edits.get(row["id"]), files.get(row["id"])) for row in rows]


def pair_live_messages(
    live_messages: Sequence[LiveMessage], boundary_seq: int | None
) -> list[ChatMessage]:
    """Return the messages as a request sends them: no hidden ones, every call with its results."""
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
    """Return those of the messages that a request sends, in the order of their numbers.

    Notes that replace missing results are not stored messages, so they are not among them.
    """
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
    """Add the calls and results that belong to rows before the boundary, in order.

    Such rows are sent because they are pinned or kept, and providers refuse a call without its
    results and a result without its call. Nothing is queried if no early row has to do with tools.
    """
    boundary_seq = revision.boundary_seq or 0
    early_rows = [row for row in rows if row["seq"] < boundary_seq]
    call_ids_by_seq = {
        row["seq"]: row["tool_call_id"] for row in early_rows if row["role"] == Message.Role.TOOL
    }
    if not call_ids_by_seq and not any(row["tool_calls"] for row in early_rows):
        return rows
    rows_by_seq = {row["seq"]: row for row in rows}
    early_messages = _filter_sendable(session.messages.filter(seq__lt=boundary_seq))
    for row in _load_callers(session, early_messages, call_ids_by_seq):
        rows_by_seq.setdefault(row["seq"], row)
    calling_rows = [
        row for row in rows_by_seq.values() if row["tool_calls"] and row["seq"] < boundary_seq
    ]
    nearby_rows = _load_nearby_rows(early_messages, calling_rows) | rows_by_seq
    for calling_row in calling_rows:
        for result_row in _find_results(calling_row, nearby_rows):
            rows_by_seq[result_row["seq"]] = result_row
    return [rows_by_seq[seq] for seq in sorted(rows_by_seq)]


def _load_callers(
    session: Session, early_messages: QuerySet[Message], call_ids_by_seq: Mapping[int, str]
) -> list[dict[str, Any]]:
    """Load the messages that made the calls of these results, which are given by their numbers."""
    call_ids = set(call_ids_by_seq.values())
    caller_seqs = _find_callers(session, call_ids_by_seq)
    rows = early_messages.filter(seq__in=caller_seqs).values(*_COLUMNS)
    return [row for row in rows if any(call["id"] in call_ids for call in row["tool_calls"])]


def _load_nearby_rows(
    early_messages: QuerySet[Message], calling_rows: Sequence[Mapping[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Load the rows in which the results of these calls can be, by their numbers."""
    nearby_seqs = {seq for row in calling_rows for seq in _list_result_seqs(row)}
    rows = early_messages.filter(seq__in=nearby_seqs).values(*_COLUMNS)
    return {row["seq"]: row for row in rows}


def _list_result_seqs(calling_row: Mapping[str, Any]) -> range:
    first_seq = calling_row["seq"] + 1
    return range(first_seq, first_seq + len(calling_row["tool_calls"]) + _MAX_GAP)


def _find_callers(session: Session, result_seqs: Collection[int]) -> set[int]:
    """Return the numbers of the nearest answer before each of these results."""
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
    """Yield the results of a row's calls among the rows after it."""
    open_call_ids = {call["id"] for call in calling_row["tool_calls"]}
    for seq in _list_result_seqs(calling_row):
        row = nearby_rows.get(seq)
        if row is None:
            continue
        if row["role"] == Message.Role.TOOL and row["tool_call_id"] in open_call_ids:
            open_call_ids.remove(row["tool_call_id"])
            yield row
        else:
            # Some models use an id again. From there on, a result belongs to the later call.
            open_call_ids -= {call["id"] for call in row["tool_calls"]}


def _load_edits(
    session: Session, revision: ActiveRevision, rows: Sequence[Mapping[str, Any]]
) -> dict[int, tuple[str, str]]:
    """Return the kind and replacement of the edits in force, by message id."""
    early_ids = [row["id"] for row in rows if row["seq"] < (revision.boundary_seq or 0)]
    message_filter = Q(message__seq__gte=revision.boundary_seq or 0)
    if early_ids:
        message_filter |= Q(message_id__in=early_ids)
    edits = session.context_edits.filter(message_filter, until_version=None)
    return {
        pk: (kind, replacement)
        for pk, kind, replacement in edits.values_list("message_id", "kind", "replacement")
    }


def _build_live_message(
    row: Mapping[str, Any], edit: tuple[str, str] | None, files: rendering.MessageFiles | None
) -> LiveMessage:
    """Build a message from its row, with its files, or in the form that an edit gives it.

    An edit also drops the files, and the data that a provider wants back with a whole answer only.
    """
    calls = tuple(ToolCall(**call) for call in row["tool_calls"])
    message = ChatMessage(
        **{name: row[name] for name in CHAT_COLUMNS if name != "tool_calls"},
        tool_calls=calls,
        provider_data=row["provider_data"],
        token_estimate=row["token_estimate"],
    )
    if edit is None:
        if files:
            message = files.add_to_message(message)
        return LiveMessage(message=message, pk=row["id"], pinned=row["pinned"])
    kind, replacement = edit
    call_chars = sum(len(call.name) + len(call.arguments) for call in calls)
    tokens = estimate_tokens(len(replacement) + call_chars)
    return LiveMessage(
        message=replace(message, content=replacement, provider_data={}, token_estimate=tokens),
        pk=row["id"],
        pinned=row["pinned"],
        original_text=row["content"],
        is_hidden=kind == ContextEdit.Kind.HIDDEN,
    )
