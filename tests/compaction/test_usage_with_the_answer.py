"""`context.usage` is stored with the answer where it follows from what is known by then."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import ContextEdit, ContextRevision, Session
from chatcore.turns import control
from compaction.models import CompactionRun, ModelRatio
from models_registry.models import AiModel
from tests.support.browsing import PausedChunks
from tests.support.client_tool_requests import WEATHER
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_event_data,
    list_event_names,
    say,
)
from tests.support.context_usage import load_usage
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def put_summary(session: Session) -> None:
    """Put a summary in place of the first messages; one of them is kept."""
    ContextRevision.objects.create(
        session=session, version=1, summary=SUMMARY, boundary_seq=7, kept_seqs=[2]
    )
    Session.objects.filter(pk=session.pk).update(
        compacted_summary=SUMMARY, compact_boundary_seq=7, context_version=1
    )


def put_edits(session: Session) -> None:
    """Show two messages in another form, of which one is hidden."""
    put_summary(session)
    for seq, kind in ((9, ContextEdit.Kind.PRUNED), (10, ContextEdit.Kind.HIDDEN)):
        ContextEdit.objects.create(
            session=session,
            message=session.messages.get(seq=seq),
            kind=kind,
            replacement="" if kind == ContextEdit.Kind.HIDDEN else "[shortened]",
            from_version=1,
        )


def calibrate(_: Session) -> None:
    ModelRatio.objects.create(model="scripted/test-model", ratio=1.4, samples=9)


SITUATIONS: dict[str, Callable[[Session], object]] = {
    "long": lambda _: None,
    "compacted": put_summary,
    "edited": put_edits,
    "calibrated": calibrate,
}


@pytest.mark.parametrize("usage", [(1_200, 30), (1_200, 30, 900), False])
@pytest.mark.parametrize("situation", ["new", *SITUATIONS])
def test_it_is_what_a_measurement_afterwards_gives(
    situation: str, usage: Any, session: Session, scripted: ScriptedModel
) -> None:
    if situation != "new":
        fill_session(session, messages=12, tokens=100)
        SITUATIONS[situation](session)
    for _ in range(2):
        scripted.script(Reply(text="Sure. " * 20, usage=usage))
        say(session)
        assert list_event_data(session, "context.usage")[-1] == load_usage(session.pk)
    assert list_event_names(session)[-2:] == ["turn.completed", "context.usage"]


def test_nor_do_tools_and_other_models_of_a_turn_make_it_wrong(
    session: Session, scripted: ScriptedModel, model: AiModel, user: User
) -> None:
    other = AiModel.objects.create(
        provider=model.provider, name="other", context_window_size=50_000, supports_tools=True
    )
    fill_session(session, messages=4)
    calculation = make_tool_call("calculate", {"expression": "6*7"}, id="c1")
    scripted.script(Reply(tool_calls=[calculation]), Reply(text="It is 42."))
    say(session)
    assert list_event_data(session, "context.usage")[-1] == load_usage(session.pk)

    def answer(begin: Callable[[], Any]) -> None:
        session.refresh_from_db()
        control.wait_for_turn(begin().pk, PATIENCE_SECONDS)
        count = len(list_event_names(session, "turn.completed"))
        wait_until(lambda: len(list_event_data(session, "context.usage")) == count)
        assert list_event_data(session, "context.usage")[-1] == load_usage(session.pk)

    answer(lambda: control.start_turn(session, content="Weather?", tools=[WEATHER]))
    newest = session.messages.order_by("-seq")
    answer(lambda: control.regenerate_answer(newest[0], model=other))


@pytest.mark.parametrize(
    "change",
    [{"system_prompt": "Be brief. " * 99}, {"compact_threshold": 0.3}, {"auto_compact": False}],
)
def test_nor_does_a_change_of_the_session_while_it_is_answered(
    change: dict[str, Any], api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4)
    words = PausedChunks("Done.")
    scripted.script(Reply(chunks=words, usage=(2_000, 5)))
    turn = control.start_turn(session, content="Hi")
    try:
        wait_until(lambda: scripted.requests, what="the request")
        assert api.patch(f"/api/v1/sessions/{session.pk}", change).status_code == 200
    finally:
        words.resume.set()
    control.wait_for_turn(turn.pk, PATIENCE_SECONDS)
    wait_until(lambda: list_event_data(session, "context.usage"))
    assert list_event_data(session, "context.usage") == [load_usage(session.pk)]


def test_over_the_threshold_it_is_measured_anew_and_a_run_requested(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4)
    scripted.script(Reply(text="Sure.", usage=(7_000, 50)))
    say(session)
    assert len(list_event_names(session, "context.usage")) == 1
    assert CompactionRun.objects.count() == 1
