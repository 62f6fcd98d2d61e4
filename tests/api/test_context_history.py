"""Undo and redo of what the model sees, a summary written anew at once, a run that is stopped."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.context import history
from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import summarize_or_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
FIRST = "They spoke of tea, and of nothing else that would matter later on in this talk."
SECOND = "They spoke of tea, and above all of its price, which nobody found too high."


@pytest.fixture
def address(full: Session) -> str:
    return f"/api/v1/sessions/{full.pk}"


@pytest.fixture
def run(full: Session, scripted: ScriptedModel) -> CompactionRun:
    scripted.default = summarize_or_chat(summary=Reply(text=FIRST))
    return engine.compact_now(full.pk, trigger="manual")


def move(api: APIClient, address: str, direction: str) -> dict[str, Any]:
    response = api.post(f"{address}/context/{direction}")
    assert response.status_code == 200, response.json()
    body: dict[str, Any] = response.json()
    return body


def read_summary(session: Session) -> str | None:
    session.refresh_from_db()
    return session.compacted_summary


def test_undo_takes_back_the_edit_and_then_the_summary_and_redo_brings_both_back(
    api: APIClient, address: str, full: Session, run: CompactionRun
) -> None:
    api.patch(f"{address}/summary", {"summary": "Mine."}, format="json")
    state = api.get(f"{address}/context/history").json()
    assert (state["is_edited"], state["previous_summary"]) == (True, FIRST)
    assert move(api, address, "undo")["can_redo"]
    run.refresh_from_db()
    assert (read_summary(full), run.status) == (FIRST, "applied")
    state = move(api, address, "undo")
    run.refresh_from_db()
    assert (read_summary(full), run.status, state["can_undo"]) == (None, "rewound", False)
    assert api.post(f"{address}/context/undo").status_code == 409
    move(api, address, "redo")
    run.refresh_from_db()
    assert (read_summary(full), run.status) == (FIRST, "applied")
    state = move(api, address, "redo")
    assert (read_summary(full), state["can_redo"]) == ("Mine.", False)


def test_what_is_done_after_an_undo_ends_the_redo(
    api: APIClient, address: str, run: CompactionRun
) -> None:
    move(api, address, "undo")
    engine.compact_now(run.session_id, trigger="manual")
    assert api.post(f"{address}/context/redo").status_code == 409


def test_a_summary_is_written_anew_from_the_messages_and_installed_in_one_act(
    api: APIClient, address: str, full: Session, run: CompactionRun, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(text=SECOND))
    body = {"replace": True, "instructions": "prices", "wait": True}
    again = api.post(f"{address}/compact", body, format="json").json()
    run.refresh_from_db()
    assert (again["status"], run.status, read_summary(full)) == ("applied", "rewound", SECOND)
    assert (again["summary_before"], again["boundary_after"]) == (None, run.boundary_after)
    assert again["messages_compacted"] == run.messages_compacted
    move(api, address, "undo")
    run.refresh_from_db()
    assert (read_summary(full), run.status) == (FIRST, "applied")
    move(api, address, "redo")
    assert read_summary(full) == SECOND


def test_a_summary_stays_while_writing_it_anew_fails(
    api: APIClient, address: str, full: Session, run: CompactionRun, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500, text="out of order"))
    body = {"replace": True, "wait": True}
    again = api.post(f"{address}/compact", body, format="json").json()
    run.refresh_from_db()
    full.refresh_from_db()
    assert (again["status"], run.status) == ("failed", "applied")
    assert (full.compacted_summary, full.context_version) == (FIRST, 1)
    assert history.load_history(full.pk).redo_version is None


def test_without_a_summary_there_is_nothing_to_write_anew(api: APIClient, address: str) -> None:
    response = api.post(f"{address}/compact", {"replace": True}, format="json")
    assert (response.status_code, response.json()["type"]) == (409, "nothing_to_replace")


def test_a_summary_that_came_with_a_fork_is_written_anew_too(
    api: APIClient, full: Session, run: CompactionRun, scripted: ScriptedModel
) -> None:
    last = full.messages.order_by("-seq").first()
    assert last
    fork = api.post(f"/api/v1/messages/{last.pk}/fork").json()["id"]
    scripted.default = summarize_or_chat(summary=Reply(text=SECOND))
    body = {"replace": True, "wait": True}
    again = api.post(f"/api/v1/sessions/{fork}/compact", body, format="json").json()
    assert (again["status"], again["summary_after"]) == ("applied", SECOND)
    assert again["boundary_after"] == run.boundary_after


def test_a_run_is_stopped_and_the_context_stays(
    api: APIClient, address: str, full: Session
) -> None:
    waiting = engine.request_run(full.pk, trigger="manual")
    stopped = api.post(f"/api/v1/compactions/{waiting.pk}/cancel")
    assert (stopped.status_code, stopped.json()["status"]) == (200, "skipped")
    assert engine.execute_run(waiting.pk) is None
    assert read_summary(full) is None
    assert api.get(f"{address}/context").json()["automatic"] == "waiting"
    assert api.post(f"/api/v1/compactions/{waiting.pk}/cancel").status_code == 409
