"""Runs are claimed once: by one worker of many, and by another when its lease has ended."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from chatcore.models import Session
from compaction import models
from compaction.models import CompactionRun
from compaction.runs import engine, leases, lifecycle
from tests.support.compaction_sessions import (
    SUMMARY,
    compact_in_thread,
    list_event_names,
    list_summary_calls,
    start_summary_in_thread,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_thirty_concurrent_triggers_make_one_run(full: Session) -> None:
    def ask(_: int) -> Any:
        try:
            return engine.request_run(full.pk, trigger="after_response").pk
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=30) as pool:
        run_ids = set(pool.map(ask, range(30)))
    assert len(run_ids) == 1
    assert CompactionRun.objects.count() == 1


def test_two_workers_never_get_the_same_run(full: Session) -> None:
    run = engine.request_run(full.pk, trigger="manual")

    def claim(_: int) -> CompactionRun | None:
        try:
            return leases.claim_run(run.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=8) as pool:
        claimed = [run_or_none for run_or_none in pool.map(claim, range(8)) if run_or_none]
    assert len(claimed) == 1
    assert claimed[0].attempts == 1


@pytest.mark.parametrize("is_in_line", [False, True])
def test_a_claim_that_is_overtaken_at_once_holds_its_own_number(
    full: Session, is_in_line: bool
) -> None:
    run = engine.request_run(full.pk, trigger="manual")
    overtaken: list[CompactionRun | None] = []

    def overtake(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Let the first lease end, and claim the run for another, before the first reads it."""
        row = CompactionRun.objects.filter(pk=run.pk, status="running")
        if not overtaken and not connection.in_atomic_block and sql.startswith("SELECT"):
            overtaken.append(None)
            if row.update(lease_until=timezone.now() - timedelta(minutes=1)):
                overtaken[0] = leases.claim_run(run.pk)
            else:
                overtaken.clear()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(overtake):
        first = leases.claim_next_run(lambda _: None) if is_in_line else leases.claim_run(run.pk)
    [second] = overtaken
    assert first is not None
    assert second is not None
    assert (first.attempts, second.attempts) == (1, 2)
    assert not leases.select_claimed_run(first).exists()
    assert leases.select_claimed_run(second).exists()


def test_an_open_run_is_found_and_executed_not_doubled(
    full: Session, scripted: ScriptedModel
) -> None:
    queued = engine.request_run(full.pk, trigger="after_response")
    assert engine.compact_now(full.pk, trigger="manual").pk == queued.pk
    assert len(list_summary_calls(scripted)) == 1


def test_whoever_comes_second_waits_for_the_run_of_another_worker(
    full: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text=SUMMARY, delay=1.0))
    run = engine.request_run(full.pk, trigger="after_response")
    worker = start_summary_in_thread(run, scripted)
    assert engine.compact_now(full.pk, trigger="before_request").status == "applied"
    worker.join()
    assert len(list_summary_calls(scripted)) == 1


def test_a_finished_run_cannot_be_claimed_again(full: Session) -> None:
    run = engine.compact_now(full.pk, trigger="manual")
    assert engine.execute_run(run.pk) is None
    assert engine.execute_run(uuid4()) is None


def test_a_worker_takes_over_when_the_lease_has_ended(
    full: Session, scripted: ScriptedModel
) -> None:
    run = engine.request_run(full.pk, trigger="after_response")
    dead = leases.claim_run(run.pk)
    assert dead is not None
    lifecycle.announce_start(dead, message_count=10, force=False)
    assert engine.execute_run(run.pk) is None
    CompactionRun.objects.filter(pk=run.pk).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )
    taken_over = engine.execute_run(run.pk)
    assert taken_over is not None
    assert (taken_over.status, taken_over.attempts) == ("applied", 2)
    assert list_event_names(full, "compaction") == ["compaction.started", "compaction.applied"]


def test_the_first_worker_writes_nothing_after_the_second_took_over(
    full: Session, scripted: ScriptedModel
) -> None:
    """Let the first worker sleep in its call until its lease has ended and another has finished."""
    run = engine.request_run(full.pk, trigger="after_response")
    call_began = threading.Event()

    def late(_: dict[str, Any]) -> Reply:
        call_began.set()
        return Reply(text="The late summary, which must never be seen.", delay=1.5, usage=(10, 10))

    scripted.script(late)
    results: list[Any] = []

    def first() -> None:
        results.append(engine.execute_run(run.pk))
        connection.close()

    sleeper = threading.Thread(target=first)
    sleeper.start()
    assert call_began.wait(60)
    CompactionRun.objects.filter(pk=run.pk).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )
    second = engine.execute_run(run.pk)
    sleeper.join()
    full.refresh_from_db()
    assert second is not None
    assert second.status == "applied"
    assert results == [None]
    assert full.compacted_summary == SUMMARY
    assert full.context_version == 1
    assert CompactionRun.objects.get(pk=run.pk).provider_calls == 2  # both were paid for
    assert list_event_names(full, "compaction") == ["compaction.started", "compaction.applied"]


def test_the_lease_is_extended_while_a_summary_is_written(
    full: Session, scripted: ScriptedModel
) -> None:
    models.CompactionPolicy.objects.create(
        name="short-lease", overrides={"flow": {"lease_seconds": 3}}
    )
    Session.objects.filter(pk=full.pk).update(policy="short-lease")
    scripted.script(Reply(text=SUMMARY, delay=6))
    run = engine.request_run(full.pk, trigger="after_response")
    worker = compact_in_thread(run)
    worker.join(4.5)
    assert leases.claim_run(run.pk) is None
    worker.join()
    assert CompactionRun.objects.get(pk=run.pk).status == "applied"


def test_a_run_whose_workers_keep_dying_ends_as_failed(
    full: Session, scripted: ScriptedModel
) -> None:
    run = engine.request_run(full.pk, trigger="after_response")
    CompactionRun.objects.filter(pk=run.pk).update(
        attempts=3, deaths=2, status="running", announced=True, lease_until=timezone.now()
    )
    ended = engine.execute_run(run.pk)
    assert ended is not None
    assert ended.status == "fell_back"
    assert "died 3 times" in ended.error
    assert not list_summary_calls(scripted)
    assert list_event_names(full) == ["compaction.failed", "context.trimmed"]


@pytest.mark.usefixtures("give_back_at_once")
def test_no_connection_is_held_while_another_workers_run_is_waited_for(
    full: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held = leases.claim_run(engine.request_run(full.pk, trigger="manual").pk), []

    def sleep(_: float) -> None:
        held.append(connection.connection is not None)
        CompactionRun.objects.update(status="skipped")

    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    assert run is not None
    assert engine.compact_now(full.pk, trigger="manual").status == "skipped"
    assert held == [False]


def test_asking_inside_a_transaction_leaves_it_usable(full: Session) -> None:
    first = engine.request_run(full.pk, trigger="manual")
    with transaction.atomic():
        assert engine.request_run(full.pk, trigger="after_response").pk == first.pk
        assert CompactionRun.objects.count() == 1


def test_the_sweep_tells_the_queue_again_of_what_it_forgot(full: Session) -> None:
    run = engine.request_run(full.pk, trigger="manual")
    assert engine.resend_lost_runs() == 0
    long_ago = timezone.now() - timedelta(minutes=5)
    CompactionRun.objects.filter(pk=run.pk).update(created_at=long_ago, enqueued_at=long_ago)
    assert engine.resend_lost_runs() == 1
    assert engine.resend_lost_runs() == 0


def test_the_sweep_brings_back_a_run_whose_worker_died(full: Session) -> None:
    run = engine.request_run(full.pk, trigger="manual")
    claimed_run = leases.claim_run(run.pk)
    assert claimed_run is not None
    assert claimed_run.lease_until is not None
    assert claimed_run.lease_until < timezone.now() + timedelta(seconds=31)
    assert engine.resend_lost_runs() == 0
    long_ago = timezone.now() - timedelta(minutes=5)
    # Its message was sent a moment ago, and it is not waited for.
    CompactionRun.objects.filter(pk=run.pk).update(lease_until=long_ago)
    assert engine.resend_lost_runs() == 1
