"""What a model's counts teach: a ratio for its next sessions, and the window of a refusal."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chatcore.models import Session
from compaction.models import ModelRatio
from compaction.runs import engine
from compaction.sessions import calibration, request_size, session_context
from compaction.sessions.calibration import Calibration
from models_registry.models import AiModel
from tests.support.compaction_sessions import fill_session, say, summarize_or_chat
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = "scripted/test-model"


def learned(real: int, estimated: int = 2_000, *, times: int = 1) -> Calibration:
    for _ in range(times):
        calibration.learn_from_response(
            MODEL,
            calibration.load_calibration(MODEL, 8_192),
            real_tokens=real,
            estimate=lambda: estimated,
        )
    return calibration.load_calibration(MODEL, 8_192)


def test_of_a_model_never_asked_nothing_is_known() -> None:
    assert calibration.load_calibration(MODEL, 8_192) == Calibration(
        ratio=1, window=None, samples=0
    )


def test_the_ratio_comes_nearer_with_each_response() -> None:
    assert learned(4_000).ratio == pytest.approx(1.5)
    assert 1.5 < learned(4_000).ratio < 2
    assert learned(4_000, times=20).ratio == pytest.approx(2, abs=0.05)
    assert learned(2_000, times=20).ratio == pytest.approx(1, abs=0.05)


def test_a_short_request_teaches_nothing() -> None:
    assert learned(1_900, estimated=999).samples == 0


@pytest.mark.parametrize("real", [999, 8_001, 200_000])
def test_a_count_that_no_vocabulary_gives_teaches_nothing(real: int) -> None:
    assert learned(real).ratio == 1


def test_a_settled_ratio_is_not_written_for_nothing(django_assert_num_queries: Any) -> None:
    known = learned(2_600, times=40)
    with django_assert_num_queries(0):
        calibration.learn_from_response(MODEL, known, real_tokens=2_600, estimate=lambda: 2_000)


def test_a_window_that_was_told_holds_until_the_registry_s_changes() -> None:
    calibration.learn_refusal_window(MODEL, registered_window=8_192, window=4_096)
    assert calibration.load_calibration(MODEL, 8_192).window == 4_096
    assert calibration.load_calibration(MODEL, 16_384).window is None
    calibration.learn_refusal_window(MODEL, registered_window=8_192, window=None)
    assert calibration.load_calibration(MODEL, 8_192).window == 4_096


def test_a_request_that_went_through_shows_a_told_window_was_wrong() -> None:
    calibration.learn_refusal_window(MODEL, registered_window=8_192, window=4_096)
    assert learned(5_000).window is None


def measured(session: Session) -> int:
    now = session_context.load_session_context(session.pk)
    assert now is not None
    return request_size.measure_next_request(now).tokens


@pytest.fixture
def experienced(model: AiModel) -> None:
    ModelRatio.objects.create(model=MODEL, ratio=1.5, samples=50)


@pytest.mark.usefixtures("experienced")
def test_a_new_session_is_measured_by_what_the_model_has_taught(session: Session) -> None:
    fill_session(session, messages=4, tokens=500)
    with_experience = measured(session)
    ModelRatio.objects.update(ratio=1)
    assert with_experience == pytest.approx(1.5 * measured(session), rel=0.01)


@pytest.mark.usefixtures("experienced")
def test_the_pass_and_the_guard_measure_the_same(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=12, tokens=500)
    assert measured(session) > 6_963  # 6,000 and the tools by characters alone
    run = engine.preview_run(session.pk)
    assert run.tokens_before == pytest.approx(measured(session), rel=0.01)
    assert run.status == "applied"


def test_experience_never_makes_a_context_smaller(session: Session) -> None:
    fill_session(session, messages=4, tokens=500)
    alone = measured(session)
    ModelRatio.objects.create(model=MODEL, ratio=0.6, samples=50)
    assert measured(session) == alone


@pytest.mark.usefixtures("experienced")
def test_a_policy_that_does_without_counts_does_without_experience(session: Session) -> None:
    fill_session(session, messages=4, tokens=500)
    Session.objects.filter(pk=session.pk).update(policy="baseagent")
    with_experience = measured(session)
    ModelRatio.objects.update(ratio=1)
    assert with_experience == measured(session)


def test_a_response_teaches_and_the_next_session_profits(
    session: Session, scripted: ScriptedModel, user: User
) -> None:
    fill_session(session, messages=6, tokens=500)
    scripted.script(Reply(text="Noted.", usage=(6_600, 10)))
    say(session)
    ratio = ModelRatio.objects.get(model=MODEL).ratio
    assert 1.2 < ratio < 1.6
    other = Session.objects.create(owner=user, model=session.model)
    fill_session(other, messages=4, tokens=500)
    assert measured(other) == pytest.approx(ratio * (2_000 + 380), rel=0.1)


def test_what_one_session_is_refused_for_the_next_one_knows(
    session: Session, scripted: ScriptedModel, user: User
) -> None:
    fill_session(session, messages=10, tokens=500)
    scripted.default = summarize_or_chat()
    scripted.script(make_overflow(tokens=6_100, window=4_096))
    assert say(session).status == "completed"
    other = session_context.load_session_context(
        Session.objects.create(owner=user, model=session.model).pk
    )
    assert other is not None
    assert other.budget is not None
    assert other.budget.window == 4_096
    AiModel.objects.filter(name="test-model").update(context_window_size=6_000)
    corrected = session_context.load_session_context(other.facts.session_id)
    assert corrected is not None
    assert corrected.budget is not None
    assert corrected.budget.window == 6_000


def test_a_learned_window_counts_as_known_under_any_policy(
    session: Session,
) -> None:
    AiModel.objects.filter(name="test-model").update(context_window_size=None)
    calibration.learn_refusal_window(MODEL, registered_window=None, window=16_000)
    Session.objects.filter(pk=session.pk).update(policy="neurolink")
    assumed = session_context.load_session_context(session.pk)
    assert assumed is not None
    assert assumed.budget is not None
    assert assumed.budget.window == 16_000
    Session.objects.filter(pk=session.pk).update(policy="oneclaw")
    learned = session_context.load_session_context(session.pk)
    assert learned is not None
    assert learned.budget is not None
    assert learned.budget.window == 16_000
