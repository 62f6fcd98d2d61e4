"""BaseAgent: each iteration is checked; old tool output is pruned first, and only where that does not do a hand-over is written."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from tests.support.compaction_scenes import (
    chat_calls,
    content_of,
    event_names,
    fill,
    say,
    spoken,
    summarize_or_chat,
    summary_calls,
)
from tests.support.scripted import ScriptedModel, overflow
from tests.support.scripted_wire import Reply
from tests.support.seed_scenes import (
    PROTOCOLS,
    a_tool,
    calls,
    living_under,
    results,
    runs,
    said,
    variant,
    within_budget,
)

pytestmark = pytest.mark.django_db(transaction=True)

CLEARED = "[Old tool result content cleared]"
PREFIX = PRESETS["baseagent"].inject.heading
HANDOFF = "PROGRESS: The files a.py to f.py were read.\nCONTEXT: none\nREMAINING: Fix g.py.\nCRITICAL DATA: none\nFILES: none\nERRORS: none"
WINDOW = {"context_window_size": 64_000}  # usable 32,000, threshold 27,200
FILE = 6_400  # characters, 1,600 tokens


@pytest.fixture(params=PROTOCOLS)
def agent(
    request: Any, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> Session:
    """Prunes what is beyond 4,000 tokens of older tool output where that saves more than 1,000."""
    a_tool(monkeypatch, "read", FILE)
    scripted.default = summarize_or_chat(
        summary=Reply(text=HANDOFF), chat=Reply(text="That is done.")
    )
    policy = variant("baseagent", prune={"protect_tokens": 4_000, "minimum_savings": 1_000})
    return living_under(session, policy, scripted, request.param, **WINDOW)


def turn_of(session: Session, scripted: ScriptedModel, first: int, files: int = 6) -> None:
    """A turn in two rounds of tools."""
    half = files // 2
    scripted.script(
        calls("read", range(first, first + half)), calls("read", range(first + half, first + files))
    )
    assert say(session, f"Read the files from {first} on.").status == "completed"


def test_below_85_percent_nothing_is_done(agent: Session, scripted: ScriptedModel) -> None:
    for first in (1, 7):
        turn_of(agent, scripted, first)
    assert runs() == []
    assert CLEARED not in results(chat_calls(scripted)[-1])


def test_pruning_old_tool_output_may_be_enough(agent: Session, scripted: ScriptedModel) -> None:
    for first in (1, 7, 13):
        turn_of(agent, scripted, first)
    run = CompactionRun.objects.get()
    assert (run.trigger, run.status, run.stages_used, run.provider_calls) == (
        "before_request",
        "applied",
        ["prune_tool_outputs"],
        0,
    )
    assert run.tokens_before is not None
    assert run.tokens_before > 27_200
    shown = results(chat_calls(scripted)[-1])
    assert [text == CLEARED for text in shown] == [True] * 4 + [
        False
    ] * 14  # 4,000 tokens of the oldest turn stay, and two turns
    assert not summary_calls(scripted)
    assert event_names(agent, "compaction") == ["compaction.started", "compaction.applied"]
    assert all(len(message.content) == FILE for message in agent.messages.filter(role="tool"))


def test_after_pruning_the_next_iterations_go_on_without_another_pass(
    agent: Session, scripted: ScriptedModel
) -> None:
    for first in (1, 7, 13):
        turn_of(agent, scripted, first)
    for _ in range(2):
        say(agent, "Thanks.")
    assert len(runs()) == 1
    assert within_budget(agent)


def test_where_pruning_does_not_do_the_work_is_handed_over(
    agent: Session, scripted: ScriptedModel
) -> None:
    fill(agent, messages=54)
    before = content_of(agent)
    assert say(agent, "Go on.").status == "completed"
    run = CompactionRun.objects.get()
    assert run.stages_used == ["summarize"]
    request = chat_calls(scripted)[0]
    first = spoken(request)[0]
    assert first.startswith(PREFIX)
    assert HANDOFF in first
    assert (
        "lisbon trip" in spoken(request)[1] or "lisbon trip" in first
    )  # the last two turns are still there
    assert spoken(request)[-1].endswith("Go on.")
    assert content_of(agent)[:54] == before
    assert within_budget(agent)


def test_a_long_session_ends_within_its_budget(agent: Session, scripted: ScriptedModel) -> None:
    for first in range(1, 49, 6):
        turn_of(agent, scripted, first)
    assert {status for _, status in runs()} == {"applied"}
    assert within_budget(agent)
    sizes = [
        (sum(map(len, results(request))) + len(said(request))) // 4
        for request in chat_calls(scripted)
    ]
    assert max(sizes) < 32_000


def test_an_overflow_has_no_phase_and_is_met_before_the_next_request(
    agent: Session, scripted: ScriptedModel
) -> None:
    fill(agent, messages=20)
    scripted.script(overflow(tokens=65_000, window=64_000))
    assert say(agent, "Go on.").status == "completed"
    assert runs() == [("before_request", "applied")]
    assert len(chat_calls(scripted)) == 2
