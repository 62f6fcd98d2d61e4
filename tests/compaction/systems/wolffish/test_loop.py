"""Wolffish keeps one turn that reads many mails inside its window, by three layers."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun, SessionState
from compaction.systems.kit.settings import InjectKnobs
from tests.support.compaction_sessions import (
    NOTICE,
    list_chat_calls,
    list_event_data,
    list_event_names,
    list_summary_calls,
    read_stored_messages,
    read_system_text,
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
    read_last_text,
    register_tool,
    set_policy,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

INJECT = PRESETS["wolffish"].get(InjectKnobs)
STATE = (
    "TASK: Read all the mails and brief the user.\nPROGRESS:\n1. Mails 1 to 12 were read.\n"
    "REMAINING:\n1. Mails 13 to 18, then the briefing.\nDATA: none\nDECISIONS: none"
)
# Tokens: the budget is 48,000, the threshold 36,000, the target 24,000.
WINDOW = {"context_window_size": 60_000, "output_reserve": 12_000}
MAIL = 4_500  # characters, 3,000 tokens at 1.5 characters a token


@pytest.fixture(params=mark_others_slow(PROTOCOLS))
def agent(
    request: Any, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> Session:
    register_tool(monkeypatch, "read_mail", MAIL)
    scripted.default = summarize_or_chat(
        summary=Reply(text=STATE), chat=Reply(text="Here is the briefing on all 18 mails.")
    )
    return set_policy(session, "wolffish", scripted, request.param, **WINDOW)


def make_batches(*sizes: int) -> list[Reply]:
    """Build rounds of that many mails each, with continuous numbers."""
    first = 1
    replies = []
    for size in sizes:
        replies.append(make_tool_calls("read_mail", range(first, first + size)))
        first += size
    return replies


def test_layer_1_compacts_before_the_request_that_would_pass_three_quarters_of_the_budget(
    agent: Session, scripted: ScriptedModel
) -> None:
    scripted.script(*make_batches(4, 4, 4), Reply(text=STATE), *make_batches(3))
    turn = say(agent, "Read all my unread mails and brief me.")
    assert (turn.status, turn.notices) == ("completed", [])
    assert list_runs() == [("before_request", "applied")]
    before, after = list_chat_calls(scripted)[2], list_chat_calls(scripted)[3]
    assert [len(text) for text in list_tool_results(before)] == [
        MAIL
    ] * 8  # 24,000 tokens and framing: nothing is done yet
    run = CompactionRun.objects.get()
    assert run.tokens_before is not None
    assert run.tokens_before > 36_000
    assert run.stages_used == ["excerpt", "summarize"]
    excerpts = [text for text in list_tool_results(after) if "[TRUNCATED" in text]
    assert "4,500 chars original" in excerpts[0]
    assert excerpts[0].startswith("<read_mail ")
    assert [len(text) for text in list_tool_results(after)[-3:]] == [MAIL] * 3
    assert f"{INJECT.heading}\n\n" in read_last_text(after)
    assert "REMAINING:\n1. Mails 13 to 18, then the briefing." in read_last_text(after)
    assert read_last_text(after).endswith(INJECT.nudge)
    assert "Read all my unread mails and brief me." in join_message_texts(after)
    assert is_within_budget(agent)


def test_the_summary_is_made_of_the_originals(agent: Session, scripted: ScriptedModel) -> None:
    scripted.script(*make_batches(4, 4, 4), Reply(text=STATE))
    say(agent, "Read all my unread mails.")
    prompt = str(list_summary_calls(scripted)[0].json)
    assert "TRUNCATED" not in prompt
    assert prompt.count("<read_mail ") == 12


def test_all_that_is_stored_stays_as_it_was(agent: Session, scripted: ScriptedModel) -> None:
    scripted.script(*make_batches(4, 4, 4), Reply(text=STATE), *make_batches(3))
    say(agent, "Read all my unread mails.")
    results = agent.messages.filter(role="tool").order_by("seq")
    assert [len(message.content) for message in results] == [MAIL] * 15
    before = read_stored_messages(agent)
    say(agent, "Thank you.")
    assert read_stored_messages(agent)[: len(before)] == before


def test_layer_2_believes_the_provider_where_it_counted_more(
    agent: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        *make_batches(4),
        make_tool_calls("read_mail", range(5, 11), usage=(36_001, 20)),
        Reply(text=STATE),
    )
    assert say(agent, "Read all my unread mails.").status == "completed"
    assert list_runs() == [("before_request", "applied")]
    assert CompactionRun.objects.get().tokens_before == 36_001


def test_layer_3_is_forced_after_a_refusal_and_sends_once_more(
    agent: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        *make_batches(3, 3),
        make_overflow(tokens=61_000, window=60_000),
        Reply(text=STATE),
        Reply(text="Done."),
    )
    assert say(agent, "Read all my unread mails.").status == "completed"
    assert list_runs() == [("on_overflow", "applied")]
    [event] = list_event_data(agent, "compaction.started")
    assert event["force"] is True
    first_request, second_request = list_chat_calls(scripted)[2:4]
    assert sum(map(len, list_tool_results(second_request))) < sum(
        map(len, list_tool_results(first_request))
    )
    assert read_last_text(second_request).endswith(INJECT.nudge)


def test_without_a_summary_the_excerpts_stay_and_the_model_is_told(
    agent: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=agent.pk).update(
        policy=create_policy("wolffish", summary={"backoff": []})
    )
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    scripted.script(*make_batches(4, 4, 4), *[Reply(status=500)] * 6, *make_batches(2))
    turn = say(agent, "Read all my unread mails.")
    assert turn.status == "completed"
    assert (
        len(list_summary_calls(scripted)) == 6
    )  # five attempts more, and no further run while it waits
    assert list_runs() == [("before_request", "applied")]
    run = CompactionRun.objects.get()
    assert (run.stages_used, run.summary_after) == (["excerpt"], None)
    assert "500" in run.reason
    after = list_chat_calls(scripted)[3]
    assert read_last_text(after) == INJECT.failure_nudge
    assert [text for text in list_tool_results(after) if "[TRUNCATED" in text]
    assert SessionState.objects.get().failures == 1
    assert list_event_names(agent, "compaction") == ["compaction.started", "compaction.applied"]
    assert list_event_data(agent, "context.trimmed") == [{"notice": NOTICE, "run": str(run.pk)}]


def test_in_a_loop_the_model_is_told_how_far_it_is(agent: Session, scripted: ScriptedModel) -> None:
    scripted.script(*make_batches(2, 3))
    say(agent, "Read all my unread mails.")
    first, second, third = (read_system_text(request) for request in list_chat_calls(scripted))
    assert "Tool rounds in this turn so far: 0\nTools called in this turn so far: 0" in first
    assert "Tool rounds in this turn so far: 1\nTools called in this turn so far: 2" in second
    assert "Tool rounds in this turn so far: 2\nTools called in this turn so far: 5" in third
    assert "EVERY item" in third
    say(agent, "Thank you.")
    assert "in this turn so far: 0" in read_system_text(list_chat_calls(scripted)[-1])
    Session.objects.filter(pk=agent.pk).update(tools=[])
    say(agent, "Bye.")
    assert "<runtime>" not in read_system_text(list_chat_calls(scripted)[-1])


def test_a_later_pass_compacts_what_the_first_left(agent: Session, scripted: ScriptedModel) -> None:
    """Summaries are compacted again; the second one takes the first in."""
    scripted.script(
        *make_batches(4, 4, 4), Reply(text=STATE), *make_batches(4, 4), Reply(text=STATE)
    )
    assert say(agent, "Read all my unread mails.").status == "completed"
    assert list_runs() == [("before_request", "applied")] * 2
    assert STATE.splitlines()[0] in str(list_summary_calls(scripted)[1].json)
    assert is_within_budget(agent)


def test_the_card_tells_what_became_of_each_message(
    agent: Session, scripted: ScriptedModel
) -> None:
    scripted.script(*make_batches(4, 4, 4), Reply(text=STATE))
    say(agent, "Read all my unread mails.")
    run = CompactionRun.objects.get()
    [event] = list_event_data(agent, "compaction.applied")
    assert event["targets_count"] == len(run.targets) > 0
    assert (event["tokens_saved"], event["stages_used"]) == (
        run.tokens_saved,
        ["excerpt", "summarize"],
    )
    assert {
        "duration_ms",
        "messages_compacted",
        "tokens_before",
        "tokens_after",
        "model",
        "cost",
    } <= set(event)
    target = run.targets[0]
    assert (target["role"], target["tool"], target["method"], target["chars_before"]) == (
        "tool",
        "read_mail",
        "excerpted",
        MAIL,
    )
    assert target["chars_after"] < MAIL / 2
    assert target["percent_saved"] == round(100 - 100 * target["chars_after"] / MAIL) > 50
    [event] = list_event_data(agent, "compaction.started")
    assert event["targets"] == len(run.targets)
    assert event["messages_count"] > event["targets"]
