"""Lota's memory (seed 001): what is folded, when, and the limits of its lists."""

import dataclasses
import json

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.systems.lota import store as summary_state
from compaction.systems.lota.models import WorkingState
from compaction.systems.lota.settings import StateKnobs
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_event_names,
    list_summary_calls,
    read_system_text,
    say,
    summarize_or_chat,
)
from tests.support.lota_sessions import SECTIONS, compact, each_protocol, workstream
from tests.support.preset_sessions import create_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["each_protocol", "workstream"]

pytestmark = pytest.mark.django_db(transaction=True)

LOTA = PRESETS["lota"]


def test_at_fifteen_entries_the_oldest_ten_are_folded_and_both_are_injected(
    each_protocol: Session, scripted: ScriptedModel
) -> None:
    WorkingState.objects.create(
        session_id=each_protocol.pk, memory=[f"Entry {number:02d}" for number in range(1, 16)]
    )
    fill_session(each_protocol, messages=8)
    scripted.script(Reply(text=SECTIONS), Reply(text="Alice has said ten things."))
    compact(each_protocol)
    state = summary_state.load_structured_state(each_protocol.pk)
    assert state.memory == tuple(f"Entry {number}" for number in range(11, 16))
    say(each_protocol)
    system_text = read_system_text(list_chat_calls(scripted)[-1])
    assert "Alice has said ten things." in system_text
    assert "- Entry 11\n" in system_text
    assert "Entry 10" not in system_text


def test_a_full_memory_is_folded_although_there_is_nothing_to_summarize(
    workstream: Session, scripted: ScriptedModel
) -> None:
    entries = [f"Entry {number:02d}" for number in range(1, 16)]
    WorkingState.objects.create(session_id=workstream.pk, memory=entries[:14])
    assert say(workstream).status == "completed"
    assert not CompactionRun.objects.exists()
    WorkingState.objects.filter(session_id=workstream.pk).update(memory=entries)
    assert say(workstream).status == "completed"
    scripted.script(Reply(text="Alice has said ten things."))
    run = engine.execute_run(CompactionRun.objects.get(trigger="after_response").pk)
    assert run is not None
    assert (run.status, run.provider_calls, run.summary_after) == ("applied", 1, None)
    state = summary_state.load_structured_state(workstream.pk)
    assert (state.memory, state.memory_summary) == (
        tuple(entries[10:]),
        "Alice has said ten things.",
    )
    say(workstream)
    assert "Alice has said ten things." in read_system_text(list_chat_calls(scripted)[-1])
    assert CompactionRun.objects.count() == 1
    assert list_event_names(workstream, "compaction") == []
    engine.rewind_run(run)
    assert summary_state.load_structured_state(workstream.pk).memory == tuple(entries)


@pytest.mark.slow
def test_the_fifteenth_entry_starts_the_fold_and_the_next_one_blends_the_summary_before(
    api: APIClient, workstream: Session, scripted: ScriptedModel
) -> None:
    """Nobody has to say anything: entries come over REST."""
    address = f"/api/v1/sessions/{workstream.pk}/memory"
    say(workstream)
    for number in range(1, 15):
        assert api.post(address, {"text": f"Entry {number:02d}"}).status_code == 201
    assert not CompactionRun.objects.exists()
    words = ["Alice has said ten things.", "Alice has said twenty things."]
    for cycle, folded in enumerate(words):
        for number in range(15 + 10 * cycle, 16 + 10 * cycle):
            api.post(address, {"text": f"Entry {number:02d}"})
        scripted.script(Reply(text=folded))
        run = engine.execute_run(CompactionRun.objects.get(status="queued").pk)
        assert run is not None
        assert (run.status, run.provider_calls) == ("applied", 1)
        for number in range(16 + 10 * cycle, 25 + 10 * cycle):
            api.post(address, {"text": f"Entry {number:02d}"})
        assert not CompactionRun.objects.filter(status="queued").exists()
    prompts = [str(call.json["messages"]) for call in list_summary_calls(scripted)]
    assert [words[0] in prompt for prompt in prompts] == [False, True]
    assert ["Entry 10" in prompt for prompt in prompts] == [True, False]
    assert ["Entry 20" in prompt for prompt in prompts] == [False, True]
    state = summary_state.load_structured_state(workstream.pk)
    assert (state.memory[0], state.memory_summary) == ("Entry 21", words[1])


def test_a_memory_that_cannot_be_folded_waits_before_it_is_tried_again(
    workstream: Session, scripted: ScriptedModel
) -> None:
    policy = create_policy("lota", summary={"backoff": [0]})
    Session.objects.filter(pk=workstream.pk).update(policy=policy)
    entries = [f"Entry {number:02d}" for number in range(1, 16)]
    WorkingState.objects.create(session_id=workstream.pk, memory=entries)
    say(workstream)
    scripted.default = summarize_or_chat(summary=Reply(status=500, text="out of order"))
    run = engine.execute_run(CompactionRun.objects.get().pk)
    assert run is not None
    assert (run.status, run.provider_calls) == ("failed", 2)
    assert "The memory was not folded: " in run.reason
    say(workstream)
    assert CompactionRun.objects.count() == 1
    assert summary_state.load_structured_state(workstream.pk).memory == tuple(entries)


def test_the_limits_are_enforced_after_each_merge(
    workstream: Session, scripted: ScriptedModel
) -> None:
    many = {
        name: {"add": [f"{name} {number}" for number in range(20)]}
        for name in dataclasses.asdict(LOTA.get(StateKnobs))
    }
    fill_session(workstream, messages=8)
    scripted.script(Reply(text=f"{SECTIONS}\n```json\n{json.dumps(many)}\n```"))
    run = compact(workstream)
    state = summary_state.load_structured_state(workstream.pk).sections
    assert {name: len(items) for name, items in state.items()} == dataclasses.asdict(
        LOTA.get(StateKnobs)
    )
    assert state["decisions"][-1] == "decisions 19"
    assert run.summary_after == SECTIONS
