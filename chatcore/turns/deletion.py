"""Deleting a message: its words leave the history, the index, the event log, and everything that was written from them."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from chatcore.context import builder, revisions
from chatcore.events import log as event_log
from chatcore.models import Message, Session, SessionEvent
from chatcore.turns import service
from chatcore.turns.leases import locked, refuse_open_turn

UNTITLED_CHARS = 20  # of a title, by which one that was made from the message is known


def delete_message(message: Message) -> None:
    """Delete a message, with the results of the tools it calls. What was summarized of it is forgotten and summarized anew.

    What others said about it stays: answers may repeat its words. Raises TurnRunning.
    """
    with transaction.atomic():
        session = locked(message.session_id)
        refuse_open_turn(session)
        gone = _with_results(session, message)
        seqs = {each.seq for each in gone}
        revisions.uncover(session, seqs)
        session.revisions.filter(stale=True).update(summary=None, background="", placement={})
        _forget_events(session, gone)
        _forget_title(session, message)
        message.replacements.update(replaces=message.replaces_id)  # its versions stay one another's
        Message.objects.filter(pk__in=[each.pk for each in gone]).delete()
        session.message_count = session.messages.current().count()
        session.updated_at = timezone.now()
        session.save(update_fields=["message_count", "updated_at", "title"])
        event_log.append(session.pk, ("session.updated", {"fields": ["message_count", "messages"]}))
        guard = builder.guard()
        if guard:
            guard.forget(session, seqs)
        _forget_earlier_references(session)


def _with_results(session: Session, message: Message) -> list[Message]:
    """The message, and the results of its calls up to the next question."""
    if not message.tool_calls:
        return [message]
    after = session.messages.filter(seq__gt=message.seq, branch=message.branch)
    question = (
        after.filter(role=Message.Role.USER).order_by("seq").values_list("seq", flat=True).first()
    )
    results = after.filter(
        role=Message.Role.TOOL, tool_call_id__in=[call["id"] for call in message.tool_calls]
    )
    return [message, *(results.filter(seq__lt=question) if question else results)]


def _forget_events(session: Session, gone: Collection[Message]) -> None:
    """Those that carry its words: deltas, and what tools were called with."""
    pks = [each.pk for each in gone]
    told = SessionEvent.objects.filter(session=session)
    told.filter(Q(message__in=pks) | Q(data__message__in=pks)).delete()
    asking = [str(each.turn_id) for each in gone if each.turn_id and each.tool_calls]
    if asking:
        told.filter(name="turn.waiting", data__turn__in=asking).delete()


def _forget_earlier_references(session: Session) -> None:
    """Reference text outlives a summary that is reset; what the guard has just made of it is the newest one's."""
    newest = session.revisions.order_by("-version").only("pk").first()
    if newest:
        session.revisions.filter(boundary_seq=None).exclude(pk=newest.pk).update(background="")


def _forget_title(session: Session, message: Message) -> None:
    """A title that was made from its first words is made from the oldest question that is left."""
    said = " ".join(message.content.split())
    if (
        message.role != Message.Role.USER
        or not session.title
        or not said.startswith(session.title.rstrip("…")[:UNTITLED_CHARS])
    ):
        return
    left = (
        session.messages.current()
        .filter(role=Message.Role.USER)
        .exclude(pk=message.pk)
        .order_by("seq")
        .first()
    )
    session.title = service.title_of(left) if left else ""
