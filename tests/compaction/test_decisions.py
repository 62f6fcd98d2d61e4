"""The log tells each decision once, by its numbers."""

import logging
from typing import Any

import pytest

from chatcore.models import Session
from compaction.models import SessionState
from tests.support.compaction_sessions import (
    THRESHOLD,
    compact_long_session,
    fill_session,
    say,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def decisions(caplog: pytest.LogCaptureFixture, scripted: ScriptedModel) -> Any:
    """(trigger, tokens, threshold, action) of every decision logged so far at INFO or above."""
    scripted.default = summarize_or_chat()
    caplog.set_level(logging.INFO, "compaction.decisions")

    def list_decisions() -> list[tuple[Any, ...]]:
        lines = [record.msg for record in caplog.records if record.name == "compaction.decisions"]
        return [
            tuple(line[name] for name in ("trigger", "tokens", "threshold", "action"))
            for line in lines
            if isinstance(line, dict)
        ]

    return list_decisions


def test_a_response_within_the_threshold_changes_nothing(
    session: Session, scripted: ScriptedModel, decisions: Any
) -> None:
    scripted.script(Reply(text="Hello.", usage=(100, 10)))
    say(session, "Hello.")
    assert decisions() == [("after_response", 110, THRESHOLD, "none")]


def test_a_response_over_it_asks_for_a_run(
    session: Session, scripted: ScriptedModel, decisions: Any
) -> None:
    compact_long_session(session, scripted)
    assert decisions()[-1] == ("after_response", 7050, THRESHOLD, "compact")


def test_a_session_whose_runs_have_stopped_is_held_back(
    session: Session, scripted: ScriptedModel, decisions: Any
) -> None:
    SessionState.objects.create(session_id=session.pk, fruitless=2)
    scripted.script(Reply(text="Noted.", usage=(7000, 50)))
    say(session, "Hello.")
    assert decisions() == [("after_response", 7050, THRESHOLD, "held")]


def test_a_request_over_the_window_is_compacted_and_at_last_trimmed(
    session: Session, scripted: ScriptedModel, decisions: Any
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(session, messages=20)
    say(session)
    assert [(trigger, action) for trigger, *_, action in decisions()][:2] == [
        ("before_request", "compact"),
        ("before_request", "trim"),
    ]


def test_a_message_larger_than_the_window_is_refused(session: Session, decisions: Any) -> None:
    say(session, "x" * 40_000)
    # After every end of a turn it is measured whether there is work for a run.
    assert [decision[3] for decision in decisions()] == ["refuse", "compact"]


def test_the_line_holds_the_figures_that_decided(
    session: Session, scripted: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    """Wolffish's figures.

    charEstimate, lastKnown, effective, budget, threshold (75%), messages, tools, force,
    needsCompaction.
    """
    scripted.default = summarize_or_chat()
    caplog.set_level(logging.DEBUG, "compaction.decisions")
    fill_session(session, messages=4)
    scripted.script(Reply(text="Sure.", usage=(2000, 48)))
    say(session)
    say(session)
    lines: list[Any] = [
        record.msg for record in caplog.records if record.name == "compaction.decisions"
    ]
    [first, _, second, _] = lines
    assert first["estimate"] == first["tokens"]
    assert (first["last_known"], first["messages"], first["force"]) == (None, 5, False)
    assert second["last_known"] == 2048
    assert second["tokens"] > 2048
    assert (second["budget"], second["threshold"], second["threshold_share"]) == (
        8192,
        THRESHOLD,
        "85.0%",
    )
    assert second["used"] == f"{100 * second['tokens'] / 8192:.1f}%"
    assert second["needs_compaction"] is False
    assert (second["policy"], second["automatic"], second["tool_chars"] > 0) == (
        "oneclaw",
        "on",
        True,
    )


def test_an_overflow_is_a_forced_decision(
    session: Session, scripted: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.default = summarize_or_chat()
    caplog.set_level(logging.INFO, "compaction.decisions")
    fill_session(session, messages=12)
    scripted.script(make_overflow(tokens=9000, window=8192))
    say(session)
    lines: list[Any] = [
        record.msg for record in caplog.records if record.name == "compaction.decisions"
    ]
    [forced] = [line for line in lines if line["trigger"] == "on_overflow"]
    assert (forced["force"], forced["action"], forced["tokens"]) == (True, "compact", 9000)
