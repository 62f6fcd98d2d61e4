"""`chatcore worker` when nothing goes wrong: it executes runs, and ends when asked to."""

import os
import signal
from collections.abc import Iterator
from multiprocessing import Value
from pathlib import Path
from queue import Queue
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError
from django_q.models import OrmQ
from django_q.signing import SignedPackage
from django_q.tasks import async_task
from django_q.worker import worker
from pytest_django import DjangoDbBlocker

from chatcore.contrib.local_model.register import TIMEOUT_SECONDS
from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine, tasks
from compaction.runs import worker as cluster
from compaction.runs.run_locks import RunLocks
from compaction.runs.tasks import MAX_RUN_SECONDS
from tests.support.compaction_sessions import SUMMARY
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.worker_scenarios import WorkerScenario, open_scenario


@pytest.fixture
def stage(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[WorkerScenario]:
    with django_db_blocker.unblock(), open_scenario("sqlite", tmp_path) as worker_scene:
        yield worker_scene


@pytest.fixture
def run_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLocks:
    """Let this process act as a worker, with locks of its own."""
    locks = RunLocks(tmp_path)
    monkeypatch.setattr(tasks, "run_locks", locks)
    return locks


def execute_as_a_worker_does(payload: str) -> None:
    task_queue: Queue[Any] = Queue()
    task_queue.put(SignedPackage.loads(payload))
    task_queue.put("STOP")
    results: Queue[Any] = Queue()
    worker(task_queue, results, Value("f", -1))
    assert results.get_nowait()["success"]


@pytest.mark.slow
@pytest.mark.program
def test_it_applies_a_run_and_ends_with_all_its_processes_when_told(stage: WorkerScenario) -> None:
    run = stage.request_run()
    stage.wait_until_applied(run, seconds=60)
    stage.worker.list_members()
    stage.worker.process.send_signal(signal.SIGTERM)
    assert stage.worker.process.wait(60) == 0
    assert stage.worker.find_orphans() == []
    assert not OrmQ.objects.filter(key="chatcore").exists()


@pytest.mark.django_db(transaction=True)
def test_telling_the_queue_of_a_run_stamps_the_run(session: Session) -> None:
    run = CompactionRun.objects.create(session_id=session.pk, trigger="manual", policy="oneclaw")
    assert tasks.send_run(run.pk)
    run.refresh_from_db()
    assert run.enqueued_at is not None
    assert OrmQ.objects.get().args() == (str(run.pk),)


@pytest.mark.django_db(transaction=True)
def test_a_stored_row_is_executed_by_its_path(full: Session, run_locks: RunLocks) -> None:
    run = engine.request_run(full.pk, trigger="manual")
    OrmQ.objects.all().delete()
    async_task(tasks.EXECUTE_TASK, str(run.pk))
    stored_row = OrmQ.objects.get()
    assert stored_row.func() == tasks.EXECUTE_TASK
    execute_as_a_worker_does(stored_row.payload)
    run.refresh_from_db()
    assert run.status == "applied"


@pytest.mark.django_db(transaction=True)
def test_a_worker_locks_the_run_that_it_claims_and_not_the_one_of_its_message(
    full: Session, scripted: ScriptedModel, run_locks: RunLocks
) -> None:
    lock_names: list[str] = []

    def look(_: dict[str, Any]) -> Reply:
        lock_names.extend(lock.name for lock in run_locks.folder.iterdir())
        return Reply(text=SUMMARY)

    scripted.script(look)
    run = engine.request_run(full.pk, trigger="manual")
    assert tasks.execute(str(uuid4())) == "applied"
    assert lock_names == [f"{run.pk}.{os.getpid()}"]
    assert list(run_locks.folder.iterdir()) == []


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_over_is_not_given_back(session: Session) -> None:
    run = CompactionRun.objects.create(
        session_id=session.pk, trigger="manual", policy="oneclaw", status="applied"
    )
    tasks.requeue_run(run.pk)
    assert not OrmQ.objects.exists()


def test_it_needs_at_least_one_worker() -> None:
    with pytest.raises(CommandError, match="--workers"):
        call_command("worker", "--workers", "0")


def test_no_task_is_handed_out_again_while_it_may_still_run() -> None:
    assert int(str(settings.Q_CLUSTER["retry"])) > MAX_RUN_SECONDS
    assert MAX_RUN_SECONDS >= 3 * TIMEOUT_SECONDS  # three calls of the embedded model


def test_a_database_that_is_away_is_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    def look_away() -> None:
        raise OperationalError("connection refused")

    def break_down() -> None:
        raise ValueError("a mistake of ours")

    for _ in range(50):
        assert not cluster.attempt(look_away).is_success
        assert not cluster.attempt(break_down).is_success
    outage, mistake = caplog.records
    assert outage.getMessage() == "the worker could not look_away: connection refused"
    assert not outage.exc_info
    assert mistake.exc_info, "that is nothing to expect"
