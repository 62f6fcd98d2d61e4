"""Check the context of a stored session: boundary, kept messages, placement and pins."""

from collections.abc import Iterator

from chatcore.context import live_messages, summary_block
from chatcore.models import ContextRevision, Message, Session


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
        for message in live_messages.select_sent_messages(messages, revision.boundary_seq)
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
