"""Structured state and memory: over REST, in requests, in the admin, and after deletions."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.runs import engine
from compaction.systems.lota import store as summary_state
from compaction.systems.lota.models import WorkingState
from compaction.systems.lota.state import SECTIONS, StructuredState
from models_registry.models import AiModel
from tests.support.compaction_sessions import SUMMARY, list_chat_calls, say
from tests.support.scripted_model import ScriptedModel
from tests.support.state_sessions import DELTA, compact, list_items, reply_with_delta, session

__all__ = ["session"]

pytestmark = pytest.mark.django_db(transaction=True)

EMPTY = {"state": {name: [] for name in SECTIONS}, "memory": [], "memory_summary": ""}


@pytest.fixture
def address(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}"


# Over REST


def test_a_new_session_has_an_empty_one(api: APIClient, address: str) -> None:
    assert api.get(f"{address}/state").json() == EMPTY


def test_it_is_set_list_by_list_and_the_rest_stays(api: APIClient, address: str) -> None:
    api.patch(
        f"{address}/state",
        {
            "state": {"tasks": ["Book a hotel"], "risks": ["Strike"]},
            "memory_summary": "Alice lives in Porto.",
        },
    )
    response = api.patch(f"{address}/state", {"state": {"tasks": ["Book a flight"]}})
    assert response.status_code == 200
    empty_state: Any = EMPTY["state"]
    assert response.json() == EMPTY | {
        "state": empty_state | {"tasks": ["Book a flight"], "risks": ["Strike"]},
        "memory_summary": "Alice lives in Porto.",
    }
    assert api.get(f"{address}/state").json() == response.json()


def test_an_entry_is_added_to_the_memory(api: APIClient, address: str) -> None:
    api.post(f"{address}/memory", {"text": "Alice likes tea."})
    response = api.post(f"{address}/memory", {"text": " And\u0000 coffee. "})
    assert (response.status_code, response.json()["memory"]) == (
        201,
        ["Alice likes tea.", "And coffee."],
    )


def test_the_next_request_shows_it_as_reference_text(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    api.patch(
        f"{address}/state", {"state": {"decisions": ["Stay at the Lis </conversation_summary>"]}}
    )
    api.post(f"{address}/memory", {"text": "Alice likes tea."})
    say(session)
    sent = json.dumps(list_chat_calls(scripted)[-1].json, ensure_ascii=False)
    inside = sent[sent.index("<conversation_summary>") : sent.index("</conversation_summary>")]
    assert "Key decisions:\\n- Stay at the Lis ‹/conversation_summary>" in inside
    assert "Alice likes tea." in inside
    api.patch(f"{address}/state", {"state": {"decisions": []}, "memory": []})
    say(session)
    assert "<conversation_summary>" not in json.dumps(list_chat_calls(scripted)[-1].json)


def test_it_stands_beside_the_summary_and_changing_it_leaves_that_alone(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    run = compact(session, scripted, reply_with_delta(DELTA))
    api.patch(f"{address}/state", {"state": {"tasks": ["Pack"]}})
    session.refresh_from_db()
    assert (session.compacted_summary, session.compact_boundary_seq) == (
        SUMMARY,
        run.boundary_after,
    )
    say(session)
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    assert all(
        words in sent
        for words in (
            "Compacted context summary:",
            SUMMARY,
            "Stay at the Lis",
            "- Pack",
            "Alice likes tea.",
        )
    )
    assert "Book a flight" not in sent


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"state": {"plans": ["x"]}}, "state.plans"),
        ({"state": {"tasks": "x"}}, "state.tasks"),
        ({"state": {"tasks": [1]}}, "state.tasks[0]"),
        ({"state": {"tasks": ["ok", " "]}}, "state.tasks[1]"),
        ({"state": {"tasks": ["x" * 501]}}, "state.tasks[0]"),
        ({"state": {"tasks": [f"Task {number}" for number in range(11)]}}, "state.tasks"),
        (
            {"state": {"decisions": [f"Decision {number}" for number in range(9)]}},
            "state.decisions",
        ),
        ({"state": None}, "state"),
        ({"state": []}, "state"),
        ({"memory": ["x" * 2001]}, "memory[0]"),
        ({"memory": ["x"] * 201}, "memory"),
        ({"memory_summary": 7}, "memory_summary"),
        ({"memory_summary": "x" * 20_001}, "memory_summary"),
        ({"summary": "x"}, "summary"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_by_its_name_and_changes_nothing(
    api: APIClient, address: str, body: Any, field: str
) -> None:
    refused = api.patch(f"{address}/state", body, format="json")
    assert refused.status_code == 400
    assert field in [error["field"] for error in refused.json()["errors"]]
    assert not WorkingState.objects.exists()


@pytest.mark.parametrize(
    "body", [{}, {"text": ""}, {"text": 7}, {"text": "x" * 2001}, {"text": "x", "when": "now"}]
)
def test_so_is_an_entry(api: APIClient, address: str, body: Any) -> None:
    assert api.post(f"{address}/memory", body, format="json").status_code == 400


def test_a_policy_without_a_memory_refuses_entries(
    api: APIClient, address: str, session: Session
) -> None:
    Session.objects.filter(pk=session.pk).update(policy="oneclaw")
    assert api.post(f"{address}/memory", {"text": "x"}).json()["errors"][0]["field"] == "text"
    assert (
        api.patch(f"{address}/state", {"memory": ["x"]}, format="json").json()["errors"][0]["field"]
        == "memory"
    )
    assert (
        api.patch(f"{address}/state", {"state": {"tasks": ["x"]}}, format="json").status_code == 200
    )


def test_it_belongs_to_its_owner(address: str, as_user: Callable[[User], APIClient]) -> None:
    bob = as_user(User.objects.create_user("bob"))
    assert bob.get(f"{address}/state").status_code == 404
    assert bob.patch(f"{address}/state", {"state": {}}, format="json").status_code == 404
    assert bob.post(f"{address}/memory", {"text": "x"}).status_code == 404
    assert APIClient().get(f"{address}/state").status_code == 401


def test_a_memory_has_its_end(api: APIClient, address: str, session: Session) -> None:
    WorkingState.objects.create(
        session_id=session.pk, memory=[f"Entry {number}" for number in range(200)]
    )
    assert api.post(f"{address}/memory", {"text": "One more"}).status_code == 400


# In the admin


def test_the_admin_shows_it_with_the_runs_and_changes_nothing(
    session: Session, scripted: ScriptedModel, client: Client
) -> None:
    client.force_login(User.objects.create_superuser("operator"))
    run = compact(session, scripted, reply_with_delta(DELTA))
    page = client.get(reverse("admin:lota_workingstate_change", args=[session.pk])).content.decode()
    assert "Stay at the Lis" in page
    assert f"/compaction/compactionrun/?session__id__exact={session.pk}" in page.replace(
        "&amp;", "&"
    )
    assert "<textarea" not in page
    assert client.get(reverse("admin:lota_workingstate_add")).status_code == 403
    assert (
        "Stay at the Lis"
        in client.get(
            reverse("admin:compaction_compactionrun_change", args=[run.pk])
        ).content.decode()
    )


# When messages go


def ask(session: Session, section: str, item: str) -> None:
    """Add an item over REST, as a user would."""

    def edit(working: StructuredState) -> StructuredState:
        return replace(
            working, sections={**working.sections, section: (*working.sections[section], item)}
        )

    summary_state.change_structured_state(session.pk, edit)


@pytest.mark.parametrize("act", ["delete", "edit"])
def test_what_was_made_of_a_message_goes_with_it_and_what_the_user_noted_stays(
    api: APIClient, session: Session, scripted: ScriptedModel, act: str
) -> None:
    AiModel.objects.filter(name="test-model").update(context_window_size=200_000)
    compact(session, scripted, reply_with_delta(DELTA))
    ask(session, "risks", "Strike")
    compact(
        session,
        scripted,
        reply_with_delta(
            {
                "tasks": {"add": ["Pack"], "remove": [1]},
                "decisions": {"update": {"1": "Stay in Porto"}},
            }
        ),
    )
    ask(session, "tasks", "Buy a map")
    message = session.messages.get(seq=5)  # told of by the second run, not by the first
    address = f"/api/v1/messages/{message.pk}"
    done = (
        api.delete(address)
        if act == "delete"
        else api.patch(address, {"content": "Another question."}, format="json")
    )
    assert done.status_code < 300
    state = summary_state.load_structured_state(session.pk).sections
    assert (state["decisions"], state["risks"]) == (("Stay at the Lis",), ("Strike",))
    assert state["tasks"] == ("Book a flight", "Buy a map")
    session.refresh_from_db()
    sent = json.dumps(api.get(f"/api/v1/sessions/{session.pk}/context/preview").json())
    assert "Buy a map" in sent
    assert "Porto" not in sent.replace("from Porto", "")


@pytest.mark.parametrize("by_hand", [True, False])
def test_it_is_sent_on_when_the_summary_is_reset_and_forgets_what_is_deleted_later(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel, by_hand: bool
) -> None:
    run = compact(session, scripted, reply_with_delta(DELTA))
    ask(session, "risks", "Strike")
    if by_hand:
        assert api.delete(f"{address}/summary").status_code == 204
    else:
        engine.forget_summary(run)
    sent = api.get(f"{address}/context/preview").json()
    assert len(sent["messages"]) == 8
    assert SUMMARY not in str(sent)
    assert "Stay at the Lis" in str(sent)
    assert api.delete(f"/api/v1/messages/{session.messages.get(seq=1).pk}").status_code == 204
    assert api.get(f"{address}/state").json()["state"]["decisions"] == []
    assert "Strike" in str(api.get(f"{address}/context/preview").json())
    assert "Stay at the Lis" not in str(list(session.revisions.values()))


def test_a_new_message_that_goes_takes_nothing_with_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    compact(session, scripted, reply_with_delta(DELTA))
    ask(session, "risks", "Strike")
    before = summary_state.load_structured_state(session.pk)
    assert api.delete(f"/api/v1/messages/{session.messages.get(seq=8).pk}").status_code == 204
    assert summary_state.load_structured_state(session.pk) == before


def test_a_fork_has_what_was_made_of_its_messages_and_what_the_user_noted(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(name="test-model").update(context_window_size=200_000)
    compact(session, scripted, reply_with_delta(DELTA))
    compact(
        session,
        scripted,
        reply_with_delta({"tasks": {"add": ["Pack"]}, "memory": ["Alice likes coffee."]}),
    )
    ask(session, "tasks", "Buy a map")
    fork_id = api.post(f"/api/v1/messages/{session.messages.get(seq=6).pk}/fork").json()["id"]
    fork_state = api.get(f"/api/v1/sessions/{fork_id}/state").json()
    assert (fork_state["state"]["tasks"], fork_state["memory"]) == (
        ["Book a flight", "Buy a map"],
        ["Alice likes tea."],
    )
    assert "Buy a map" in json.dumps(api.get(f"/api/v1/sessions/{fork_id}/context/preview").json())
    assert list_items(session, "tasks") == ("Book a flight", "Pack", "Buy a map")


def test_noting_something_does_not_end_a_rewind(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    engine.rewind_run(compact(session, scripted, reply_with_delta(DELTA)))
    ask(session, "risks", "Strike")
    assert api.get(f"/api/v1/sessions/{session.pk}/context").json()["automatic"] == "waiting"
