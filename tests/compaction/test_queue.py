"""Requests for runs: with options, while another run is open, and beyond a policy's limit."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django_q.models import OrmQ
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core.knobs import PolicyError
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine, leases, queue, tasks
from tests.support.compaction_sessions import SUMMARY, compact_in_thread, list_summary_calls
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def being_worked_on(run: CompactionRun, scripted: ScriptedModel) -> Iterator[threading.Event]:
    """Let another worker hold the run, and write its summary until the event is set."""
    call_began, go = threading.Event(), threading.Event()

    def slowly(_: dict[str, Any]) -> Reply:
        call_began.set()
        go.wait(60)
        return Reply(text=SUMMARY)

    scripted.script(slowly)
    worker = compact_in_thread(run)
    try:
        assert call_began.wait(60)
        yield go
    finally:
        go.set()
        worker.join()


def another(session: Session) -> Session:
    return Session.objects.create(owner=session.owner, model=session.model, policy=session.policy)


def test_a_queued_automatic_run_becomes_the_one_asked_for_by_hand(full: Session) -> None:
    queued = engine.request_run(full.pk, trigger="after_response")
    joined = engine.request_run(full.pk, trigger="manual", instructions="the hotel", policy="lota")
    assert joined.pk == queued.pk
    assert (joined.trigger, joined.instructions, joined.policy) == ("manual", "the hotel", "lota")
    assert joined.policy_snapshot["protect"]["count"] == 6


def test_a_queued_run_by_hand_keeps_its_own_wishes(full: Session) -> None:
    first = engine.request_run(full.pk, trigger="manual", instructions="the hotel")
    with pytest.raises(queue.RunConflict, match=str(first.pk)):
        engine.request_run(full.pk, trigger="manual", instructions="the flight")
    assert engine.request_run(full.pk, trigger="manual", instructions="the hotel").pk == first.pk
    assert engine.request_run(full.pk, trigger="manual").pk == first.pk
    assert engine.request_run(full.pk, trigger="after_response").pk == first.pk


@pytest.mark.parametrize("seq", [0, -1, 2**31])
def test_a_place_that_no_message_has_is_refused(full: Session, seq: int) -> None:
    with pytest.raises(PolicyError, match="up_to_seq: must be the number of a message"):
        engine.compact_now(full.pk, trigger="manual", up_to_seq=seq)


def test_who_waits_gets_a_run_of_their_own_after_the_open_one(
    full: Session, scripted: ScriptedModel
) -> None:
    first = engine.request_run(full.pk, trigger="manual", up_to_seq=4)
    second = engine.compact_now(full.pk, trigger="manual", instructions="the flight")
    first.refresh_from_db()
    assert (first.status, second.status) == ("applied", "applied")
    assert second.pk != first.pk
    assert "the flight" in str(list_summary_calls(scripted)[-1].json)


def test_a_run_that_is_being_worked_on_is_named_to_who_wants_another(
    full: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    run = engine.request_run(full.pk, trigger="after_response")
    with being_worked_on(run, scripted):
        refused = api.post(f"/api/v1/sessions/{full.pk}/compact", {"instructions": "the flight"})
        joined = api.post(f"/api/v1/sessions/{full.pk}/compact", {})
    assert (refused.status_code, refused.json()["type"]) == (409, "compaction_running")
    assert str(run.pk) in refused.json()["detail"]
    assert (joined.status_code, joined.json()["id"]) == (202, str(run.pk))


def test_knobs_may_be_set_for_one_run_and_stay_with_it(
    full: Session, scripted: ScriptedModel
) -> None:
    run = engine.compact_now(full.pk, trigger="manual", overrides={"protect": {"ratio": 0.1}})
    assert run.policy_snapshot["protect"]["ratio"] == 0.1
    assert (run.policy, run.boundary_after) == ("oneclaw", 14)
    with pytest.raises(PolicyError, match=r"protect\.count"):
        engine.request_run(full.pk, trigger="manual", overrides={"protect": {"count": -1}})
    with pytest.raises(PolicyError, match="colour"):
        engine.preview_run(full.pk, overrides={"colour": "blue"})


def test_only_the_stages_asked_for_run(full: Session, scripted: ScriptedModel) -> None:
    run = engine.compact_now(
        full.pk, trigger="manual", policy="neurolink", stages=["prune_tool_outputs"]
    )
    assert (run.status, run.only_stages, run.stages_used) == ("skipped", ["prune_tool_outputs"], [])
    assert not list_summary_calls(scripted)
    assert engine.preview_run(full.pk, policy="neurolink", stages=["summarize"]).stages_used == [
        "summarize"
    ]


@pytest.mark.parametrize(
    ("stages", "complaint"),
    [(["tidy_up"], "there is no stage"), (["excerpt"], "the policy has no stage")],
)
def test_a_stage_that_is_not_to_be_had_is_refused(
    full: Session, api: APIClient, stages: list[str], complaint: str
) -> None:
    with pytest.raises(PolicyError, match=complaint):
        engine.request_run(full.pk, trigger="manual", stages=stages)
    refused = api.post(f"/api/v1/sessions/{full.pk}/compact", {"stages": stages})
    assert (
        refused.status_code,
        {error["field"].split("[")[0] for error in refused.json()["errors"]},
    ) == (400, {"stages"})


def test_a_policy_without_the_manual_phase_allows_no_run_by_hand(
    full: Session, scripted: ScriptedModel
) -> None:
    CompactionPolicy.objects.create(
        name="hands-off", overrides={"trigger": {"phases": ["after_response"]}}
    )
    run = engine.compact_now(full.pk, trigger="manual", policy="hands-off")
    assert (run.status, run.reason) == ("skipped", "The policy hands-off allows no runs by hand.")
    assert engine.preview_run(full.pk, policy="hands-off").reason == run.reason
    assert not scripted.requests


def test_no_more_runs_of_a_policy_are_worked_on_than_it_allows(full: Session) -> None:
    CompactionPolicy.objects.create(name="one-by-one", overrides={"flow": {"workers": 1}})
    Session.objects.filter(pk=full.pk).update(policy="one-by-one")
    full.refresh_from_db()
    held, waiting = (
        engine.request_run(each.pk, trigger="manual") for each in (full, another(full))
    )
    other = engine.request_run(another(full).pk, trigger="manual", policy="lota")
    assert leases.claim_run(held.pk, obey_limits=True)
    assert tasks.execute(str(waiting.pk)) == "skipped"
    other.refresh_from_db()
    assert other.status == "skipped", "it has a policy, and so a place, of its own"
    assert tasks.execute(str(waiting.pk)) == "nothing to claim"
    OrmQ.objects.all().delete()
    leases.give_back(held.pk)
    assert engine.execute_run(held.pk)
    assert OrmQ.objects.count() == 1, "whoever frees a place wakes a worker"
    assert tasks.execute(str(held.pk)) == "skipped"
    waiting.refresh_from_db()
    assert waiting.status == "skipped"


def test_many_workers_at_once_claim_no_more_than_allowed(full: Session) -> None:
    CompactionPolicy.objects.create(name="two-at-once", overrides={"flow": {"workers": 2}})
    runs = [
        engine.request_run(another(full).pk, trigger="manual", policy="two-at-once")
        for _ in range(6)
    ]
    claimed: list[CompactionRun | None] = []

    def claim(run: CompactionRun) -> None:
        try:
            claimed.append(leases.claim_run(run.pk, obey_limits=True))
        finally:
            connection.close()

    workers = [threading.Thread(target=claim, args=[run]) for run in runs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len([run for run in claimed if run]) == 2


def test_a_run_that_cannot_wait_for_its_turn_does_not(full: Session) -> None:
    CompactionPolicy.objects.create(name="one-by-one", overrides={"flow": {"workers": 1}})
    assert leases.claim_run(
        engine.request_run(another(full).pk, trigger="manual", policy="one-by-one").pk
    )
    assert engine.compact_now(full.pk, trigger="manual", policy="one-by-one").status == "applied"


def test_the_command_takes_stages_and_instructions(full: Session, scripted: ScriptedModel) -> None:
    out = StringIO()
    call_command(
        "compact_session",
        str(full.pk),
        "--stages",
        "summarize",
        "--instructions",
        "the hotel",
        "--up-to",
        "4",
        stdout=out,
    )
    assert "boundary   none → 5" in out.getvalue()
    assert "the hotel" in str(list_summary_calls(scripted)[0].json)
    with pytest.raises(CommandError, match="there is no stage 'tidy_up'"):
        call_command("compact_session", str(full.pk), "--stages", "tidy_up")
