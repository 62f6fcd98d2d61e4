"""A slow model gets the time that it needs by its measured speed, and no call is made in vain."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session, SessionEvent
from compaction.models import CompactionRun, ModelRatio
from compaction.runs import engine
from compaction.summaries.pace import (
    MAX_CALL_SECONDS,
    CallTimes,
    Pace,
    Speed,
    learn_speed,
    learn_timeout,
    load_speed,
)
from tests.support.compaction_sessions import SUMMARY, fill_session, list_summary_calls
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

MODEL = "scripted/test-model"
db = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


def compact(session: Session, **summary: object) -> CompactionRun:
    return engine.compact_now(session.pk, trigger="manual", overrides={"summary": summary})


@committed
def test_a_summary_tells_how_fast_its_model_reads_and_writes(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    scripted.default = Reply(text=SUMMARY, delay=0.2, chunk_delay=0.01, usage=(5_000, 40))
    assert compact(session).status == "applied"
    speed = load_speed(MODEL)
    assert speed
    assert 0 < speed.prompt <= 5_000 / 0.2
    assert 0 < speed.answer <= 40 / 0.1


@committed
def test_a_model_that_was_measured_as_slow_gets_more_time_than_the_policy_gives(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    ModelRatio.objects.create(model=MODEL, prompt_speed=1_000, answer_speed=1_000)
    scripted.default = Reply(text=SUMMARY, delay=0.7)
    assert compact(session, timeout=0.3, retries=0).status == "applied"


@committed
def test_a_call_that_did_not_end_is_not_repeated_as_it_was(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    scripted.default = Reply(hang=True)
    assert compact(session, timeout=0.3, retries=2, backoff=[0]).status != "applied"
    sizes = [len(str(call.json["messages"])) for call in list_summary_calls(scripted)]
    assert len(sizes) == 3
    assert sizes[0] > 1.5 * sizes[1] > 2 * sizes[2]
    assert load_speed(MODEL)


@committed
def test_no_call_is_made_that_could_not_end(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session)
    ModelRatio.objects.create(model=MODEL, prompt_speed=0.5, answer_speed=0.25)
    run = compact(session)
    assert run.status != "applied"
    assert list_summary_calls(scripted) == []
    reason = "The model reads 0.5 and writes 0.25 tokens a second: no summary would be finished"
    assert reason in f"{run.reason}{run.error}"


@committed
def test_run_and_event_say_how_long_it_should_take(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    fill_session(session)
    ModelRatio.objects.create(model=MODEL, prompt_speed=100, answer_speed=50)
    scripted.default = Reply(text=SUMMARY)
    run = compact(session)
    shown = api.get(f"/api/v1/compactions/{run.pk}").json()
    # 4,000 to 6,000 tokens to read, and a few hundred to write.
    assert 40 <= shown["expected_seconds"] <= 120
    started = SessionEvent.objects.get(session=session, name="compaction.started")
    assert started.data["expected_seconds"] == shown["expected_seconds"]


@db
def test_a_model_that_was_never_measured_gets_what_the_policy_gives() -> None:
    pace = Pace(MODEL, floor=240)
    assert pace.choose_deadline(1_000_000, 1_000) == 240
    assert pace.limit_prompt_tokens(1_000) is None
    assert pace.estimate_seconds(1_000, 1_000) is None


@db
def test_no_deadline_is_longer_than_a_run_can_afford() -> None:
    ModelRatio.objects.create(model=MODEL, prompt_speed=10, answer_speed=10)
    pace = Pace(MODEL, floor=60)
    assert pace.choose_deadline(1_000, 1_000) == 400
    assert pace.choose_deadline(1_000_000, 1_000) == MAX_CALL_SECONDS
    # The answer takes 100 seconds, which leaves 800 for the prompt.
    assert pace.limit_prompt_tokens(1_000) == 8_000


@db
def test_recent_calls_count_more_and_short_ones_not_at_all() -> None:
    def learn(prompt_tokens: int, seconds: float) -> None:
        times = CallTimes(
            prompt_tokens=prompt_tokens,
            prompt_seconds=seconds,
            answer_tokens=100,
            answer_seconds=seconds,
        )
        learn_speed(MODEL, times)

    learn(1_000, 10)
    assert load_speed(MODEL) == Speed(prompt=100, answer=10)
    learn(100, 0.001)
    assert load_speed(MODEL) == Speed(prompt=100, answer=10)
    learn(1_000, 5)
    assert load_speed(MODEL) == Speed(prompt=140, answer=14)


@db
def test_a_stopped_call_never_makes_a_model_faster() -> None:
    ModelRatio.objects.create(model=MODEL, prompt_speed=10, answer_speed=10)
    learn_timeout(MODEL, prompt_tokens=1_000, answer_tokens=1_000, seconds=20)
    assert load_speed(MODEL) == Speed(prompt=10, answer=10)
    learn_timeout(MODEL, prompt_tokens=1_000, answer_tokens=1_000, seconds=400)
    assert load_speed(MODEL) == Speed(prompt=5, answer=5)
