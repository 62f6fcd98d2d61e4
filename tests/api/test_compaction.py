"""Compaction over REST: context usage, runs by hand, rewinds, policies."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.models import CompactionRun
from compaction.runs import tasks
from models_registry.models import AiModel
from tests.support.compaction_sessions import fill_session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
SUMMARY = "Alice talked at length about tea; nothing was decided."


@pytest.fixture
def long_session(session: Session) -> Session:
    """Twenty messages of 500 tokens: over the threshold of 6,963."""
    roles = ("user", "assistant")
    Message.objects.bulk_create(
        Message(session=session, seq=seq, role=roles[(seq - 1) % 2], content="tea " * 500)
        for seq in range(1, 21)
    )
    Session.objects.filter(pk=session.pk).update(last_seq=20, message_count=20)
    return session


@pytest.fixture
def address(long_session: Session) -> str:
    return f"/api/v1/sessions/{long_session.pk}"


@pytest.fixture
def applied_run(api: APIClient, address: str, scripted: ScriptedModel) -> dict[str, object]:
    scripted.default = Reply(text=SUMMARY, usage=(8000, 12))
    return api.post(f"{address}/compact", {"wait": True}).json()


def test_the_context_tells_how_full_the_window_is(api: APIClient, address: str) -> None:
    context_usage = api.get(f"{address}/context").json()
    assert (
        context_usage["context_window"],
        context_usage["threshold_tokens"],
        context_usage["source"],
    ) == (
        8192,
        6963,
        "estimated",
    )
    assert context_usage["estimated_input_tokens"] >= 10_000
    assert (context_usage["should_compact"], context_usage["level"], context_usage["policy"]) == (
        True,
        "critical",
        "oneclaw",
    )
    assert (context_usage["message_count"], context_usage["live_message_count"]) == (20, 20)
    assert set(context_usage["breakdown"]) == {
        *(
            "system_prompt",
            "summary",
            "conversation_history",
            "current_prompt",
            "tool_definitions",
            "file_attachments",
        )
    }


def test_an_unknown_window_is_nulls_and_never_compacts(api: APIClient, address: str) -> None:
    AiModel.objects.update(context_window_size=None)
    context_usage = api.get(f"{address}/context").json()
    assert {
        context_usage[name]
        for name in ("available_input_tokens", "context_window", "threshold_tokens", "usage_ratio")
    } == {None}
    assert context_usage["should_compact"] is False


def test_a_run_that_is_waited_for_is_200_and_finished(
    api: APIClient, applied_run: dict[str, object], address: str
) -> None:
    assert (applied_run["status"], applied_run["trigger"], applied_run["summary_after"]) == (
        "applied",
        "manual",
        SUMMARY,
    )
    calls = applied_run["provider_calls"]
    assert isinstance(calls, int)
    assert (applied_run["input_tokens"], applied_run["output_tokens"]) == (8000 * calls, 12 * calls)
    assert applied_run["tokens_saved"] == int(str(applied_run["tokens_before"])) - int(
        str(applied_run["tokens_after"])
    )
    session = api.get(address).json()
    assert (session["compacted_summary"], session["compact_boundary_seq"]) == (
        SUMMARY,
        applied_run["boundary_after"],
    )


def test_a_run_shows_exactly_the_fields_of_the_contract(applied_run: dict[str, object]) -> None:
    names = (
        "id session trigger policy status stages_used tokens_before tokens_after tokens_saved "
        "messages_compacted boundary_before boundary_after summary_before summary_after model "
        "provider_calls attempts input_tokens output_tokens cost error reason instructions "
        "created_at started_at finished_at duration_ms edits targets state_after "
        "verification cached_tokens expected_seconds summary_model"
    )
    assert set(applied_run) == set(names.split())


def test_a_run_that_is_not_waited_for_is_202_and_queued_once(
    api: APIClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued_ids: list[object] = []
    monkeypatch.setattr(tasks, "send_run", enqueued_ids.append)
    first, second = (
        api.post(f"{address}/compact", {"instructions": "Keep the names."}) for _ in range(2)
    )
    assert (first.status_code, first.json()["status"], first.json()["instructions"]) == (
        202,
        "queued",
        "Keep the names.",
    )
    assert second.json()["id"] == first.json()["id"]
    assert [str(run) for run in enqueued_ids] == [first.json()["id"]]
    assert api.get(f"/api/v1/compactions/{first.json()['id']}").json() == second.json()


def test_a_dry_run_stores_nothing_and_calls_nobody(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    preview = api.post(f"{address}/compact", {"dry_run": True})
    assert (preview.status_code, preview.json()["id"]) == (200, None)
    assert preview.json()["messages_compacted"] > 0
    assert (scripted.requests, CompactionRun.objects.count()) == ([], 0)


def test_too_little_to_compact_is_a_skipped_run_that_says_why(
    api: APIClient, session: Session
) -> None:
    run = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True})
    assert (run.status_code, run.json()["status"]) == (200, "skipped")
    assert run.json()["reason"]


def test_up_to_seq_names_the_last_message_to_compact(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text=SUMMARY))
    assert (
        api.post(f"{address}/compact", {"wait": True, "up_to_seq": 4}).json()["boundary_after"] == 5
    )


def test_a_chat_smaller_than_a_quarter_of_the_window_is_compacted_by_hand(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4, tokens=400)
    address = f"/api/v1/sessions/{session.pk}"
    assert api.get(f"{address}/context").json()["usage_ratio"] < 0.25
    scripted.script(Reply(text=SUMMARY))
    run = api.post(f"{address}/compact", {"wait": True}).json()
    assert (run["status"], run["boundary_after"]) == ("applied", 4)
    assert api.post(f"{address}/compact", {"wait": True}).json()["status"] == "skipped"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("policy", "no-such-policy"),
        ("policy", 5),
        ("instructions", ["Keep the names."]),
        ("summary_model", "no-such-model"),
        ("summary_model", 5),
        ("up_to_seq", "4"),
        ("up_to_seq", 0),
        ("up_to_seq", True),
        ("up_to_seq", 10**30),
        ("wait", "yes"),
        ("dry_run", 1),
        ("colour", "blue"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(
    api: APIClient, address: str, field: str, value: object
) -> None:
    refusal = api.post(f"{address}/compact", {field: value})
    assert (refusal.status_code, [error["field"] for error in refusal.json()["errors"]]) == (
        400,
        [field],
    )
    assert not CompactionRun.objects.exists()


def test_runs_are_listed_newest_first(
    api: APIClient, address: str, applied_run: dict[str, object]
) -> None:
    api.post(f"{address}/compact", {"wait": True})
    listed = api.get(f"{address}/compactions").json()["results"]
    assert len(listed) == 2
    assert listed[1] == applied_run


def test_runs_are_listed_by_how_they_stand(
    api: APIClient, address: str, applied_run: dict[str, object]
) -> None:
    api.post(f"{address}/compact", {"wait": True})
    assert api.get(f"{address}/compactions?status=applied").json()["results"] == [applied_run]
    assert not api.get(f"{address}/compactions?status=running").json()["results"]
    refusal = api.get(f"{address}/compactions?status=done")
    assert (refusal.status_code, refusal.json()["errors"][0]["field"]) == (400, "status")


def test_a_rewind_shows_the_model_what_it_saw_before(
    api: APIClient, address: str, applied_run: dict[str, object]
) -> None:
    rewind = api.post(f"/api/v1/compactions/{applied_run['id']}/rewind")
    assert (rewind.status_code, rewind.json()["status"]) == (200, "rewound")
    session = api.get(address).json()
    assert (session["compacted_summary"], session["compact_boundary_seq"]) == (None, None)
    second_rewind = api.post(f"/api/v1/compactions/{applied_run['id']}/rewind")
    assert (
        second_rewind.status_code,
        second_rewind.json()["type"],
        second_rewind["Content-Type"],
    ) == (
        409,
        "not_rewindable",
        "application/problem+json",
    )


def test_policies_are_listed_with_their_knobs(api: APIClient) -> None:
    (oneclaw,) = (
        row for row in api.get("/api/v1/policies").json()["results"] if row["name"] == "oneclaw"
    )
    assert oneclaw["knobs"]["trigger"]["threshold"] == 0.85


def test_everything_of_another_user_is_404(
    address: str, applied_run: dict[str, object], as_user: Callable[[User], APIClient]
) -> None:
    stranger = as_user(User.objects.create_user("mallory"))
    run = f"/api/v1/compactions/{applied_run['id']}"
    refusals = [
        stranger.get(f"{address}/context"),
        stranger.post(f"{address}/compact", {}),
        stranger.get(f"{address}/compactions"),
        stranger.get(run),
        stranger.post(f"{run}/rewind"),
        stranger.get(f"/api/v1/compactions/{uuid4()}"),
    ]
    assert [response.status_code for response in refusals] == [404] * len(refusals)
