"""What may follow a compaction under every preset: more runs, edits, rewinds, smaller models."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.context import builder
from chatcore.models import Session
from chatcore.sessions import verification
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.systems.kit.settings import WindowKnobs
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_summary_calls,
    read_stored_messages,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import create_policy, is_within_budget, write_summary
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

KINDS = ("oneclaw", "neurolink", "lota", "wolffish", "baseagent")


@pytest.fixture(params=mark_others_slow(KINDS, first=2))
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def talk(session: Session, scripted: ScriptedModel, policy: str) -> Session:
    """A session under a preset without delays between its summary calls."""
    scripted.default = summarize_or_chat(
        summary=Reply(text=write_summary(policy)), chat=Reply(text="Yes.")
    )
    Session.objects.filter(pk=session.pk).update(
        policy=create_policy(policy, summary={"backoff": []})
    )
    session.refresh_from_db()
    return session


def set_model_fields(session: Session, **fields: Any) -> None:
    assert session.model is not None
    AiModel.objects.filter(pk=session.model.pk).update(**fields)


def compact(session: Session) -> CompactionRun:
    """Add messages, and compact them by a manual run."""
    fill_session(session, messages=16)
    run = engine.compact_now(session.pk, trigger="manual")
    assert (run.status, run.reason) == ("applied", "")
    check_session(session)
    return run


def check_session(session: Session) -> None:
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []


def read_next_request(session: Session) -> str:
    """Return all texts of the next request."""
    request = builder.build_request(session)
    return "\n".join(
        [request.system, request.preface, *(message.content for message in request.messages)]
    )


def test_a_second_summary_takes_in_the_first_and_each_is_undone(
    talk: Session, scripted: ScriptedModel, policy: str
) -> None:
    before = read_stored_messages(talk)
    first = compact(talk)
    first_request, seqs = (
        read_next_request(talk),
        {message.seq for message in builder.build_request(talk).messages},
    )
    scripted.default = summarize_or_chat(
        summary=Reply(text=write_summary(policy).replace("Alice", "Beatrice"))
    )
    calls = len(list_summary_calls(scripted))
    second = compact(talk)
    prompts = json.dumps([call.json for call in list_summary_calls(scripted)[calls:]])
    assert "Alice plans a trip, point 0" in prompts  # the first one is merged …
    assert "Beatrice plans" in read_next_request(talk)
    assert "Alice plans" not in read_next_request(talk)  # … and not sent twice
    engine.rewind_run(second)
    check_session(talk)
    request = builder.build_request(talk)
    restored_texts = [
        request.system,
        request.preface,
        *(m.content for m in request.messages if m.seq is None or m.seq in seqs),
    ]
    assert "\n".join(restored_texts) == first_request
    engine.rewind_run(first)
    check_session(talk)
    assert "plans a trip" not in read_next_request(talk)
    assert [message.seq for message in builder.build_request(talk).messages] == list(range(1, 33))
    assert read_stored_messages(talk)[: len(before)] == before


def test_other_words_of_the_users_are_sent_and_merged_into_the_next_summary(
    talk: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    compact(talk)
    answer = api.patch(f"/api/v1/sessions/{talk.pk}/summary", {"summary": "Alice goes to Oslo."})
    assert answer.status_code == 200, answer.json()
    assert "Alice goes to Oslo." in read_next_request(talk)
    assert "plans a trip" not in read_next_request(talk)
    calls = len(list_summary_calls(scripted))
    compact(talk)
    assert "Alice goes to Oslo." in json.dumps(
        [call.json for call in list_summary_calls(scripted)[calls:]]
    )


def test_a_summary_of_a_deleted_message_is_written_anew_without_it(
    talk: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    fill_session(talk, messages=2)
    talk.messages.filter(seq=2).update(content="The password is swordfish. " * 60)
    run = compact(talk)
    assert run.boundary_after is None or run.boundary_after > 2
    assert api.delete(f"/api/v1/messages/{talk.messages.get(seq=2).pk}").status_code == 204
    check_session(talk)
    calls = len(list_summary_calls(scripted))
    run_queued_compactions()
    engine.compact_now(talk.pk, trigger="manual")
    check_session(talk)
    say(talk, "And now?")
    assert talk.messages.latest("seq").content
    assert "swordfish" not in json.dumps(
        [
            request.json
            for request in [*list_summary_calls(scripted)[calls:], list_chat_calls(scripted)[-1]]
        ]
    )
    assert len(list_summary_calls(scripted)) > calls


def test_a_switch_to_a_window_of_8k_is_answered(talk: Session, scripted: ScriptedModel) -> None:
    set_model_fields(talk, context_window_size=200_000)
    fill_session(talk, messages=80)
    assert say(talk).status == "completed"
    assert not CompactionRun.objects.filter(status="applied").exists()
    assert talk.model is not None
    small = AiModel.objects.create(
        provider=talk.model.provider, name="small-model", context_window_size=8_192
    )
    Session.objects.filter(pk=talk.pk).update(model=small)
    turn = say(talk, "And on this one?")
    assert turn.status == "completed", turn.error
    assert len(json.dumps(list_chat_calls(scripted)[-1].json["messages"])) < 8_192 * 4
    assert all(
        len(json.dumps(call.json["messages"])) < 8_192 * 4 for call in list_summary_calls(scripted)
    )
    run_queued_compactions()
    check_session(talk)
    assert is_within_budget(talk) or turn.notices


def test_a_summary_model_with_a_smaller_window_is_given_no_more_than_it_holds(
    talk: Session, scripted: ScriptedModel
) -> None:
    assert talk.model is not None
    writer = AiModel.objects.create(
        provider=talk.model.provider, name="writer", context_window_size=4_096
    )
    set_model_fields(talk, summary_model=writer, context_window_size=32_768)
    fill_session(talk, messages=60)
    assert engine.compact_now(talk.pk, trigger="manual").status == "applied"
    check_session(talk)
    assert len(list_summary_calls(scripted)) > 1
    for call in list_summary_calls(scripted):
        assert call.json["model"] == "writer"
        assert len(json.dumps(call.json["messages"])) // 4 < 4_096


def test_automatic_compaction_that_is_off_is_off(talk: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=talk.pk).update(auto_compact=False)
    fill_session(talk, messages=20)
    say(talk)
    run_queued_compactions()
    assert not list_summary_calls(scripted)
    assert not CompactionRun.objects.exists()
    assert engine.compact_now(talk.pk, trigger="manual").status == "applied"


def test_an_unknown_window_is_taken_as_the_preset_says(
    talk: Session, scripted: ScriptedModel, policy: str
) -> None:
    set_model_fields(talk, context_window_size=None)
    fill_session(talk, messages=30)
    assert say(talk).status == "completed"
    run_queued_compactions()
    run = engine.compact_now(talk.pk, trigger="manual")
    if PRESETS[policy].get(WindowKnobs).unknown == "disable":
        assert (run.status, run.reason) == ("skipped", "The model's context window is not known.")
    else:
        assert CompactionRun.objects.filter(status="applied").exists()
    check_session(talk)


def test_a_run_by_rest_with_all_its_wishes(
    talk: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    fill_session(talk, messages=20)
    options = {
        "up_to_seq": 9,
        "stages": ["summarize"],
        "instructions": "Dwell on the hotel.",
        "wait": True,
    }
    answer = api.post(f"/api/v1/sessions/{talk.pk}/compact", options)
    assert answer.status_code == 200, answer.json()
    report = answer.json()
    assert (report["status"], report["stages_used"]) == ("applied", ["summarize"])
    assert (report["boundary_after"] or 0) <= 10
    assert "Dwell on the hotel." in json.dumps(list_summary_calls(scripted)[0].json)
    assert "0010 lisbon" not in json.dumps(list_summary_calls(scripted)[0].json)
    check_session(talk)
