"""Delete a message everywhere: in the history, the search index, the event log and summaries."""

from collections.abc import Collection, Sequence

from django.db import transaction
from django.db.models import Q

from chatcore.base.keeping import refuse_if_kept
from chatcore.context import revisions
from chatcore.events.types import EventType
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.sessions.changes import record_history_change
from chatcore.sessions.wrapping import find_words
from chatcore.sessions.written_titles import is_title_made_of
from chatcore.signals import messages_deleted
from chatcore.turns import control, recall
from chatcore.turns.leases import refuse_open_turn

# A title that begins with so many of the message's first characters was made from it.
TITLE_MATCH_CHARS = 20
BATCH_SIZE = 1000  # keys that one statement names


def delete_message(message: Message) -> None:
    """Delete a message and the results of the tools that it calls.

    Summaries that cover it are forgotten and written anew. Other messages stay, also those that
    repeat its words. Raises TurnRunning, and Kept if the owner's words must stay.
    """
    # A long history is searched before the transaction, and in it only what came since.
    session = Session.objects.get(pk=message.session_id)
    refuse_if_kept(session.owner_id)
    expected_messages = _collect_messages_to_delete(session, message)
    event_pks = _find_events(session, expected_messages)
    recalling_turn_ids = recall.find_recalling_turns(session.pk, expected_messages)
    last_event_seq = session.last_event_seq
    with transaction.atomic():
        # Deleting the message sets the foreign keys of closed turns to null, which locks them, and
        # turns are locked before their session. A turn that begins after this line is open, so it
        # is refused below.
        turns = Q(question=message) | Q(replaces=message) | Q(pk__in=recalling_turn_ids)
        Turn.objects.filter(turns).lock()
        session = Session.objects.lock(message.session_id)
        refuse_open_turn(session)
        messages = _collect_messages_to_delete(session, message)
        seqs = {row.seq for row in messages}
        revisions.revert_summaries_covering(session, seqs)
        stale_revisions = session.revisions.filter(stale=True)
        stale_revisions.filter(summary__isnull=False).update(summary="")  # null: there was none
        stale_revisions.update(background="", placement={})
        if messages == expected_messages:
            event_pks += _find_events(session, messages, after_seq=last_event_seq)
        else:
            event_pks = _find_events(session, messages)
        _delete_events(event_pks)
        if session.last_event_seq != last_event_seq:
            recalling_turn_ids = recall.find_recalling_turns(session.pk, messages)
        recall.forget_messages(recalling_turn_ids, messages)
        title = _choose_title(session, message, seqs)
        # The later versions of this message become versions of the one that it replaced.
        message.replacements.update(replaces=message.replaces_id)
        Message.objects.filter(pk__in=[row.pk for row in messages]).delete()
        record_history_change(session.pk, {"title": title})
        messages_deleted.send(None, session=session, seqs=seqs)
        _clear_earlier_references(session)


def _collect_messages_to_delete(session: Session, message: Message) -> list[Message]:
    """Return the message, and the results of its calls up to the next question."""
    if not message.tool_calls:
        return [message]
    later_messages = session.messages.filter(seq__gt=message.seq, branch=message.branch)
    call_ids = [call["id"] for call in message.tool_calls]
    results = later_messages.filter_before_question().filter(
        role=Message.Role.TOOL, tool_call_id__in=call_ids
    )
    return [message, *results]


def _find_events(
    session: Session, messages: Collection[Message], *, after_seq: int = 0
) -> list[int]:
    """Return the events that repeat the words: deltas, and the arguments of tool calls.

    The end of a turn names its answer, but has no word of it. It stays: without it, a client that
    replays the log would see a turn that never ends.
    """
    pks = [row.pk for row in messages]
    turn_ids = [str(row.turn_id) for row in messages if row.turn_id and row.tool_calls]
    events = SessionEvent.objects.filter(session=session, seq__gt=after_seq).filter(
        Q(message__in=pks)
        | Q(data__message__in=pks)
        | Q(name=EventType.TURN_WAITING, data__turn__in=turn_ids)
    )
    events = events.exclude(name=EventType.TURN_COMPLETED)
    return list(events.values_list("pk", flat=True))


def _delete_events(pks: Sequence[int]) -> None:
    for start in range(0, len(pks), BATCH_SIZE):
        SessionEvent.objects.filter(pk__in=pks[start : start + BATCH_SIZE]).delete()


def _clear_earlier_references(session: Session) -> None:
    """Clear the reference text of revisions that have no summary any more, except the newest.

    The newest one has the text that the compactor has just written without the message.
    """
    newest_revision = session.revisions.order_by("-version").only("pk").first()
    if newest_revision:
        session.revisions.filter(boundary_seq=None).exclude(pk=newest_revision.pk).update(
            background=""
        )


def _choose_title(session: Session, message: Message, seqs: Collection[int]) -> str:
    """Return a title from the oldest remaining question if the message gave the present one.

    `seqs` are those of all messages that go.
    """
    text = " ".join(find_words(message.content).split())
    title_start = session.title.rstrip("…")[:TITLE_MATCH_CHARS]
    is_cut = message.role == Message.Role.USER and text.startswith(title_start)
    if not session.title or not (is_cut or is_title_made_of(session, seqs)):
        return session.title
    questions = (
        session.messages.exclude_superseded()
        .filter(role=Message.Role.USER)
        .exclude(pk=message.pk)
        .order_by("seq")
    )
    oldest_question = questions.first()
    if oldest_question and not find_words(oldest_question.content):  # a program's surroundings
        with_words = (each for each in questions.iterator() if find_words(each.content))
        oldest_question = next(with_words, oldest_question)
    return control.build_title(oldest_question) if oldest_question else ""
