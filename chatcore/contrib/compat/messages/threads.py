"""Threads: conversations that the server holds for a client, each a session.

`thread: {type: create}` begins one, and `{type: continue, previous_message_id}` sends only what is
new behind an answer, with the system text and the tools of before.
"""

import re
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID, uuid4

from django.contrib.auth.models import User

from chatcore.contrib.compat.bodies import Body, FilledText
from chatcore.contrib.compat.messages.errors import MessagesProblem
from chatcore.models import Turn

NAME_PREFIX = "thread_"
MESSAGE_ID = re.compile(r"msg_([0-9a-f]{32})_[0-9]+")


class NewThread(Body):
    type: Literal["create"]


class ContinuedThread(Body):
    type: Literal["continue"]
    previous_message_id: FilledText


@dataclass(frozen=True, kw_only=True)
class Thread:
    """The session of a thread by its name, and the tools that its client does not send again."""

    session_name: str
    tools: list[dict[str, object]] = field(default_factory=list)


def format_message_id(turn: Turn, after_seq: int) -> str:
    """Return the id of an answer; a turn that waits for results of tools has several."""
    return f"msg_{turn.pk.hex}_{after_seq}"


def find_thread(asked: NewThread | ContinuedThread, user: User) -> Thread:
    """Return the thread that a request asks for.

    Raises the problems after which the client sends its whole conversation in a new thread.
    """
    if isinstance(asked, NewThread):
        return Thread(session_name=f"{NAME_PREFIX}{uuid4().hex}")
    path, message_id = "thread.previous_message_id", asked.previous_message_id
    turn = _find_turn(message_id, user)
    if turn is None:
        detail = f"{path}: There is no thread with the message '{message_id[:100]}'."
        raise MessagesProblem("thread_not_found", detail, status=404)
    if turn.status == Turn.Status.RUNNING:
        detail = f"{path}: The answer is still being written."
        raise MessagesProblem("thread_continue_in_flight", detail)
    if turn.session.turns.filter(first_event_seq__gt=turn.first_event_seq).exists():
        raise MessagesProblem("thread_already_continued", f"{path}: It was continued before.")
    return Thread(session_name=str(turn.session_id), tools=turn.tools)


def _find_turn(message_id: str, user: User) -> Turn | None:
    match = MESSAGE_ID.fullmatch(message_id)
    if match is None:
        return None
    turns = Turn.objects.filter(session__owner=user, session__discard_at=None)
    return turns.select_related("session").filter(pk=UUID(match[1])).first()
