"""Runs whose database stumbled, whose context kept changing, or whose lease says nothing."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import OrmQ

from chatcore.context import revisions
from chatcore.models import ContextRevision, Session
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine, leases, lifecycle, tasks
from tests.support.compaction_sessions import (
    SUMMARY,
    list_event_names,
    list_summary_calls,
    run_queued_compactions,
    use_policy,
)
from tests.support.crash_points import CrashPoint, Moment, watch_commits
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(minutes=5)


def change_context(session: Session) -> None:
    version = Session.objects.values_list("context_version", flat=True).get(pk=session.pk)
    revisions.install_revision(
        session.pk,
        base_version=version,
        summary=f"Edit {version}.",
        boundary_seq=3 + version,
        source="edit",
    )


class TestADatabaseThatStumbles:
    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize(
        "point",
        ["compaction.runs.lifecycle.apply_run", "compaction.summaries.call_log._store_once"],
    )
    def test_a_paid_summary_is_installed_as_soon_as_it_answers(
        self, full: Session, scripted: ScriptedModel, point: str, moment: Moment
    ) -> None:
        run = engine.request_run(full.pk, trigger="after_response")
        fault = CrashPoint(point, moment, "lose the connection")
        with watch_commits(fault.visit):
            engine.execute_run(run.pk)
        assert fault.was_visited
        run.refresh_from_db()
        assert (run.status, run.attempts, run.deaths) == ("applied", 1, 0)
        assert len(list_summary_calls(scripted)) == run.provider_calls == 1
        assert ContextRevision.objects.filter(session=full).count() == 1
        assert list_event_names(full, "compaction.") == ["compaction.started", "compaction.applied"]

    def test_a_run_without_a_summary_announces_its_start_when_it_is_installed_again(
        self, full: Session, scripted: ScriptedModel
    ) -> None:
        use_policy(full, stages=("slide_window",))
        run = engine.request_run(full.pk, trigger="after_response")
        fault = CrashPoint("compaction.runs.lifecycle.apply_run", "before", "lose the connection")
        with watch_commits(fault.visit):
            engine.execute_run(run.pk)
        assert fault.was_visited
        assert not list_summary_calls(scripted)
        assert list_event_names(full, "compaction.") == ["compaction.started", "compaction.applied"]

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_run_that_is_skipped_ends_once(self, session: Session, moment: Moment) -> None:
        run = engine.request_run(session.pk, trigger="manual")
        fault = CrashPoint("compaction.runs.lifecycle.skip_run", moment, "lose the connection")
        with watch_commits(fault.visit):
            engine.execute_run(run.pk)
        assert fault.was_visited
        assert list_event_names(session, "compaction.") == ["compaction.skipped"]

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_anywhere_else_the_run_is_given_back_at_once(
        self, full: Session, scripted: ScriptedModel, moment: Moment
    ) -> None:
        run = engine.request_run(full.pk, trigger="after_response")
        OrmQ.objects.all().delete()
        fault = CrashPoint(
            "compaction.runs.lifecycle.announce_start", moment, "lose the connection"
        )
        with watch_commits(fault.visit), pytest.raises(OperationalError):
            engine.execute_run(run.pk)
        wait_until(OrmQ.objects.exists)
        given_back_runs = CompactionRun.objects.filter(status="queued", lease_until=None)
        wait_until(given_back_runs.filter(pk=run.pk).exists, what="the run to be given back")
        run_queued_compactions()
        run.refresh_from_db()
        assert (run.status, run.attempts, run.deaths) == ("applied", 2, 0)
        assert len(list_summary_calls(scripted)) == 1

    def test_an_error_of_our_own_ends_the_run(self, full: Session) -> None:
        run = engine.request_run(full.pk, trigger="after_response")
        fault = CrashPoint("compaction.runs.lifecycle.apply_run", "before", "refuse the statement")
        with watch_commits(fault.visit):
            engine.execute_run(run.pk)
        run.refresh_from_db()
        assert (run.status, run.attempts) == ("failed", 1)
        assert "IntegrityError" in run.error


class TestAContextThatKeepsChanging:
    def test_its_run_is_tried_again_later(self, full: Session, scripted: ScriptedModel) -> None:
        def change(_: dict[str, Any]) -> Reply:
            change_context(full)
            connection.close()
            return Reply(text="A summary of what is no longer so.", usage=(100, 10))

        run = engine.request_run(full.pk, trigger="manual")
        scripted.script(change, change)
        engine.execute_run(run.pk)
        run.refresh_from_db()
        assert (run.status, run.deaths) == ("queued", 0)
        assert (run.provider_calls, run.input_tokens) == (2, 200)
        assert engine.resend_lost_runs() == 0, "not at once"
        CompactionRun.objects.update(
            enqueued_at=timezone.now() - LONG_AGO, created_at=timezone.now() - LONG_AGO
        )
        assert engine.resend_lost_runs() == 1
        run_queued_compactions()
        run.refresh_from_db()
        full.refresh_from_db()
        assert run.status == "applied"
        assert full.compacted_summary == f"Edit 1.\n{SUMMARY}", "a user's own sentence stays"
        assert list_event_names(full, "compaction.") == ["compaction.started", "compaction.applied"]


class TestLeases:
    def test_one_that_is_too_far_ahead_is_over(self, full: Session) -> None:
        run = engine.request_run(full.pk, trigger="manual")
        leases.claim_run(run.pk)
        CompactionRun.objects.update(enqueued_at=None)
        assert engine.resend_lost_runs() == 0
        CompactionRun.objects.update(lease_until=timezone.now() + timedelta(days=3))
        assert engine.resend_lost_runs() == 1
        taken_over = engine.execute_run(run.pk)
        assert taken_over is not None
        assert (taken_over.status, taken_over.deaths) == ("applied", 1)

    def test_what_was_sent_by_a_wrong_clock_is_sent_again(self, full: Session) -> None:
        engine.request_run(full.pk, trigger="manual")
        ahead = timezone.now() + timedelta(days=3)
        CompactionRun.objects.update(enqueued_at=ahead, created_at=ahead)
        assert engine.resend_lost_runs() == 1

    def test_they_are_measured_by_the_clock_of_the_database(self, full: Session) -> None:
        run = engine.request_run(full.pk, trigger="manual")
        with time_machine.travel(timezone.now() + timedelta(days=1)):
            claimed_run = leases.claim_run(run.pk)
            assert leases.claim_run(run.pk) is None
        assert claimed_run is not None
        assert claimed_run.lease_until is not None
        assert claimed_run.lease_until < timezone.now() + timedelta(hours=1)

    def test_so_are_the_waits_after_a_failure(self, full: Session, scripted: ScriptedModel) -> None:
        if connection.vendor == "sqlite":
            pytest.skip("SQLite has the clock of its machine.")
        run = engine.request_run(full.pk, trigger="after_response")
        claimed_run = leases.claim_run(run.pk)
        assert claimed_run is not None
        with time_machine.travel(timezone.now() + timedelta(days=1)):  # this machine's alone
            lifecycle.fail_run(claimed_run, "The model is away.", None)
            assert SessionState.objects.get().is_waiting
        state = SessionState.objects.get()
        assert state.is_waiting
        assert state.not_before is not None
        assert state.not_before < timezone.now() + timedelta(hours=1)
        with time_machine.travel(timezone.now() - timedelta(days=1)):
            SessionState.objects.update(not_before=Now())
            assert not SessionState.objects.get().is_waiting


class TestDeaths:
    def test_that_of_its_own_worker_is_counted(self, full: Session) -> None:
        run = engine.request_run(full.pk, trigger="manual")
        for deaths in range(3):
            claimed_run = leases.claim_run(run.pk)
            assert claimed_run is not None
            assert claimed_run.deaths == deaths
            assert not leases.has_exhausted_attempts(claimed_run)
            tasks.requeue_run(run.pk)
        ended_run = engine.execute_run(run.pk)
        assert ended_run is not None
        assert (ended_run.status, ended_run.error) == ("fell_back", "Its workers died 3 times.")

    def test_that_of_a_worker_that_was_killed_with_its_cluster_is_not(self, full: Session) -> None:
        run = engine.request_run(full.pk, trigger="manual")
        for _ in range(5):
            assert leases.claim_run(run.pk)
            tasks.requeue_run(run.pk, is_innocent=True)
        ended_run = engine.execute_run(run.pk)
        assert ended_run is not None
        assert (ended_run.status, ended_run.attempts, ended_run.deaths) == ("applied", 6, 0)

    def test_a_run_that_is_given_back_for_ever_ends(self, full: Session) -> None:
        run = engine.request_run(full.pk, trigger="manual")
        CompactionRun.objects.update(attempts=leases.MAX_ATTEMPTS)
        ended_run = engine.execute_run(run.pk)
        assert ended_run is not None
        assert (ended_run.status, ended_run.error) == ("fell_back", "It was begun 20 times.")
