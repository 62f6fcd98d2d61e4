"""Load the stored messages that the next request sends, in the form that their edits give them.

Their sums are computed without loading any text.
"""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, tee
from typing import Any, Literal
from uuid import UUID

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    FilteredRelation,
    OuterRef,
    Q,
    Subquery,
    Sum,
    TextField,
    When,
)
from django.db.models.functions import Cast, Greatest, Length

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE, estimate_tokens
from chatcore.context.past_files import NO_FILES, PastFiles, load_past_files
from chatcore.files import rendering
from chatcore.models import Attachment, ContextEdit, Message, MessageQuerySet, Session
from chatcore.models.statements import (
    MESSAGE_COLUMNS,
    MessageRow,
    get_seq,
    load_context_row,
    load_live_rows,
)
from chatcore.projects.system_text import join_texts
from chatcore.providers import normal_form
from chatcore.providers.base import ChatMessage, ToolCall

# At most so many other messages are expected between a call and its results. Parallel calls and
# answers of other turns may stand there, and a limit keeps the query small.
_MAX_GAP = 8

# Superseded and failed messages, and those that are still being written, are not sent.
SENDABLE = Q(
    ~Q(role=Message.Role.SYSTEM),
    branch=None,
    status__in=[Message.Status.COMPLETE, Message.Status.INTERRUPTED],
)

# A message in another form has the size of its replacement, and a hidden one has none.
_SHOWN_TOKENS = Case(
    When(edit__pk=None, then=F("token_estimate")),
    When(edit__kind=ContextEdit.Kind.HIDDEN, then=0),
    default=Greatest(Length("edit__replacement") / CHARS_PER_TOKEN_ESTIMATE, 1),
)


# The values of MESSAGE_COLUMNS as statements by hand give them: JSON as text.
_TEXT_COLUMNS = [
    Cast(name, TextField()) if name in ("tool_calls", "provider_data") else name
    for name in MESSAGE_COLUMNS
]


@dataclass(frozen=True, kw_only=True)
class ActiveRevision:
    """The fields of the revision in force, which decide what the next request sends.

    `has_files` says whether any message has a file, and `has_edits` whether any is shown in another
    form, so that most sessions need no query for them.
    `recalled` is that of the open turn.
    """

    version: int = 0
    summary: str | None = None
    boundary_seq: int | None = None
    kept_seqs: Sequence[int] = ()
    background: str = ""
    placement: Mapping[str, Any] = field(default_factory=dict)
    has_files: bool = False
    has_edits: bool = False
    has_outputs: bool = False
    has_tool_limits: bool = False
    needs_pre_request: bool = False
    recalled: Mapping[str, object] | None = None
    past_files: PastFiles = NO_FILES

    @property
    def reference(self) -> str:
        """The text that is sent with the summary: the background, and the names of past files."""
        return join_texts((self.background, self.past_files.text))


# Not frozen, as ChatMessage is not, because there is one for each message of a context.
@dataclass(kw_only=True, slots=True)
class LiveMessage:
    """A stored message as it is sent.

    `provider_data` is JSON text, and `original_text` the stored text if an edit replaced it.
    """

    pk: int
    seq: int
    role: Literal["user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    provider_data: str = "{}"
    token_estimate: int = 0
    pinned: bool = False
    files: rendering.MessageFiles | None = None
    original_text: str | None = None
    is_hidden: bool = False

    def build_chat_message(self) -> ChatMessage:
        """Return the message as a request has it, with its files."""
        message = ChatMessage(
            role=self.role,
            content=self.content,
            tool_calls=self.tool_calls,
            tool_call_id=self.tool_call_id,
            tool_name=self.tool_name,
            is_error=self.is_error,
            provider_data={} if self.provider_data == "{}" else json.loads(self.provider_data),
            seq=self.seq,
            token_estimate=self.token_estimate,
            pinned=self.pinned,
            stored=(
                self.content if self.original_text is None else self.original_text,
                self.tool_calls,
            ),
        )
        return message if self.files is None else self.files.add_to_message(message)


def load_active_revision(session: Session) -> ActiveRevision:
    """Load the revision in force, and refresh the session's context fields from the database.

    This takes one query, and one more where files may be no longer sent. Raises
    Session.DoesNotExist if the session is deleted.
    """
    row = load_context_row(session.pk)
    if row is None:
        raise Session.DoesNotExist(f"Session {session.pk} is deleted.")
    session.context_version = row["context_version"]
    session.compacted_summary = row["compacted_summary"]
    session.compact_boundary_seq = row["compact_boundary_seq"]
    past_files = NO_FILES
    if row["has_files"] and row["context_version"]:
        past_files = load_past_files(
            session.pk, row["compact_boundary_seq"], row["kept_seqs"] or ()
        )
    return ActiveRevision(
        version=row["context_version"],
        summary=row["compacted_summary"],
        boundary_seq=row["compact_boundary_seq"],
        # Without a revision, the whole history is sent and there is no summary to place.
        kept_seqs=row["kept_seqs"] or (),
        background=row["background"] or "",
        placement=row["placement"] or {},
        has_files=row["has_files"],
        has_edits=row["has_edits"],
        has_outputs=row["has_outputs"],
        has_tool_limits=row["has_tool_limits"],
        needs_pre_request=row["needs_pre_request"],
        recalled=row["recalled"],
        past_files=past_files,
    )


def load_current_seqs(session_id: UUID, first_seq: int, last_seq: int) -> set[int]:
    """Return the numbers of the messages in a range that were neither superseded nor deleted.

    Two queries, each answered by an index alone; one with both conditions reads every row.
    """
    messages = Message.objects.filter(session=session_id).order_by().values_list("seq", flat=True)
    stored_seqs = messages.filter(seq__range=(first_seq, last_seq))
    return set(stored_seqs).difference(messages.filter(branch__isnull=False))


def load_live_messages(session: Session, revision: ActiveRevision) -> list[LiveMessage]:
    """Load the messages in order, with the calls and results that early ones belong to."""
    return list(iterate_live_messages(session, revision))


def iterate_live_messages(session: Session, revision: ActiveRevision) -> Iterator[LiveMessage]:
    """Yield what `load_live_messages` returns.

    Who needs each message only once does not keep thousands of them at the same time.
    """
    rows = load_live_rows(session.pk, revision.boundary_seq, revision.kept_seqs)
    early_count = bisect_left(rows, revision.boundary_seq or 0, key=get_seq)
    early_messages = [_build_live_message(row) for row in rows[:early_count]]
    early_messages = _add_early_pairs(session, revision, early_messages)
    edits = {}
    if revision.has_edits:
        early_ids = [message.pk for message in early_messages]
        edits = load_edits(session, revision.boundary_seq, early_ids)
    late_messages = map(_build_live_message, rows[early_count:])
    messages: Iterable[LiveMessage] = chain(early_messages, late_messages)
    if revision.has_files:
        messages = _add_files(session, list(messages), edits)
    for message in messages:
        yield _edit_message(message, edits[message.pk]) if message.pk in edits else message


def pair_live_messages(
    live_messages: Sequence[LiveMessage], boundary_seq: int | None
) -> list[ChatMessage]:
    """Return the messages as a request sends them: no hidden ones, every call with its results."""
    hidden_call_ids = {
        live_message.tool_call_id
        for live_message in live_messages
        if live_message.is_hidden and live_message.role == "tool"
    }
    repairable_seqs = {
        live_message.seq
        for live_message in live_messages
        if _is_repairable(live_message, boundary_seq)
    }
    visible_messages = [
        live_message.build_chat_message()
        for live_message in live_messages
        if not live_message.is_hidden
    ]
    paired_messages = normal_form.pair_tool_calls(
        visible_messages,
        boundary_seq=boundary_seq or 0,
        hidden_call_ids=hidden_call_ids,
        repairable_seqs=repairable_seqs,
    )
    return list(paired_messages)


def drop_unsent_messages(
    live_messages: Iterable[LiveMessage], boundary_seq: int | None
) -> Iterator[LiveMessage]:
    """Yield those of the messages that a request sends, in the order of their numbers.

    Notes that replace missing results are not stored messages, so they are not among them.
    """
    visible_messages, others = tee(message for message in live_messages if not message.is_hidden)
    for message, caller in zip(others, normal_form.find_callers(visible_messages), strict=True):
        if message.role != "tool" or caller is not None or _is_repairable(message, boundary_seq):
            yield message


def _is_repairable(message: LiveMessage, boundary_seq: int | None) -> bool:
    """Return whether a request makes up a call for this message if it is a result without one."""
    return message.pinned or message.seq < (boundary_seq or 0)


def _build_live_message(row: MessageRow) -> LiveMessage:
    """Build a message from the values of MESSAGE_COLUMNS."""
    (pk, seq, role, content, calls, call_id, tool_name, is_error, data, tokens, is_pinned) = row
    # Most messages have no calls, and to parse an empty list costs more than to build a message.
    tool_calls = () if calls == "[]" else tuple(ToolCall(**call) for call in json.loads(calls))
    return LiveMessage(
        pk=pk,
        seq=seq,
        role=role,
        content=content,
        tool_calls=tool_calls,
        tool_call_id=call_id,
        tool_name=tool_name,
        is_error=bool(is_error),
        provider_data=data,
        token_estimate=tokens,
        pinned=bool(is_pinned),
    )


def _add_early_pairs(
    session: Session, revision: ActiveRevision, early_messages: list[LiveMessage]
) -> list[LiveMessage]:
    """Add the calls and results that belong to messages before the boundary, in order.

    Such messages are sent because they are pinned or kept, and providers refuse a call without its
    results and a result without its call. Nothing is queried if none of them has to do with tools.
    """
    boundary_seq = revision.boundary_seq or 0
    result_seqs = [message.seq for message in early_messages if message.role == Message.Role.TOOL]
    if not result_seqs and not any(message.tool_calls for message in early_messages):
        return early_messages
    early_by_seq = {message.seq: message for message in early_messages}
    callers = _load_early(session, boundary_seq, _find_callers(session, result_seqs))
    nearby_seqs = {
        seq
        for message in (*early_messages, *callers.values())
        for seq in _list_result_seqs(message)
    }
    by_seq = callers | _load_early(session, boundary_seq, nearby_seqs) | early_by_seq
    messages = [by_seq[seq] for seq in sorted(by_seq)]
    pairs = [
        (messages[index].seq, message.seq)
        for message, index in zip(messages, normal_form.find_callers(messages), strict=True)
        if index is not None
    ]
    seqs = early_by_seq.keys() | {caller for caller, result in pairs if result in early_by_seq}
    seqs |= {result for caller, result in pairs if caller in seqs}
    return [by_seq[seq] for seq in sorted(seqs)]


def _load_early(
    session: Session, boundary_seq: int, seqs: Collection[int]
) -> dict[int, LiveMessage]:
    """Load the messages with these numbers that stand before the boundary, by their numbers."""
    early_seqs = [seq for seq in seqs if seq < boundary_seq]
    if not early_seqs:
        return {}
    messages = Message.objects.filter(SENDABLE, session=session, seq__in=early_seqs)
    rows = messages.order_by("seq").values_list(*_TEXT_COLUMNS)
    return {message.seq: message for message in map(_build_live_message, rows)}


def _list_result_seqs(message: LiveMessage) -> range:
    """Return the numbers among which the results of a message's calls are looked for."""
    call_count = len(message.tool_calls)
    first_seq = message.seq + 1
    return range(first_seq, first_seq + call_count + _MAX_GAP) if call_count else range(0)


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


def load_edits(
    session: Session, boundary_seq: int | None, early_ids: Collection[int]
) -> dict[int, tuple[str, str]]:
    """Return the edits in force of messages from the boundary on, and of those with these ids.

    Each has its kind and replacement.
    """
    edits = ContextEdit.objects.filter(until_version=None).values_list(
        "message_id", "kind", "replacement"
    )
    # Found by their messages: edits of what was summarized since stay in force, by thousands.
    late_edits = edits.filter(message__session=session, message__seq__gte=boundary_seq or 0)
    early_edits = edits.filter(message__in=early_ids)
    rows = late_edits.union(early_edits) if early_ids else late_edits
    return {pk: (kind, replacement) for pk, kind, replacement in rows}


def _add_files(
    session: Session, messages: Sequence[LiveMessage], edits: Collection[int]
) -> list[LiveMessage]:
    """Return the messages with their files. An edited message is sent without them."""
    unedited_ids = [message.pk for message in messages if message.pk not in edits]
    sees_images = session.model is not None and session.model.may_see_images
    files = rendering.load_message_files(session.pk, unedited_ids, accepts_images=sees_images)
    return [
        replace(message, files=files[message.pk]) if message.pk in files else message
        for message in messages
    ]


def _edit_message(message: LiveMessage, edit: tuple[str, str]) -> LiveMessage:
    """Return a message in the form that an edit gives it.

    An edit also drops the data that a provider wants back with a whole answer only.
    """
    kind, replacement = edit
    call_chars = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return replace(
        message,
        content=replacement,
        provider_data="{}",
        token_estimate=estimate_tokens(len(replacement) + call_chars),
        original_text=message.content,
        is_hidden=kind == ContextEdit.Kind.HIDDEN,
    )


@dataclass(frozen=True, kw_only=True)
class LiveContext:
    """What decides which messages of a session are live."""

    session_id: UUID
    version: int
    boundary_seq: int | None
    kept_seqs: Collection[int] = ()

    @property
    def start_seq(self) -> int:
        """Return the number before the first message that is live by its number."""
        return (self.boundary_seq or 1) - 1


@dataclass(frozen=True, kw_only=True)
class FileSum:
    """The estimated tokens of all files of live messages but images, and the number of these."""

    tokens: int
    images: int


def sum_live_tokens(
    context: LiveContext, *, after_seq: int = 0, before_seq: int | None = None
) -> int:
    """Return the estimated tokens of the live messages between two numbers, both excluded.

    Files are not included.
    """
    messages = _select_live_messages(context, after_seq, before_seq)
    if not context.version:
        return messages.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
    in_force = FilteredRelation("context_edits", condition=Q(context_edits__until_version=None))
    edited_messages = messages.annotate(edit=in_force)
    return edited_messages.aggregate(tokens=Sum(_SHOWN_TOKENS))["tokens"] or 0


def count_live_messages(
    context: LiveContext, *, after_seq: int = 0, before_seq: int | None = None
) -> int:
    """Return the number of live messages between two numbers, both excluded."""
    return _select_live_messages(context, after_seq, before_seq).count()


def count_early_messages(session_id: UUID, boundary_seq: int) -> int:
    """Return the number of current messages before the boundary, sent or not."""
    early_messages = Message.objects.filter(SENDABLE, session=session_id, seq__lt=boundary_seq)
    return early_messages.count()


def sum_live_files(context: LiveContext) -> FileSum:
    """Return the sum of the files of all live messages. A message in another form has none."""
    live_messages = _select_live_messages(context, 0, None)
    edits = ContextEdit.objects.filter(message=OuterRef("message"), until_version=None)
    files = Attachment.objects.filter(
        ~Exists(edits),
        session=context.session_id,
        kind="file",
        message__in=live_messages.values("pk"),
    )
    is_image = Q(media_type__startswith="image/")
    sums = files.aggregate(
        tokens=Sum("token_estimate", filter=~is_image), images=Count("pk", filter=is_image)
    )
    return FileSum(tokens=sums["tokens"] or 0, images=sums["images"])


def _select_live_messages(
    context: LiveContext, after_seq: int, before_seq: int | None
) -> MessageQuerySet:
    """Return the live messages between two numbers, both excluded, in no order."""
    start_seq = max(after_seq, context.start_seq)
    before = {} if before_seq is None else {"seq__lt": before_seq}
    session_messages = Message.objects.order_by()
    late = Q(session=context.session_id, seq__gt=start_seq, **before)
    if after_seq >= context.start_seq:
        return session_messages.filter(late, SENDABLE)
    # A union, because databases answer an OR over three indexes by reading the whole session.
    early = Q(session=context.session_id, seq__gt=after_seq, seq__lte=start_seq, **before)
    early_queries = [session_messages.filter(early, pinned=True).values("pk")]
    if context.kept_seqs:
        kept = Q(seq__in=context.kept_seqs)
        early_queries.append(session_messages.filter(early, kept).values("pk"))
    live_ids = session_messages.filter(late).values("pk").union(*early_queries)
    return session_messages.filter(SENDABLE, pk__in=live_ids)
