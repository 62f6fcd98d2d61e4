"""Two real worker commands on PostgreSQL: places stay busy, and nobody waits behind a crowd."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from chatcore.models import Session
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import SUMMARY, fill_session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until
from tests.support.worker_processes import KINDS, Worker, open_database

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif("postgres" not in KINDS, reason="PostgreSQL does not answer."),
]
CROWD = 100  # runs of one owner
PLACES = 4  # of both commands together


@dataclass
class Stage:
    """A model whose summaries take a third of a second, in a database of its own."""

    model: AiModel
    database_url: str
    folder: Path


@pytest.fixture
def stage(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Stage]:
    with (
        django_db_blocker.unblock(),
        open_database("postgres", tmp_path) as url,
        ScriptedModel() as scripted,
    ):
        scripted.default = Reply(text=SUMMARY, delay=0.3)
        CompactionPolicy.objects.create(name="many", overrides={"flow": {"workers": 8}})
        provider = Provider.objects.create(
            name="scripted", protocol="openai", base_url=scripted.base_url
        )
        model = AiModel.objects.create(
            provider=provider, name="test-model", context_window_size=8192
        )
        yield Stage(model, url, tmp_path)


def request_run(owner: User, model: AiModel) -> CompactionRun:
    session = Session.objects.create(owner=owner, model=model, policy="many")
    fill_session(session)
    return engine.request_run(session.pk, trigger="manual")


def count(status: str) -> int:
    return CompactionRun.objects.filter(status=status).count()


def work_through(stage: Stage) -> tuple[list[int], list[CompactionRun]]:
    """Let two commands execute a crowd's runs, and nine other people's that come later.

    Return how many were executed at a time while more than 20 waited, and the nine.
    """
    crowd = User.objects.create(username="crowd")
    for _ in range(CROWD):
        request_run(crowd, stage.model)
    workers = []
    for name in ("one", "two"):
        folder = stage.folder / name
        folder.mkdir()
        workers.append(Worker(stage.database_url, folder, "--workers", str(PLACES // 2)))
    busy: list[int] = []
    late: list[CompactionRun] = []

    def watch_to_the_end() -> bool:
        waiting = count("queued")
        if waiting > 20:
            busy.append(count("running"))
        if not late and waiting < CROWD - 20:
            people = [User.objects.create(username=f"person{n}") for n in range(9)]
            late.extend(request_run(person, stage.model) for person in people)
        return not waiting and not count("running")

    try:
        wait_until(watch_to_the_end, seconds=300, what="the end of all runs")
    finally:
        for worker in workers:
            worker.stop()
    assert count("applied") == CROWD + 9
    return busy, late


def test_a_crowd_keeps_all_places_busy_and_nobody_waits_behind_it(
    stage: Stage,
) -> None:
    busy, late = work_through(stage)
    assert max(busy) == PLACES
    assert sum(busy) / len(busy) > 0.75 * PLACES
    order = list(CompactionRun.objects.order_by("started_at").values_list("pk", flat=True))
    places = [order.index(run.pk) for run in late]
    # Beside each of the nine one of the crowd's may begin, as long as it has fewer at work.
    assert max(places) - min(places) < 2 * len(late) + PLACES
    assert set(CompactionRun.objects.values_list("attempts", flat=True)) == {1}


def test_a_provider_with_one_place_is_asked_for_one_summary_at_a_time(
    stage: Stage,
) -> None:
    Provider.objects.filter(pk=stage.model.provider_id).update(options={"compaction_places": 1})
    busy, _ = work_through(stage)
    assert max(busy) == 1
