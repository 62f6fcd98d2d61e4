"""NeuroLink checks the budget before each call, makes room in four stages, survives an overflow."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.sessions import session_context
from tests.support.compaction_sessions import (
    NOTICE,
    fill_session,
    list_chat_calls,
    list_event_data,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    read_system_text,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import (
    PROTOCOLS,
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

SUMMARY_TEXT = (
    "Primary Request and Intent: a trip to Lisbon.\nKey Concepts: none.\n"
    "Pending Tasks: the flight.\nNext Step: look for one from Porto."
)
MARKER = "[Earlier conversation history was truncated to fit within context limits]"
# Tokens: 7,000 are reserved, 13,000 available; the threshold is 10,400, the recovery target 9,100.
WINDOW = {"context_window_size": 20_000}


@pytest.fixture(params=mark_others_slow(PROTOCOLS))
def loop(request: Any, session: Session, scripted: ScriptedModel) -> Session:
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY_TEXT))
    return set_policy(session, "neurolink", scripted, request.param, **WINDOW)


def list_heads(request: Any) -> list[str]:
    return [text[:4] for text in read_message_texts(request)]


def test_below_eighty_percent_the_call_goes_out_as_it_is(
    loop: Session, scripted: ScriptedModel
) -> None:
    fill_session(loop, messages=14)
    assert say(loop).notices == []
    assert len(read_message_texts(list_chat_calls(scripted)[0])) == 15
    assert list_runs() == []


def test_from_eighty_percent_on_it_is_compacted_before_the_call(
    loop: Session, scripted: ScriptedModel
) -> None:
    fill_session(loop, messages=20)
    before = read_stored_messages(loop)
    turn = say(loop)
    assert (turn.status, turn.notices) == ("completed", [])
    assert list_runs() == [("before_request", "applied")]
    run = CompactionRun.objects.get()
    assert run.stages_used == ["summarize"]
    assert run.tokens_before is not None
    assert run.tokens_before >= 10_400
    request = list_chat_calls(scripted)[0]
    assert SUMMARY_TEXT in read_system_text(request)
    sent_seqs = [seq for seq in range(1, 21) if f"{seq:04d} lisbon" in join_message_texts(request)]
    assert sent_seqs == [
        1,
        2,
        *range(15, 21),
    ]  # the first pair, and with the new one 30 % of 21 messages, rounded up
    assert read_stored_messages(loop)[:20] == before
    assert is_within_budget(loop)


def test_old_tool_results_go_first_and_may_be_enough(
    loop: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_tool(monkeypatch, "look_up", 20_000)
    assert loop.model is not None
    protocol = loop.model.provider.protocol
    set_policy(loop, "neurolink", scripted, protocol, context_window_size=140_000)
    for first in (1, 7):
        scripted.script(
            *(make_tool_calls("look_up", range(start, start + 3)) for start in (first, first + 3))
        )
        say(loop, "Look these up.")
    scripted.script(*(make_tool_calls("look_up", range(start, start + 2)) for start in (13, 15)))
    assert say(loop, "And these.").status == "completed"
    run = CompactionRun.objects.get()
    assert (run.trigger, run.stages_used, run.provider_calls) == (
        "before_request",
        ["prune_tool_outputs"],
        0,
    )
    assert not list_summary_calls(scripted)
    results = list_tool_results(list_chat_calls(scripted)[-1])
    cleared_results = [text for text in results if text == "[Tool result cleared]"]
    assert 0 < len(cleared_results) < len(results)
    # The oldest after the first pair. They are sent in the order of their calls.
    rows = loop.messages.filter(role="tool").order_by("seq")
    stored_results = list(rows.values_list("content", flat=True))
    gone_results = [text for text in stored_results if text not in results]
    assert gone_results == stored_results[3 : 3 + len(cleared_results)]
    assert [event["targets_count"] for event in list_event_data(loop, "compaction.applied")] == [
        len(cleared_results)
    ]
    assert is_within_budget(loop)


def test_where_no_summary_comes_the_window_slides_without_a_word(
    loop: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(loop, messages=20)
    turn = say(loop)
    assert turn.status == "completed"
    run = CompactionRun.objects.get()
    assert (run.status, run.stages_used, run.provider_calls) == ("applied", ["slide_window"], 1)
    request = list_chat_calls(scripted)[0]
    assert MARKER in read_system_text(request)
    assert list_heads(request)[:2] == ["0001", "0002"]
    gap_mark, _, next_text = read_message_texts(request)[2].partition("]")
    assert "messages before this point are left out" in gap_mark  # behind the first pair
    assert int(next_text.strip()[:4]) % 2 == 1  # an even number went
    assert is_within_budget(loop)
    assert list_event_data(loop, "context.trimmed") == [{"notice": NOTICE, "run": str(run.pk)}]


def test_a_truncation_is_undone_like_a_summary(loop: Session, scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(loop, messages=20)
    say(loop)
    engine.rewind_run(CompactionRun.objects.get())
    now = session_context.load_session_context(loop.pk)
    assert now is not None
    assert (now.facts.live.boundary_seq, now.facts.summary) == (None, None)


def test_an_overflow_compacts_to_seventy_percent_and_is_sent_once_more(
    loop: Session, scripted: ScriptedModel
) -> None:
    fill_session(loop, messages=16)
    scripted.script(make_overflow(tokens=20_500, window=20_000))
    turn = say(loop)
    assert turn.status == "completed"
    run = CompactionRun.objects.get(trigger="on_overflow")
    assert run.status == "applied"
    assert run.tokens_after is not None
    assert run.tokens_after <= 9_100
    first_request, second_request = list_chat_calls(scripted)
    assert len(read_message_texts(second_request)) < len(read_message_texts(first_request))
    assert SUMMARY_TEXT in read_system_text(second_request)  # what was compacted is what is sent


def test_an_overflow_that_smaller_requests_do_not_end_is_an_error(
    loop: Session, scripted: ScriptedModel
) -> None:
    fill_session(loop, messages=16)
    scripted.default = summarize_or_chat(
        summary=Reply(text=SUMMARY_TEXT), chat=make_overflow(tokens=20_500, window=20_000)
    )
    turn = say(loop)
    assert turn.error is not None
    assert (turn.status, turn.error["type"]) == ("failed", "context_overflow")
    sizes = [len(str(request.json)) for request in list_chat_calls(scripted)]
    assert len(sizes) == 3
    assert sizes == sorted(set(sizes), reverse=True)  # each is smaller than the one before


def test_compacting_by_hand_runs_the_stages_that_are_asked_for(
    loop: Session, scripted: ScriptedModel
) -> None:
    fill_session(loop, messages=20)
    run = engine.compact_now(loop.pk, trigger="manual", stages=["slide_window"])
    assert (run.status, run.stages_used) == ("applied", ["slide_window"])
    assert not scripted.requests
    overrides = {"protect": {"ratio": 0.5}}
    again = engine.compact_now(
        loop.pk,
        trigger="manual",
        stages=["summarize"],
        overrides=overrides,
        instructions="the flight",
    )
    assert again.policy_snapshot["protect"]["ratio"] == 0.5
    assert "the flight" in str(list_summary_calls(scripted)[-1].json)
