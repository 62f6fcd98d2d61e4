"""Deleting a message: its words leave the history, the index, the event log, and everything that was written from them."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chatcore.context import builder, revisions
from chatcore.events import log as event_log
from chatcore.models import Message, Session, SessionEvent
from chatcore.turns import service
from chatcore.turns.leases import lock_session, refuse_open_turn

TITLE_MATCH_CHARS = 20  # of a title, by which one that was made from the message is known


def delete_message(message: Message) -> None:
    """Delete a message, with the results of the tools it calls. What was summarized of it is forgotten and summarized anew.

    What others said about it stays: answers may repeat its words. Raises TurnRunning.
    """
    with transaction.atomic():
        session = lock_session(message.session_id)
        refuse_open_turn(session)
        messages = _collect_messages_to_delete(session, message)
        seqs = {row.seq for row in messages}
        revisions.revert_summaries_covering(session, seqs)
        session.revisions.filter(stale=True).update(summary=None, background="", placement={})
        _delete_events(session, messages)
        _rebuild_title(session, message)
        message.replacements.update(replaces=message.replaces_id)  # its versions stay one another's
        Message.objects.filter(pk__in=[row.pk for row in messages]).delete()
        session.message_count = session.messages.exclude_superseded().count()
        session.updated_at = timezone.now()
        session.save(update_fields=["message_count", "updated_at", "title"])
        event_log.append_events(
            session.pk, ("session.updated", {"fields": ["message_count", "messages"]})
        )
        guard = builder.load_guard()
        if guard:
            guard.on_messages_deleted(session, seqs)
        _clear_earlier_references(session)


def _collect_messages_to_delete(session: Session, message: Message) -> list[Message]:
    """The message, and the results of its calls up to the next question."""
    if not message.tool_calls:
        return [message]
    later_messages = session.messages.filter(seq__gt=message.seq, branch=message.branch)
    next_question_seq = (
        later_messages.filter(role=Message.Role.USER)
        .order_by("seq")
        .values_list("seq", flat=True)
        .first()
    )
    results = later_messages.filter(
        role=Message.Role.TOOL, tool_call_id__in=[call["id"] for call in message.tool_calls]
    )
    return [message, *(results.filter(seq__lt=next_question_seq) if next_question_seq else results)]


def _delete_events(session: Session, messages: Collection[Message]) -> None:
    """Those that carry its words: deltas, and what tools were called with."""
    pks = [row.pk for row in messages]
    session_events = SessionEvent.objects.filter(session=session)
    session_events.filter(Q(message__in=pks) | Q(data__message__in=pks)).delete()
    turn_ids = [str(row.turn_id) for row in messages if row.turn_id and row.tool_calls]
    if turn_ids:
        session_events.filter(name="turn.waiting", data__turn__in=turn_ids).delete()


def _clear_earlier_references(session: Session) -> None:
    """Reference text outlives a summary that is reset; what the guard has just made of it is the newest one's."""
    newest_revision = session.revisions.order_by("-version").only("pk").first()
    if newest_revision:
        session.revisions.filter(boundary_seq=None).exclude(pk=newest_revision.pk).update(
            background=""
        )


def _rebuild_title(session: Session, message: Message) -> None:
    """A title that was made from its first words is made from the oldest question that is left."""
    text = " ".join(message.content.split())
    if (
        message.role != Message.Role.USER
        or not session.title
        or not text.startswith(session.title.rstrip("…")[:TITLE_MATCH_CHARS])
    ):
        return
    oldest_question = (
        session.messages.exclude_superseded()
        .filter(role=Message.Role.USER)
        .exclude(pk=message.pk)
        .order_by("seq")
        .first()
    )
    session.title = service.build_title(oldest_question) if oldest_question else ""
