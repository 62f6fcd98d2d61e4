"""Structured state and memory through runs: deltas, rewinds and the folding of memory."""

import json
from typing import Any

import pytest

from chatcore.models import Session
from chatcore.turns import deletion
from compaction.runs import engine
from compaction.systems.lota import store as summary_state
from compaction.systems.lota.models import WorkingState
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_summary_calls,
    say,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.state_sessions import DELTA, compact, list_items, reply_with_delta, session

__all__ = ["session"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_takes_a_delta_with_the_summary_and_shows_it_nowhere_in_it(
    session: Session, scripted: ScriptedModel
) -> None:
    run = compact(session, scripted, reply_with_delta(DELTA))
    assert (run.status, run.summary_after, run.provider_calls) == ("applied", SUMMARY, 1)
    assert (list_items(session, "decisions"), list_items(session, "tasks")) == (
        ("Stay at the Lis",),
        ("Book a flight",),
    )
    assert summary_state.load_structured_state(session.pk).memory == ("Alice likes tea.",)
    assert run.state_after["state"] == {
        "decisions": ["Stay at the Lis"],
        "tasks": ["Book a flight"],
    }


def test_the_next_run_is_shown_the_state_and_changes_it(
    session: Session, scripted: ScriptedModel
) -> None:
    compact(session, scripted, reply_with_delta(DELTA))
    changes = {
        "tasks": {"update": {"1": "Book two flights"}},
        "decisions": {"remove": [1]},
        "memory": ["Alice likes tea."],
    }
    compact(session, scripted, reply_with_delta(changes))
    prompt_text = list_summary_calls(scripted)[1].json["messages"][-1]["content"]
    state = prompt_text[
        prompt_text.index("<existing-workstream-state>") : prompt_text.index(
            "</existing-workstream-state>"
        )
    ]
    assert "decisions:\n1. Stay at the Lis" in state
    assert "risks: none" in state
    assert prompt_text.count("Stay at the Lis") == 1
    assert (list_items(session, "decisions"), list_items(session, "tasks")) == (
        (),
        ("Book two flights",),
    )
    assert summary_state.load_structured_state(session.pk).memory == ("Alice likes tea.",)


@pytest.mark.parametrize(
    "delta",
    [
        '{"tasks": {"add": ["Book',
        "{",
        "nonsense",
        '{"tasks": 7, "decisions": {"add": [null]}}',
        "{}",
    ],
)
def test_a_broken_delta_loses_only_itself(
    session: Session, scripted: ScriptedModel, delta: str
) -> None:
    compact(session, scripted, reply_with_delta(DELTA))
    run = compact(session, scripted, reply_with_delta(delta, "Lisbon in May; the hotel is booked."))
    assert run.status == "applied"
    assert run.summary_after is not None
    assert run.summary_after.startswith("Lisbon in May; the hotel is booked.")
    assert list_items(session, "tasks") == ("Book a flight",)


def test_an_answer_cut_off_in_its_delta_keeps_its_summary(
    session: Session, scripted: ScriptedModel
) -> None:
    cut = Reply(text=f'{SUMMARY}\n```json\n{{"tasks": {{"add": ["Book a fli', finish="length")
    assert compact(session, scripted, cut).summary_after == SUMMARY
    assert list_items(session, "tasks") == ()


def test_a_delta_that_comes_without_a_summary_is_kept_and_the_summary_asked_for_alone(
    session: Session, scripted: ScriptedModel
) -> None:
    alone = Reply(text=f"```json\n{json.dumps(DELTA)}\n```", finish="length")
    run = compact(
        session,
        scripted,
        alone,
        Reply(text=SUMMARY),
        overrides={"summary": {"backoff": [], "retry": "call"}},
    )
    assert (run.status, run.summary_after, run.provider_calls) == ("applied", SUMMARY, 2)
    assert list_items(session, "tasks") == ("Book a flight",)
    first, second = (
        request.json["messages"][-1]["content"] for request in list_summary_calls(scripted)
    )
    assert ("existing-workstream-state" in first, "existing-workstream-state" in second) == (
        True,
        False,
    )


def test_where_no_delta_fits_beside_a_summary_none_is_asked_for(
    session: Session, scripted: ScriptedModel, model: AiModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=4096)
    assert compact(session, scripted, Reply(text=SUMMARY)).summary_after == SUMMARY
    prompt_texts = [
        request.json["messages"][-1]["content"] for request in list_summary_calls(scripted)
    ]
    assert prompt_texts
    assert not any("existing-state" in words for words in prompt_texts)


def test_a_failed_run_leaves_it_as_it_was(session: Session, scripted: ScriptedModel) -> None:
    compact(session, scripted, reply_with_delta(DELTA))
    before = summary_state.load_structured_state(session.pk)
    bad = reply_with_delta({"tasks": {"add": ["Never"]}}, "I cannot help with that.")
    assert compact(
        session, scripted, bad, bad, overrides={"summary": {"backoff": [], "retry": "call"}}
    ).status in (
        "failed",
        "fell_back",
    )
    assert summary_state.load_structured_state(session.pk) == before


def test_a_policy_may_want_no_delta(session: Session, scripted: ScriptedModel) -> None:
    run = compact(
        session, scripted, Reply(text=SUMMARY), overrides={"summary": {"state_delta": False}}
    )
    prompt_text = list_summary_calls(scripted)[0].json["messages"][-1]["content"]
    assert run.status == "applied"
    assert "existing-state" not in prompt_text
    assert "json" not in prompt_text


def test_a_run_that_asks_for_no_delta_sends_the_state_on(
    session: Session, scripted: ScriptedModel
) -> None:
    compact(session, scripted, reply_with_delta(DELTA))
    compact(session, scripted, Reply(text=SUMMARY), overrides={"summary": {"state_delta": False}})
    say(session)
    assert "Stay at the Lis" in json.dumps(list_chat_calls(scripted)[-1].json)


def test_a_state_changed_while_a_summary_is_written_is_not_overwritten(
    session: Session, scripted: ScriptedModel
) -> None:
    def meanwhile(_: dict[str, Any]) -> Reply:
        summary_state.change_structured_state(
            session.pk,
            lambda working: summary_state.parse_structured_state({"state": {"tasks": ["Pack"]}}),
        )
        return reply_with_delta({"tasks": {"add": ["Lost with its call"]}})

    fill_session(session, messages=8)
    scripted.script(meanwhile, reply_with_delta({"tasks": {"add": ["Book a flight"]}}))
    run = engine.compact_now(session.pk, trigger="manual")
    assert (run.status, run.provider_calls) == ("applied", 2)
    assert list_items(session, "tasks") == ("Pack", "Book a flight")


# And back


def test_a_rewind_brings_back_the_state_before_the_run(
    session: Session, scripted: ScriptedModel
) -> None:
    compact(session, scripted, reply_with_delta(DELTA))
    second = compact(
        session,
        scripted,
        reply_with_delta({"tasks": {"remove": [1]}, "decisions": {"add": ["Rent a car"]}}),
    )
    engine.rewind_run(second)
    assert (list_items(session, "decisions"), list_items(session, "tasks")) == (
        ("Stay at the Lis",),
        ("Book a flight",),
    )
    say(session)
    assert "Rent a car" not in json.dumps(list_chat_calls(scripted)[-1].json)


def test_a_rewind_of_the_first_run_brings_back_an_empty_one(
    session: Session, scripted: ScriptedModel
) -> None:
    first = compact(session, scripted, reply_with_delta(DELTA))
    compact(session, scripted, reply_with_delta({"tasks": {"add": ["Pack"]}}))
    engine.rewind_run(first)
    assert summary_state.load_structured_state(session.pk).is_empty


def test_a_rewind_past_a_run_of_deleted_messages_brings_the_state_back_too(
    session: Session, scripted: ScriptedModel
) -> None:
    first = compact(session, scripted, reply_with_delta(DELTA))
    second = compact(session, scripted, reply_with_delta({"tasks": {"add": ["Pack"]}}))
    assert second.boundary_after
    deletion.delete_message(session.messages.get(seq=second.boundary_after - 1))
    compact(session, scripted, reply_with_delta({"tasks": {"add": ["Sing"]}}))
    assert list_items(session, "tasks") == ("Book a flight", "Sing")
    engine.rewind_to_run(first)
    second.refresh_from_db()
    assert second.status == "rewound"
    assert list_items(session, "tasks") == ("Book a flight",)


# Folding


def remember(session: Session, entries: int) -> None:
    memory = [f"Entry {number:02d}" for number in range(1, entries + 1)]
    WorkingState.objects.update_or_create(session_id=session.pk, defaults={"memory": memory})


def test_fifteen_entries_are_folded_to_five_and_a_summary(
    session: Session, scripted: ScriptedModel
) -> None:
    remember(session, 14)
    run = compact(
        session,
        scripted,
        reply_with_delta({"memory": ["Entry 15"]}),
        Reply(text="Alice has said ten things."),
    )
    assert (run.status, run.provider_calls) == ("applied", 2)
    stored_state = summary_state.load_structured_state(session.pk)
    assert stored_state.memory == tuple(f"Entry {number}" for number in range(11, 16))
    assert stored_state.memory_summary == "Alice has said ten things."
    prompt_text = list_summary_calls(scripted)[1].json["messages"][-1]["content"]
    assert "Entry 01" in prompt_text
    assert "Entry 11" not in prompt_text


def test_fourteen_are_not(session: Session, scripted: ScriptedModel) -> None:
    remember(session, 14)
    assert compact(session, scripted, Reply(text=SUMMARY)).provider_calls == 1


def test_a_folding_that_fails_loses_nothing_and_is_tried_at_the_next_run(
    session: Session, scripted: ScriptedModel
) -> None:
    remember(session, 15)
    down = Reply(status=500, text="out of order")
    quick: dict[str, Any] = {"summary": {"backoff": []}}
    run = compact(session, scripted, Reply(text=SUMMARY), down, down, overrides=quick)
    assert (run.status, run.summary_after) == ("applied", SUMMARY)
    assert len(summary_state.load_structured_state(session.pk).memory) == 15
    compact(
        session,
        scripted,
        Reply(text=SUMMARY),
        Reply(text="Alice has said ten things."),
        overrides=quick,
    )
    assert len(summary_state.load_structured_state(session.pk).memory) == 5


def test_the_summary_before_is_blended_with_the_entries(
    session: Session, scripted: ScriptedModel
) -> None:
    remember(session, 15)
    WorkingState.objects.update(memory_summary="Alice lives in Porto.")
    compact(
        session,
        scripted,
        Reply(text=SUMMARY),
        Reply(text="Alice lives in Porto and has said ten things."),
    )
    prompt_text = list_summary_calls(scripted)[1].json["messages"][-1]["content"]
    assert prompt_text.count("Alice lives in Porto.") == 1
    assert (
        summary_state.load_structured_state(session.pk).memory_summary
        == "Alice lives in Porto and has said ten things."
    )
