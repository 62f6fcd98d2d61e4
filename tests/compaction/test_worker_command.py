"""`chatcore worker` when nothing goes wrong: it runs what is asked for, lets canaries overtake, and ends when told."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django_q.models import OrmQ
from django_q.tasks import async_task
from pytest_django import DjangoDbBlocker

from chatcore.local_model.register import TIMEOUT_SECONDS
from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.worker import tasks
from compaction.worker.cluster import LaneBroker
from compaction.worker.tasks import MAX_RUN_SECONDS
from tests.support.worker_scenes import Scene, scene


@pytest.fixture
def stage(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Scene]:
    with django_db_blocker.unblock(), scene("sqlite", tmp_path) as made:
        yield made


def test_it_applies_a_run_and_ends_with_all_its_processes_when_told(stage: Scene) -> None:
    run = stage.ask()
    stage.applied(run, seconds=30)
    stage.worker.members()
    stage.worker.process.send_signal(signal.SIGTERM)
    assert stage.worker.process.wait(15) == 0
    assert stage.worker.orphans() == []
    assert not OrmQ.objects.filter(key="chatcore").exists()


@pytest.mark.django_db(transaction=True)
def test_a_canary_overtakes_the_backlog_and_no_other_cluster_takes_it() -> None:
    for number in range(3):
        async_task("compaction.worker.tasks.canary", str(number))
    here, elsewhere = LaneBroker(), LaneBroker()
    elsewhere.lane += "-elsewhere"
    here.send_canary()
    canary = OrmQ.objects.get(key=here.lane)
    assert elsewhere.dequeue() != [(canary.pk, canary.payload)]
    assert here.dequeue() == [(canary.pk, canary.payload)]
    assert here.is_canary_out()
    here.acknowledge(canary.pk)
    assert not here.is_canary_out()


@pytest.mark.django_db(transaction=True)
def test_a_message_is_taken_by_one_cluster_and_in_the_order_it_came() -> None:
    sent = [async_task("compaction.worker.tasks.canary", str(number)) for number in range(3)]
    first, second = LaneBroker(), LaneBroker()
    taken = [row for queue in (first, second, first) for row in queue.dequeue() or []]
    assert [OrmQ.objects.get(pk=pk).task_id() for pk, _ in taken] == sent
    assert second.dequeue() is None


@pytest.mark.django_db(transaction=True)
def test_telling_the_queue_of_a_run_stamps_the_run(session: Session) -> None:
    run = CompactionRun.objects.create(session_id=session.pk, trigger="manual", policy="oneclaw")
    tasks.enqueue(run.pk)
    run.refresh_from_db()
    assert run.enqueued_at is not None
    assert OrmQ.objects.get().args() == (str(run.pk),)


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
