"""Bring back into a turn's requests what was said about its question before the boundary.

It is looked for once a turn and stored with it, so that all requests of the turn carry the same.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from uuid import UUID

from chatcore.context import recalled
from chatcore.context.compactor import get_compactor
from chatcore.context.recalled import RecalledPassage
from chatcore.models import Message, Session, Turn
from chatcore.providers.base import Request
from chatcore.providers.normal_form import find_question
from chatcore.turns.leases import TurnLost


def bring_back_passages(turn: Turn, request: Request) -> Request:
    """Return a turn's request with the passages that bear on its question, and store them.

    The session's policy chooses them. For a turn that has not looked for them yet, in a session
    with a boundary; the builder puts stored ones into every request.
    """
    session = turn.session
    question = find_question(request.messages)
    if question is None or question.seq is None:
        return request
    policy = get_compactor().choose_policy(*session.policy_names)
    passages = policy.choose_passages(session, question, request)
    if passages is None:
        return request
    _store_recall(turn, recalled.build_stored_recall(question.seq, passages))
    return replace(request, messages=recalled.insert_block(request.messages, turn.recalled))


def drop_passages(turn: Turn) -> bool:
    """Bring nothing back in this turn any more; return False if it brought nothing back.

    The turn does not look again: its requests would differ from each other.
    """
    if not turn.recalled:
        return False
    _store_recall(turn, {})
    return True


def list_newest_passages(session: Session) -> list[RecalledPassage]:
    """Return what the session's open turn brought back, or the turn of its newest message."""
    turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    if turn is None:
        messages = session.messages.exclude_superseded().select_related("turn")
        newest_message = messages.order_by("-seq").first()
        turn = newest_message.turn if newest_message else None
    return recalled.list_passages(turn.recalled) if turn else []


def find_recalling_turns(session_id: UUID, messages: Collection[Message]) -> list[UUID]:
    """Return the turns that brought back a passage of one of these messages."""
    turns = Turn.objects.filter(
        session=session_id,
        recalled__isnull=False,
        recalled__passages__has_any_keys=[str(message.pk) for message in messages],
    )
    return list(turns.values_list("pk", flat=True))


def forget_messages(turn_ids: Collection[UUID], messages: Collection[Message]) -> None:
    """Remove the passages of these messages from turns, which the caller has locked."""
    for turn in Turn.objects.filter(pk__in=turn_ids).only("recalled"):
        forgotten_keys = {str(message.pk) for message in messages}
        stored_recall = turn.recalled or {}
        passages = {
            key: passage
            for key, passage in stored_recall.get("passages", {}).items()
            if key not in forgotten_keys
        }
        _store_recall(turn, {**stored_recall, "passages": passages} if passages else {})


def _store_recall(turn: Turn, stored_recall: Mapping[str, object]) -> None:
    """Store what a turn brings back. Raises TurnLost if the turn is deleted."""
    turn.recalled = stored_recall
    if not Turn.objects.filter(pk=turn.pk).update(recalled=stored_recall):
        raise TurnLost(str(turn.pk))
