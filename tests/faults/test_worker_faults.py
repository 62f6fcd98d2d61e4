"""Kill or stop each process of the worker: no run is lost or executed twice at the same time."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from compaction.models import CompactionRun
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until
from tests.support.worker_processes import KINDS, Worker
from tests.support.worker_scenarios import WorkerScenario, open_scenario

pytestmark = [pytest.mark.faults, pytest.mark.lasting]

Fault = Callable[[Worker], None]

AT_REST: dict[str, Fault] = {
    "free worker with the queue's lock": lambda worker: worker.kill(worker.find_lock_holder()),
    "monitor": lambda worker: worker.kill(worker.find("monitor")),
    "pusher": lambda worker: worker.kill(worker.find("pusher")),
    "sentinel": lambda worker: worker.kill(worker.find_sentinel()),
    "pusher, stopped": lambda worker: worker.kill(worker.find("pusher"), signal.SIGSTOP),
    "free worker, stopped": lambda worker: worker.kill(worker.find_lock_holder(), signal.SIGSTOP),
}
AT_WORK: dict[str, Fault] = {
    "busy worker": lambda worker: worker.kill(worker.list_workers("processing")[0]),
    "busy worker, stopped": lambda worker: worker.kill(
        worker.list_workers("processing")[0], signal.SIGSTOP
    ),
    "monitor": lambda worker: worker.kill(worker.find("monitor")),
    "sentinel": lambda worker: worker.kill(worker.find_sentinel()),
    "sentinel, stopped": lambda worker: worker.kill(worker.find_sentinel(), signal.SIGSTOP),
}
WHOLE_COMMAND: dict[str, Fault] = {
    "kill -9 of the command": lambda worker: worker.kill(worker.process.pid),
    "kill -9 of its process group": lambda worker: os.killpg(worker.process.pid, signal.SIGKILL),
    "TERM to its process group": lambda worker: os.killpg(worker.process.pid, signal.SIGTERM),
    "TERM to the command": lambda worker: worker.kill(worker.process.pid, signal.SIGTERM),
}


@pytest.fixture
def stage(
    request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> Iterator[WorkerScenario]:
    with (
        django_db_blocker.unblock(),
        open_scenario("sqlite", tmp_path, "--patience", "4") as worker_scene,
    ):
        yield worker_scene


@pytest.mark.slow
@pytest.mark.parametrize("victim", AT_REST)
def test_a_run_asked_for_after_a_death_at_rest_is_applied_once(
    stage: WorkerScenario, victim: str
) -> None:
    stage.wait_for_the_queue()
    AT_REST[victim](stage.worker)
    run = stage.request_run()
    stage.wait_until_applied(run)
    if victim != "monitor":  # a dead one may hold the lock of the results; its messages stay
        stage.wait_for_the_queue()


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(victim, marks=() if victim == "busy worker" else pytest.mark.slow)
        for victim in AT_WORK
    ],
)
def test_a_run_whose_cluster_is_hurt_at_work_is_applied_once(
    stage: WorkerScenario, victim: str
) -> None:
    run = stage.start_slow_run()
    AT_WORK[victim](stage.worker)
    stage.wait_until_applied(run)
    if victim != "monitor":
        stage.wait_for_the_queue()
    assert run.deaths == (victim == "busy worker"), "a death that was not its own worker's"


@pytest.mark.slow
@pytest.mark.parametrize("how", WHOLE_COMMAND)
def test_a_worker_that_is_started_again_goes_on_with_the_run_it_left(
    stage: WorkerScenario, how: str
) -> None:
    run = stage.start_slow_run()
    WHOLE_COMMAND[how](stage.worker)
    stage.worker.process.wait(60)
    wait_until(lambda: not stage.worker.find_orphans(), seconds=60, what="no orphans")
    stage.worker.start()
    stage.wait_for_the_queue()
    stage.wait_until_applied(run)


@pytest.mark.slow
def test_a_run_that_kills_every_worker_ends_as_failed(stage: WorkerScenario) -> None:
    run = stage.start_slow_run()
    stage.scripted.default = Reply(delay=60)

    def wait_for_calls(count: int) -> None:
        wait_until(lambda: len(stage.scripted.requests) == count, seconds=60, what="the next call")

    for call in range(1, 4):
        wait_for_calls(call)
        AT_WORK["busy worker"](stage.worker)
    wait_until(
        lambda: CompactionRun.objects.filter(pk=run.pk, status__in=["failed", "fell_back"]),
        seconds=60,
        what="the end",
    )
    stage.wait_for_the_queue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[-1:])
def test_as_shipped_a_hung_cluster_is_replaced_within_a_minute(
    kind: str, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), open_scenario(kind, tmp_path) as stage:
        stage.wait_for_the_queue()
        stage.worker.kill(stage.worker.find_lock_holder())
        run = stage.request_run()
        stage.wait_until_applied(run, seconds=60)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("kind", KINDS[1:])
def test_on_postgresql_a_busy_workers_run_is_applied_once(
    kind: str, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), open_scenario(kind, tmp_path, "--patience", "4") as stage:
        run = stage.start_slow_run()
        stage.worker.kill(stage.worker.list_workers("processing")[0])
        stage.wait_until_applied(run)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("kind", KINDS[1:])
def test_on_postgresql_it_outlives_the_loss_of_all_its_connections(
    kind: str, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), open_scenario(kind, tmp_path) as stage:
        stage.wait_for_the_queue()
        with connection.cursor() as cursor:
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            cursor.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        stage.wait_until_applied(stage.request_run())
        assert stage.worker.process.poll() is None
