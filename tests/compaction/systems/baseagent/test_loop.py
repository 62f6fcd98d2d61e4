"""BaseAgent checks each iteration, prunes old tool output, and else writes a hand-over."""

import logging
from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.systems.kit.settings import InjectKnobs
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_event_names,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import (
    PROTOCOLS,
    create_policy,
    is_within_budget,
    join_message_texts,
    list_runs,
    list_tool_results,
    make_tool_calls,
    register_tool,
    set_policy,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

PLACEHOLDER = "[Old tool result content cleared]"
PREFIX = PRESETS["baseagent"].get(InjectKnobs).heading
HANDOFF = (
    "PROGRESS: The files a.py to f.py were read.\nCONTEXT: none\nREMAINING: Fix g.py.\n"
    "CRITICAL DATA: none\nFILES: none\nERRORS: none"
)
WINDOW = {"context_window_size": 64_000}  # usable 32,000, threshold 27,200
FILE = 6_400  # characters, 1,600 tokens


@pytest.fixture(params=mark_others_slow(PROTOCOLS))
def agent(
    request: Any, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> Session:
    """A session that prunes beyond 4,000 tokens of tool output if that saves more than 1,000."""
    register_tool(monkeypatch, "read", FILE)
    scripted.default = summarize_or_chat(
        summary=Reply(text=HANDOFF), chat=Reply(text="That is done.")
    )
    policy = create_policy("baseagent", prune={"protect_tokens": 4_000, "minimum_savings": 1_000})
    return set_policy(session, policy, scripted, request.param, **WINDOW)


def run_turn(session: Session, scripted: ScriptedModel, first: int, files: int = 6) -> None:
    """Run a turn with two rounds of tool calls."""
    half = files // 2
    scripted.script(
        make_tool_calls("read", range(first, first + half)),
        make_tool_calls("read", range(first + half, first + files)),
    )
    assert say(session, f"Read the files from {first} on.").status == "completed"


def test_each_iteration_logs_the_status_of_the_context_for_operators(
    agent: Session, scripted: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    """BaseAgent logs "Context: 45000 tokens (26.8% of 168000)", and what it does about it."""
    caplog.set_level(logging.INFO, "compaction")
    for first in range(1, 25, 6):
        run_turn(agent, scripted, first)
    lines: list[Any] = [
        record.msg for record in caplog.records if record.name == "compaction.decisions"
    ]
    requests = [line for line in lines if line["trigger"] == "before_request"]
    assert [line["action"] for line in requests].count("none") >= 6
    assert len(requests) == len(list_chat_calls(scripted)) + len(list_runs())
    assert {line["budget"] for line in requests} == {32_000}
    assert all(line["used"] == f"{line['tokens'] / 320:.1f}%" for line in requests)
    compactions = [record.getMessage() for record in caplog.records if " applied: " in record.msg]
    assert len(compactions) == len(list_runs()) > 0
    assert "messages by prune_tool_outputs" in compactions[0]


def test_below_85_percent_nothing_is_done(agent: Session, scripted: ScriptedModel) -> None:
    for first in (1, 7):
        run_turn(agent, scripted, first)
    assert list_runs() == []
    assert PLACEHOLDER not in list_tool_results(list_chat_calls(scripted)[-1])


def test_pruning_old_tool_output_may_be_enough(agent: Session, scripted: ScriptedModel) -> None:
    for first in (1, 7, 13):
        run_turn(agent, scripted, first)
    run = CompactionRun.objects.get()
    assert (run.trigger, run.status, run.stages_used, run.provider_calls) == (
        "before_request",
        "applied",
        ["prune_tool_outputs"],
        0,
    )
    assert run.tokens_before is not None
    assert run.tokens_before > 27_200
    results = list_tool_results(list_chat_calls(scripted)[-1])
    # 4,000 tokens of the oldest turn stay, and two turns. Results are sent in the order of their
    # calls, and are as old as they came.
    rows = agent.messages.filter(role="tool").order_by("seq")
    stored_results = list(rows.values_list("content", flat=True))
    assert [text for text in stored_results if text not in results] == stored_results[:4]
    assert (results.count(PLACEHOLDER), len(results)) == (4, 18)
    assert not list_summary_calls(scripted)
    assert list_event_names(agent, "compaction") == ["compaction.started", "compaction.applied"]
    assert all(len(message.content) == FILE for message in agent.messages.filter(role="tool"))


def test_after_pruning_the_next_iterations_go_on_without_another_pass(
    agent: Session, scripted: ScriptedModel
) -> None:
    for first in (1, 7, 13):
        run_turn(agent, scripted, first)
    for _ in range(2):
        say(agent, "Thanks.")
    assert len(list_runs()) == 1
    assert is_within_budget(agent)


def test_where_pruning_does_not_do_the_work_is_handed_over(
    agent: Session, scripted: ScriptedModel
) -> None:
    fill_session(agent, messages=56)
    before = read_stored_messages(agent)
    assert say(agent, "Go on.").status == "completed"
    run = CompactionRun.objects.get()
    assert run.stages_used == ["summarize"]
    request = list_chat_calls(scripted)[0]
    first = read_message_texts(request)[0]
    assert first.startswith(PREFIX)
    assert HANDOFF in first
    assert (
        "lisbon trip" in read_message_texts(request)[1] or "lisbon trip" in first
    )  # the last two turns are still there
    assert read_message_texts(request)[-1].endswith("Go on.")
    assert read_stored_messages(agent)[:56] == before
    assert is_within_budget(agent)


@pytest.mark.slow
def test_a_long_session_ends_within_its_budget(agent: Session, scripted: ScriptedModel) -> None:
    for first in range(1, 49, 6):
        run_turn(agent, scripted, first)
    assert {status for _, status in list_runs()} == {"applied"}
    assert is_within_budget(agent)
    sizes = [
        (sum(map(len, list_tool_results(request))) + len(join_message_texts(request))) // 4
        for request in list_chat_calls(scripted)
    ]
    assert max(sizes) < 32_000


def test_an_overflow_has_no_phase_and_is_met_before_the_next_request(
    agent: Session, scripted: ScriptedModel
) -> None:
    fill_session(agent, messages=20)
    scripted.script(make_overflow(tokens=65_000, window=64_000))
    assert say(agent, "Go on.").status == "completed"
    assert list_runs() == [("before_request", "applied")]
    assert len(list_chat_calls(scripted)) == 2
