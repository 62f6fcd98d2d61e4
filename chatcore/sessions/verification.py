"""Check that a stored session is consistent; the command `verify` prints what is not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Max, Min
from django.db.models.functions import Coalesce, Length

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.snapshots import open_snapshot
from chatcore.base.truncation import TOOL_RESULT_MAX_CHARS, cut_tool_result
from chatcore.context import live_messages, summary_block
from chatcore.files import output_store
from chatcore.models import ContextRevision, Message, Session, Turn
from chatcore.sessions.changes import count_current_messages
from chatcore.sessions.sections import load_sections
from chatcore.sessions.tool_calls import find_pending_calls

GRACE_PERIOD = timedelta(seconds=90)  # by then, the turn of a dead process is closed

PLAIN_FIELDS = frozenset(
    {
        "id",
        "owner",
        "title",
        "title_source",  # of a title that was changed since, it says nothing
        "model",
        "system_prompt",
        "project",
        "overhead_since",
        "policy",
        "auto_compact",
        "tools",
        "params",
        "compact_threshold",
        "external_id",
        "forked_from",
        "forked_from_seq",
        "parent",
        "metadata",
        "pinned",
        "archived",
        "temporary",
        "created_at",
        "updated_at",
        "discard_at",
        "expired_at",
    }
)


@dataclass(frozen=True, kw_only=True)
class DerivedField:
    """A rule that computes a column of a session from the rows that it summarizes.

    `source` names these rows in a sentence. A counter that gives out numbers may be higher than the
    highest number in use, because numbers of deleted rows are not used again.
    """

    source: str
    compute: Callable[[Session], int | str | datetime | None]
    is_counter: bool = False


def load_newest_revision(session: Session) -> ContextRevision:
    """Return the newest revision; without any, an unsaved one that shows the whole history."""
    return session.revisions.order_by("-version").first() or ContextRevision(version=0)


# Whoever adds a column to Session adds it to one of these two tables; a test compares them.
DERIVED_FIELDS = {
    "message_count": DerivedField(
        source="the number of current messages",
        compute=lambda session: count_current_messages(session.pk),
    ),
    "last_seq": DerivedField(
        source="the newest message",
        compute=lambda session: session.messages.aggregate(newest=Max("seq"))["newest"] or 0,
        is_counter=True,
    ),
    "last_event_seq": DerivedField(
        source="the newest event",
        compute=lambda session: session.events.aggregate(newest=Max("seq"))["newest"] or 0,
        is_counter=True,
    ),
    "context_version": DerivedField(
        source="the newest revision",
        compute=lambda session: load_newest_revision(session).version,
    ),
    "compacted_summary": DerivedField(
        source="the summary of the newest revision",
        compute=lambda session: load_newest_revision(session).summary,
    ),
    "compact_boundary_seq": DerivedField(
        source="the boundary of the newest revision",
        compute=lambda session: load_newest_revision(session).boundary_seq,
    ),
    "compact_boundary_timestamp": DerivedField(
        source="the time of the newest revision's boundary",
        compute=lambda session: load_newest_revision(session).boundary_timestamp,
    ),
}


def check_session(session_id: UUID) -> list[str]:
    """Return a sentence for each rule that the stored session breaks; none if it is deleted.

    The session may be in use: all is read as it was at one moment. What is found is looked for once
    more, because files are in no transaction.
    """
    violations = _check_at_once(session_id)
    return _check_at_once(session_id) if violations else []


def _check_at_once(session_id: UUID) -> list[str]:
    with open_snapshot():
        session = Session.objects.filter(pk=session_id).first()
        return list(find_violations(session)) if session else []


def find_violations(session: Session) -> Iterator[str]:
    """Yield a sentence for each rule that the session breaks."""
    yield from _check_derived_fields(session)
    yield from _check_owners(session)
    yield from find_context_violations(session)
    yield from _check_branches(session)
    yield from _check_turns(session)
    yield from _check_tool_results(session)
    yield from _check_output_files(session)
    for section in load_sections():
        yield from section.find_violations(session)


def _check_derived_fields(session: Session) -> Iterator[str]:
    for name, field in DERIVED_FIELDS.items():
        stored_value = getattr(session, name)
        computed_value = field.compute(session)
        if field.is_counter:
            is_consistent = stored_value >= computed_value
        else:
            is_consistent = stored_value == computed_value
        if is_consistent:
            continue
        if isinstance(stored_value, str) or isinstance(computed_value, str):
            # Texts are private and long, so they are not shown in a log.
            yield f"{name} differs from {field.source}"
        else:
            yield f"{name} is {stored_value}, but {field.source} is {computed_value}"


def _check_owners(session: Session) -> Iterator[str]:
    for rows, name in (
        (session.turns, "turns"),
        (session.messages, "messages"),
        (session.events, "events"),
    ):
        foreign_rows = rows.filter(owner_id__isnull=False).exclude(owner_id=session.owner_id)
        if count := foreign_rows.count():
            yield f"{count} {name} name another owner than the session"


def _check_branches(session: Session) -> Iterator[str]:
    # Messages that were superseded together follow one earlier message. The order of the current
    # messages follows from `seq` alone, so they have no such link.
    superseded_messages = session.messages.exclude(branch=None).order_by()
    branches = superseded_messages.values("branch").annotate(
        first=Min("seq"), after=Min("branch_after"), until=Max("branch_after")
    )
    for branch in branches:
        if branch["after"] is None or branch["after"] != branch["until"]:
            yield f"the branch of message {branch['first']} follows no one message"
        elif branch["after"] >= branch["first"]:
            yield f"the branch of message {branch['first']} follows a later one, {branch['after']}"
    current_messages = session.messages.exclude_superseded()
    for seq in current_messages.exclude(branch_after=None).values_list("seq", flat=True):
        yield f"message {seq} is current and has a place in a branch"
    for seq in current_messages.filter(replaces__isnull=False, replaces__branch=None).values_list(
        "seq", flat=True
    ):
        yield f"message {seq} and the one it replaces are both current"


def _check_turns(session: Session) -> Iterator[str]:
    if session.turns.filter(status__in=Turn.OPEN_STATUSES).count() > 1:
        yield "more than one turn is running or waiting"
    for turn in session.turns.filter(status=Turn.Status.WAITING):
        if not find_pending_calls(turn):
            yield f"turn {turn.pk} waits for nothing"
    late_turns = session.turns.filter(
        status=Turn.Status.RUNNING, lease_until__lt=read_clock() - GRACE_PERIOD
    )
    yield from (f"turn {turn.pk} is running without a process" for turn in late_turns)
    orphan_messages = session.messages.filter(status=Message.Status.STREAMING).exclude(
        turn__status=Turn.Status.RUNNING
    )
    yield from (
        f"message {message.seq} is streaming in no running turn" for message in orphan_messages
    )


def _check_tool_results(session: Session) -> Iterator[str]:
    results = session.messages.filter(role=Message.Role.TOOL)
    long_results = results.annotate(chars=Length("content")).filter(
        chars__gt=Coalesce("tool_result_limit", TOOL_RESULT_MAX_CHARS)
    )
    columns = long_results.values_list("seq", "content", "tool_result_limit")
    for seq, content, limit in columns.iterator():
        if cut_tool_result(content, limit or TOOL_RESULT_MAX_CHARS)[0] != content:
            yield f"the tool result {seq} is longer than its limit"


def _check_output_files(session: Session) -> Iterator[str]:
    files = session.output_files.values_list("attachment__message__seq", "name")
    for seq, name in files.order_by("pk"):
        if not output_store.has_file(name):
            yield f"what belongs to message {seq} is not in the store of files and outputs"


def find_context_violations(session: Session) -> Iterator[str]:
    """Yield a sentence for each rule that the session's context breaks."""
    revision = session.revisions.order_by("-version").first() or ContextRevision(version=0)
    if revision.stale and revision.version == session.context_version:
        yield (
            f"the context in force, {revision.version}, speaks of messages that were changed since"
        )
    yield from _check_boundary(session)
    yield from _check_kept_messages(session, revision)
    yield from _check_placement(session, revision)
    yield from _check_pins(session)


def _check_boundary(session: Session) -> Iterator[str]:
    # The message at the boundary may have been deleted. It may also have been superseded, if the
    # next current message is its newer version.
    boundary = session.compact_boundary_seq
    if boundary is None:
        return
    if boundary > session.last_seq:
        yield f"there is no message at the boundary {boundary}"
        return
    boundary_message = session.messages.filter(seq=boundary).first()
    first_message = (
        session.messages.exclude_superseded().filter(seq__gte=boundary).order_by("seq").first()
    )
    is_superseded = boundary_message is not None and boundary_message.branch is not None
    is_replaced = first_message is None or first_message.replaces_id is not None
    if is_superseded and not is_replaced:
        yield f"the boundary {boundary} is at a superseded message"
    elif first_message is not None and first_message.role == Message.Role.TOOL:
        yield f"the boundary {boundary} parts a tool result from its call"


def _check_kept_messages(session: Session, revision: ContextRevision) -> Iterator[str]:
    current_seqs = set(
        session.messages.exclude_superseded()
        .filter(seq__in=revision.kept_seqs)
        .values_list("seq", flat=True)
    )
    for seq in revision.kept_seqs:
        if seq not in current_seqs:
            yield f"message {seq} is kept before the boundary, and is not there"
        elif revision.boundary_seq is None or seq >= revision.boundary_seq:
            yield (
                f"message {seq} is kept before the boundary {revision.boundary_seq}, "
                "and is not before it"
            )


def _check_placement(session: Session, revision: ContextRevision) -> Iterator[str]:
    placement = revision.placement
    if (
        not isinstance(placement, dict)
        or summary_block.get_place(placement) not in summary_block.PLACES
    ):
        yield f"the summary stands nowhere: {placement}"
        return
    for name in summary_block.TEXT_KEYS:
        if not isinstance(placement.get(name, ""), str):
            yield f"the {name} of the summary is no text"
    for name in ("after_seq", "summarized_up_to"):
        seq = placement.get(name)
        if seq is not None and not (isinstance(seq, int) and 0 < seq <= session.last_seq):
            yield f"the {name} of the summary is no message: {seq}"


def _check_pins(session: Session) -> Iterator[str]:
    revision = live_messages.load_active_revision(session)
    messages = live_messages.load_live_messages(session, revision)
    sent_seqs = {
        message.seq
        for message in live_messages.drop_unsent_messages(messages, revision.boundary_seq)
    } | {message.seq for message in messages if message.is_hidden}
    unsent_statuses = [Message.Status.STREAMING, Message.Status.FAILED]
    pinned_messages = (
        session.messages.exclude_superseded()
        .filter(pinned=True)
        .exclude(status__in=unsent_statuses)
        .exclude(role=Message.Role.SYSTEM)
    )
    for seq in pinned_messages.values_list("seq", flat=True):
        if seq not in sent_seqs:
            yield f"message {seq} is pinned and not sent"
