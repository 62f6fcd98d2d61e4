"""NeuroLink's stage 3 (seed 000): a summary in nine sections, merged with the previous one."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from compaction.systems.kit.settings import TailKnobs
from compaction.systems.neurolink.settings import SlideKnobs
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    read_system_text,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import PROTOCOLS, set_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

NEUROLINK = PRESETS["neurolink"]
SUMMARY = (
    "1. Primary Request and Intent: a trip to Lisbon.\n2. Key Concepts: none\n"
    "9. Next Step: book the flight."
)
DOWN = Reply(status=500, text="out of order")


@pytest.fixture
def talk(session: Session, scripted: ScriptedModel) -> Session:
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY))
    return set_policy(session, "neurolink", scripted, "openai", context_window_size=32_000)


def compact(session: Session, **summary: Any) -> CompactionRun:
    return engine.compact_now(session.pk, trigger="manual", overrides={"summary": summary})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_asks_for_nine_sections_and_the_summary_is_a_system_message(
    session: Session, scripted: ScriptedModel, protocol: str
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY))
    talk = set_policy(session, "neurolink", scripted, protocol, context_window_size=32_000)
    fill_session(talk, messages=20)
    before = read_stored_messages(talk)
    run = compact(talk)
    assert (run.status, run.provider_calls, run.summary_after) == ("applied", 1, SUMMARY)
    prompt = read_message_texts(list_summary_calls(scripted)[0])[-1].split("</transcript>")[1]
    assert [prompt.count(f"\n{number}. ") for number in range(1, 10)] == [1] * 9
    assert "\n10. " not in prompt
    say(talk, "And the hotel?")
    assert SUMMARY in read_system_text(list_chat_calls(scripted)[-1])
    assert read_stored_messages(talk)[:20] == before


def test_thirty_percent_of_the_messages_and_at_least_four_are_kept(
    talk: Session, scripted: ScriptedModel
) -> None:
    """keepRecentRatio 0.3, minimum 4."""
    assert (
        NEUROLINK.get(TailKnobs).kind,
        NEUROLINK.protect.ratio,
        NEUROLINK.get(TailKnobs).minimum,
    ) == (
        "count_ratio",
        0.3,
        4,
    )
    fill_session(talk, messages=20)
    assert compact(talk).boundary_after == 15


def test_it_does_not_summarize_four_messages(talk: Session, scripted: ScriptedModel) -> None:
    fill_session(talk, messages=4)
    run = compact(talk)
    assert (run.status, run.provider_calls) == ("skipped", 0)


def test_the_summary_before_is_found_and_merged(talk: Session, scripted: ScriptedModel) -> None:
    fill_session(talk, messages=20)
    compact(talk)
    fill_session(talk, messages=10)
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY.replace("Lisbon", "Porto")))
    run = compact(talk)
    prompt = read_message_texts(list_summary_calls(scripted)[1])[-1]
    assert prompt.count("a trip to Lisbon") == 1
    assert run.summary_after == SUMMARY.replace("Lisbon", "Porto")


@pytest.mark.parametrize("name", ["vertex/gemini-2.5-flash", "gemini-2.5-flash"])
def test_summarization_provider_and_model(
    talk: Session, scripted: ScriptedModel, name: str
) -> None:
    """NEUROLINK_SUMMARIZATION_PROVIDER and NEUROLINK_SUMMARIZATION_MODEL."""
    Provider.objects.filter(name="vertex").delete()
    vertex = Provider.objects.create(
        name="vertex", protocol="openai", base_url=scripted.base_url, timeout_seconds=20
    )
    AiModel.objects.filter(name="gemini-2.5-flash").exclude(provider=vertex).delete()
    AiModel.objects.create(provider=vertex, name="gemini-2.5-flash", context_window_size=1_048_576)
    CompactionPolicy.objects.create(
        name="flash", base="neurolink", overrides={"summary": {"model": name}}
    )
    Session.objects.filter(pk=talk.pk).update(policy="flash")
    fill_session(talk, messages=60)
    say(talk, "And the flight?")  # over 80 % of the input: compacted before it is sent
    run = CompactionRun.objects.get()
    assert (run.trigger, run.status, run.model) == (
        "before_request",
        "applied",
        "vertex/gemini-2.5-flash",
    )
    assert {request.json["model"] for request in list_summary_calls(scripted)} == {
        "gemini-2.5-flash"
    }
    assert {request.json["model"] for request in list_chat_calls(scripted)} == {"test-model"}


def test_a_summary_that_fails_is_silent_and_the_next_stage_makes_the_room(
    talk: Session, scripted: ScriptedModel
) -> None:
    fill_session(talk, messages=60)
    scripted.default = summarize_or_chat(summary=DOWN)
    turn = say(talk, "And the flight?")
    run = CompactionRun.objects.get()
    assert (turn.status, run.provider_calls) == ("completed", 1)  # it is not retried
    assert run.status == "applied"
    assert "slide_window" in run.stages_used
    assert NEUROLINK.get(SlideKnobs).marker in str(list_chat_calls(scripted)[-1].json)
