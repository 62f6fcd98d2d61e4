"""Whose run is next: by turns of the owners, within the places of policies and providers."""

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ

from chatcore.models import Session
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine, leases, tasks
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import SUMMARY, fill_session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wide(session: Session) -> Session:
    """The session, under a policy of which many runs may be executed at once."""
    CompactionPolicy.objects.create(name="wide", overrides={"flow": {"workers": 100}})
    Session.objects.filter(pk=session.pk).update(policy="wide")
    session.refresh_from_db()
    return session


def request_runs(template: Session, owner: str, count: int, **facts: Any) -> list[CompactionRun]:
    """Request runs for so many sessions of an owner, one after another."""
    user, _ = User.objects.get_or_create(username=owner)
    facts = {"model": template.model, "policy": template.policy} | facts
    sessions = [Session.objects.create(owner=user, **facts) for _ in range(count)]
    return [engine.request_run(session.pk, trigger="manual") for session in sessions]


def claim_next() -> CompactionRun | None:
    return leases.claim_next_run(lambda _: None)


def name_owner(run: CompactionRun | None) -> str:
    assert run is not None
    assert run.owner is not None
    return run.owner.get_username()


def test_a_run_knows_its_owner_its_provider_and_its_policys_places(wide: Session) -> None:
    (run,) = request_runs(wide, "bob", 1)
    assert wide.model is not None
    assert (name_owner(run), run.provider, run.places) == ("bob", wide.model.provider.name, 100)


@pytest.mark.slow
@pytest.mark.heavy
def test_nobody_stands_behind_the_three_hundred_runs_of_one_owner(wide: Session) -> None:
    request_runs(wide, "crowd", 300)
    for number in range(9):
        request_runs(wide, f"single-{number}", 1)
    for _ in range(2):
        leases.claim_next_run(lambda _: None)
    served = [name_owner(claim_next()) for _ in range(8)]
    assert served == [f"single-{number}" for number in range(1, 9)], "each before a second of crowd"
    assert [name_owner(claim_next()) for _ in range(3)] == ["crowd"] * 3


def test_an_owner_with_fewer_runs_being_executed_comes_first(wide: Session) -> None:
    request_runs(wide, "bob", 4)
    assert [name_owner(claim_next()) for _ in range(2)] == ["bob", "bob"]
    (run,) = request_runs(wide, "carol", 1)
    assert claim_next() == run
    request_runs(wide, "carol", 3)
    assert name_owner(claim_next()) == "carol"
    # Now both have two; bob was served longer ago.
    assert name_owner(claim_next()) == "bob"


def test_owners_take_turns_even_if_one_always_has_a_new_run(wide: Session) -> None:
    request_runs(wide, "bob", 3)
    served = []
    for _ in range(3):
        request_runs(wide, "carol", 1)
        for _ in range(2):
            run = claim_next()
            served.append(name_owner(run))
            assert run is not None
            CompactionRun.objects.filter(pk=run.pk).update(status="skipped")
    assert Counter(served) == {"bob": 3, "carol": 3}


def test_of_one_owner_the_oldest_run_is_next_whatever_its_policy(wide: Session) -> None:
    runs = [
        run
        for policy in ("lota", "wide", "lota", "wide")
        for run in request_runs(wide, "bob", 1, policy=policy)
    ]
    assert [claim_next() for _ in runs] == runs


def test_claims_at_once_never_get_the_same_run_and_get_them_all(wide: Session) -> None:
    for owner in ("bob", "carol"):
        request_runs(wide, owner, 15)
    claimed: list[CompactionRun] = []

    def claim() -> None:
        try:
            while run := claim_next():
                claimed.append(run)
        finally:
            connection.close()

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({run.pk for run in claimed}) == len(claimed) == 30
    assert {run.attempts for run in claimed} == {1}


class TestPlacesOfAProvider:
    @pytest.fixture
    def other_model(self, wide: Session) -> AiModel:
        """A model of another provider; the first one's has a single place."""
        Provider.objects.update(options={"compaction_places": 1})
        provider = Provider.objects.create(name="elsewhere", protocol="openai")
        return AiModel.objects.create(provider=provider, name="m", context_window_size=8192)

    def test_a_run_whose_provider_is_full_is_passed_over(
        self, wide: Session, other_model: AiModel
    ) -> None:
        first, second = request_runs(wide, "bob", 2)
        others = request_runs(wide, "bob", 2, model=other_model)
        assert [claim_next() for _ in range(4)] == [first, *others, None]
        assert leases.claim_run(second.pk, obey_limits=True) is None
        CompactionRun.objects.filter(pk=first.pk).update(status="skipped")
        assert claim_next() == second

    def test_that_of_the_model_counts_that_writes_the_summary(
        self, wide: Session, other_model: AiModel
    ) -> None:
        CompactionPolicy.objects.create(
            name="named", overrides={"summary": {"model": "elsewhere/m"}}
        )
        assert wide.model is not None
        (named,) = request_runs(wide, "bob", 1, policy="named")
        assert named.provider == "elsewhere"
        AiModel.objects.filter(name=wide.model.name).update(summary_model=other_model)
        (registered,) = request_runs(wide, "bob", 1)
        assert registered.provider == "elsewhere"

    def test_the_end_of_a_run_wakes_a_worker_for_each_kind_that_may_have_waited(
        self, wide: Session, other_model: AiModel
    ) -> None:
        CompactionPolicy.objects.create(name="single", overrides={"flow": {"workers": 1}})
        first, _ = request_runs(wide, "bob", 2, policy="single")
        request_runs(wide, "carol", 1)
        request_runs(wide, "dora", 1, policy="single", model=other_model)
        assert claim_next() == first
        assert claim_next() is None, "the policy has no place left, or else the provider"
        OrmQ.objects.all().delete()
        leases.give_back(first.pk)
        assert engine.execute_run(first.pk)
        assert OrmQ.objects.count() == 2

    def test_a_run_that_is_stopped_frees_its_place(
        self, wide: Session, other_model: AiModel
    ) -> None:
        request_runs(wide, "bob", 2)
        run = claim_next()
        OrmQ.objects.all().delete()
        assert run is not None
        assert engine.cancel_run(run)
        assert OrmQ.objects.count() == 1
        assert claim_next()


class TestNobodyWaitsForEver:
    def test_a_message_that_was_lost_is_sent_again_by_the_sweep(self, wide: Session) -> None:
        (run,) = request_runs(wide, "bob", 1)
        OrmQ.objects.all().delete()
        long_ago = timezone.now() - timedelta(minutes=5)
        CompactionRun.objects.update(created_at=long_ago, enqueued_at=long_ago)
        assert engine.resend_lost_runs() == 1
        assert OrmQ.objects.count() == 1
        assert claim_next() == run

    def test_a_run_of_an_earlier_release_has_its_turn(self, wide: Session) -> None:
        runs = request_runs(wide, "bob", 2)
        CompactionRun.objects.update(owner=None, provider="")
        assert engine.resend_waiting_runs() == 2
        assert [claim_next() for _ in range(3)] == [*runs, None]

    def test_a_run_that_takes_other_options_waits_for_the_places_of_those(
        self, wide: Session
    ) -> None:
        user = wide.owner
        session = Session.objects.create(owner=user, model=wide.model, policy="lota")
        automatic = engine.request_run(session.pk, trigger="after_response")
        manual = engine.request_run(session.pk, trigger="manual", policy="wide")
        assert (manual.pk, manual.places) == (automatic.pk, 100)
        assert claim_next() == manual
        assert claim_next() is None

    def test_what_others_claimed_is_passed_over(self, wide: Session) -> None:
        *claimed, waiting = request_runs(wide, "bob", 3)
        for run in claimed:
            assert leases.claim_run(run.pk)
        assert [claim_next() for _ in range(2)] == [waiting, None]

    @pytest.mark.slow
    def test_a_crowd_sends_no_more_messages_than_are_of_use(self, wide: Session) -> None:
        request_runs(wide, "bob", tasks.MAX_MESSAGES + 10)
        assert OrmQ.objects.count() == tasks.MAX_MESSAGES
        assert engine.resend_waiting_runs() == engine.RESENT_RUNS
        assert OrmQ.objects.count() == tasks.MAX_MESSAGES


def test_a_message_wakes_a_worker_for_the_run_whose_turn_it_is(
    wide: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text=SUMMARY)
    fill_session(wide)
    first = engine.request_run(wide.pk, trigger="manual")
    (second,) = request_runs(wide, "bob", 1)
    assert tasks.execute(str(second.pk)) == "applied"
    first.refresh_from_db()
    assert first.status == "applied"
