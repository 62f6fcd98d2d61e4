"""A commit that the database made and did not confirm: the turn stores nothing twice."""

import threading
from collections import Counter
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.turns import control
from tests.support.crash_points import build_lost_connection
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
MAX_COMMITS = 40  # more than a turn with one round of tools makes


class UnconfirmedCommit:
    """Makes one commit of other threads than this test's fail after it was made."""

    def __init__(self, number: int) -> None:
        self.remaining = number
        self.was_made = False
        self._test_thread = threading.get_ident()
        self._commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def commit(self, wrapper: BaseDatabaseWrapper) -> None:
        self._commit(wrapper)
        if threading.get_ident() == self._test_thread:
            return
        self.remaining -= 1
        if self.remaining == 0:
            self.was_made = True
            with wrapper.wrap_database_errors:
                raise build_lost_connection()


def test_a_turn_with_tools_is_stored_once_whichever_commit_is_not_confirmed(
    session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected_names = run_turn(session, scripted)
    for number in range(1, MAX_COMMITS):
        other = Session.objects.create(owner=session.owner, model=session.model, title="Other")
        fault = UnconfirmedCommit(number)
        with monkeypatch.context() as patch:
            patch.setattr(BaseDatabaseWrapper, "_commit", lambda self, _f=fault: _f.commit(self))
            names = run_turn(other, scripted)
        assert names == expected_names, f"commit {number} was not confirmed"
        if not fault.was_made:
            break
    else:
        pytest.fail("The turn makes more commits than this test expects.")
    assert number > 3


def run_turn(session: Session, scripted: ScriptedModel) -> Counter[str]:
    """Run a turn that calls a tool without a word before; return its events by name."""
    call = make_tool_call("calculate", {"expression": "6*7"}, id="c1")
    scripted.script(Reply(tool_calls=[call]), Reply(chunks=["It is ", "42."]))
    Session.objects.filter(pk=session.pk).update(title="Sums")
    turn = control.start_turn(session, content="How much is six times seven?")
    turn = control.wait_for_turn(turn.pk, 30)
    turn_runner.drain(30)
    messages = list(Message.objects.filter(session=session).order_by("seq"))
    assert turn.status == Turn.Status.COMPLETED
    assert [(message.role, message.content) for message in messages] == [
        ("user", "How much is six times seven?"),
        ("assistant", ""),
        ("tool", "42"),
        ("assistant", "It is 42."),
    ]
    assert {message.status for message in messages} == {Message.Status.COMPLETE}
    events = SessionEvent.objects.filter(session=session).exclude(name="context.usage")
    names: Any = events.values_list("name", flat=True)
    return Counter(name for name in names if not name.endswith(".delta"))
