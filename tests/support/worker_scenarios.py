"""A conversation to compact, a slow model and a real worker, over one database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django_q.models import OrmQ
from django_q.tasks import async_task

from chatcore.models import ContextRevision, Session
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import SUMMARY, fill_session, list_event_names
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until
from tests.support.worker_processes import Worker, open_database

# In seconds. A summary that is interrupted must take longer than the keeper needs to notice.
SLOW_SUMMARY_SECONDS = 7.0
QUICK_SUMMARY_SECONDS = 0.5  # for every other summary
LEASE_SECONDS = 4


class WorkerScenario:
    """A session, a model and a worker; `overlapping` counts calls at the same time as others."""

    def __init__(self, scripted: ScriptedModel, worker: Worker, session: Session) -> None:
        self.scripted, self.worker, self.session = scripted, worker, session
        self.overlapping = 0
        self.first_call_seconds = QUICK_SUMMARY_SECONDS
        scripted.default = self._summarize

    def _summarize(self, _: dict[str, Any]) -> Reply:
        *earlier, _this = self.scripted.requests
        self.overlapping += any(not request.client_left.is_set() for request in earlier)
        return Reply(
            text=SUMMARY, delay=QUICK_SUMMARY_SECONDS if earlier else self.first_call_seconds
        )

    def request_run(self) -> CompactionRun:
        return engine.request_run(self.session.pk, trigger="manual")

    def start_slow_run(self) -> CompactionRun:
        self.first_call_seconds = SLOW_SUMMARY_SECONDS
        run = self.request_run()
        wait_until(lambda: self.scripted.requests, seconds=60, what="the summary call")
        return run

    def wait_until_applied(self, run: CompactionRun, *, seconds: float = 60) -> float:
        """Wait until a run is applied, and return the seconds that it took.

        The run must have been executed by one worker at a time, and installed once.
        """
        seconds_taken = wait_until(
            lambda: CompactionRun.objects.filter(pk=run.pk).exclude(
                status__in=["queued", "running"]
            ),
            seconds=seconds,
        )
        run.refresh_from_db()
        answered_requests = [
            request for request in self.scripted.requests if not request.client_left.is_set()
        ]
        assert (run.status, run.error) == ("applied", "")
        assert ContextRevision.objects.filter(session=self.session).count() == 1
        assert list_event_names(self.session, "compaction.").count("compaction.applied") == 1
        assert (len(answered_requests), self.overlapping) == (run.provider_calls, 0) == (1, 0)
        assert len(self.scripted.requests) <= run.attempts  # a worker may die before it calls
        return seconds_taken

    def wait_for_the_queue(self, *, seconds: float = 60) -> float:
        """Wait until a message is executed and acknowledged, and return the seconds it took.

        More than one is sent, because one may be lost with a dying cluster.
        """
        task_ids: list[int] = []
        next_one = time.monotonic()

        def one_is_back() -> bool:
            nonlocal next_one
            if time.monotonic() >= next_one:
                next_one = time.monotonic() + 2
                async_task("time.sleep", 0)
                task_ids.append(OrmQ.objects.latest("pk").pk)
            return OrmQ.objects.filter(pk__in=task_ids).count() < len(task_ids)

        return wait_until(one_is_back, seconds=seconds, what="a message back")


@contextmanager
def open_scenario(kind: str, folder: Path, *arguments: str) -> Iterator[WorkerScenario]:
    """Yield a scenario over a database of this kind. No process remains afterwards."""
    with open_database(kind, folder) as url, ScriptedModel() as scripted:
        session = create_session(scripted)
        worker = Worker(url, folder, *arguments)
        try:
            yield WorkerScenario(scripted, worker, session)
        finally:
            worker.stop()
            wait_until(lambda: not worker.find_orphans(), seconds=60, what="no orphans")


def create_session(scripted: ScriptedModel) -> Session:
    """Return a session that is long enough to compact, under a policy with short leases."""
    provider = Provider.objects.create(
        name="scripted",
        protocol=Provider.Protocol.OPENAI,
        base_url=scripted.base_url,
        timeout_seconds=20,
    )
    model = AiModel.objects.create(provider=provider, name="test-model", context_window_size=8192)
    CompactionPolicy.objects.create(
        name="short-leases", overrides={"flow": {"lease_seconds": LEASE_SECONDS}}
    )
    session = Session.objects.create(
        owner=User.objects.create_user("alice"), model=model, policy="short-leases"
    )
    fill_session(session)
    return session
