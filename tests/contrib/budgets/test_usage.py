"""What calls used and cost is recorded as they end, summed exactly, and held to budgets."""

import csv
import io
import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from openai import APIStatusError
from rest_framework.test import APIClient

from chatcore.contrib.budgets import limits, sums
from chatcore.contrib.budgets.models import Budget, UsageSum
from chatcore.models import Message, Session
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.openai_client import HELLO, MODEL, create_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

PRICES = {
    "input_price": Decimal("2.5"),
    "cached_input_price": Decimal("0.25"),
    "output_price": Decimal("10"),
}


@pytest.fixture
def priced(model: AiModel) -> AiModel:
    AiModel.objects.filter(pk=model.pk).update(**PRICES)
    model.refresh_from_db()
    return model


def say(api: APIClient, session: Session, text: str = "Hi") -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": text})


def read_usage(api: APIClient, **parameters: str) -> Any:
    response = api.get("/api/v1/usage", parameters)
    assert response.status_code == 200, response.json()
    return response.json()


def test_an_answer_costs_what_its_tokens_cost_by_the_prices_of_that_time(
    api: APIClient, session: Session, priced: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello.", usage=(1_000, 100, 600)))
    answer = say(api, session).json()["assistant_message"]
    # 400 plain, 600 from the cache and 100 out
    assert Decimal(str(answer["cost"])) == Decimal("0.00215")
    AiModel.objects.update(input_price=500)
    usage = read_usage(api, by="model")
    assert usage["total"]["cost"] == pytest.approx(0.00215, abs=1e-12)
    assert usage["total"]["cache_saving"] == pytest.approx(600 * 2.25 / 1e6, abs=1e-12)
    assert [row["key"] for row in usage["rows"]] == ["scripted/test-model"]


def test_a_call_without_a_price_is_counted_as_of_unknown_cost(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello.", usage=(1_000, 100)))
    assert say(api, session).json()["assistant_message"]["cost"] is None
    total = read_usage(api)["total"]
    assert (total["calls"], total["unpriced_calls"], total["input_tokens"]) == (1, 1, 1_000)


def test_a_long_request_has_the_prices_of_its_tier(
    api: APIClient, session: Session, priced: AiModel, scripted: ScriptedModel
) -> None:
    tiers = [{"above": 2_000, "input": "5", "output": "15"}, {"above": 4_000, "input": "7"}]
    AiModel.objects.update(price_tiers=tiers)
    replies = [Reply(text="One.", usage=(tokens, 100)) for tokens in (2_000, 2_001, 4_001)]
    scripted.script(*replies)
    costs = [say(api, session).json()["assistant_message"]["cost"] for _ in replies]
    assert costs == pytest.approx([0.006, 0.011505, 0.029507], abs=1e-9)


def test_a_summary_and_what_it_spares_are_in_the_sums(
    api: APIClient, full: Session, priced: AiModel, scripted: ScriptedModel
) -> None:
    run = api.post(f"/api/v1/sessions/{full.pk}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run
    say(api, full, "And now?")
    usage = read_usage(api, by="purpose")
    costs = {row["key"]: row["cost"] for row in usage["rows"]}
    assert costs["summary"] == pytest.approx(run["cost"], abs=1e-6)
    assert set(costs) == {"answer", "summary"}
    answers = UsageSum.objects.get(purpose="answer")
    before = Message.objects.filter(session=full, seq__lt=run["boundary_after"])
    estimated = sum(before.values_list("token_estimate", flat=True))
    assert 0 < answers.spared_tokens <= estimated
    # Only what the window would have taken would have been paid for.
    question = Message.objects.filter(session=full, role="assistant").latest("seq")
    space = 8_192 - (question.token_count_input or 0)
    price = PRICES["input_price"] / 1_000_000
    assert usage["total"]["summary_saving"] == pytest.approx(
        float(min(answers.spared_tokens, space) * price)
    )


def test_what_was_spent_outlives_the_session_and_a_fork_costs_nothing(
    api: APIClient, session: Session, priced: AiModel
) -> None:
    answer = say(api, session).json()["assistant_message"]
    before = read_usage(api)["total"]
    assert api.post(f"/api/v1/messages/{answer['id']}/fork").status_code == 201
    assert api.delete(f"/api/v1/sessions/{session.pk}").status_code == 204
    assert read_usage(api)["total"] == before


def test_calls_without_a_session_are_counted_once(
    live: Live, api: APIClient, user: User, priced: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(*[Reply(text="Hello.", usage=(1_000, 100)) for _ in range(2)])
    client = create_client(live.url, user)
    for stream in (False, True):
        answer: Any = client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream)
        list(answer)
    rows = read_usage(api, by="session")["rows"]
    assert [(row["key"], row["calls"], row["input_tokens"]) for row in rows] == [(None, 2, 2_000)]


def test_only_a_right_of_its_own_shows_what_others_used(
    api: APIClient, user: User, session: Session, priced: AiModel, as_user: Callable[..., APIClient]
) -> None:
    say(api, session)
    bob = User.objects.create_user("bob")
    other = as_user(bob)
    assert read_usage(other)["total"]["calls"] == 0
    refused = other.get("/api/v1/usage", {"user": "alice"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "user")
    bob.user_permissions.add(Permission.objects.get(codename="view_everyones_usage"))
    assert read_usage(other, user="alice")["total"]["calls"] == 1
    assert [row["key"] for row in read_usage(other, user="*", by="user")["rows"]] == ["alice"]


@pytest.mark.parametrize(
    "parameters", [{"by": "moon"}, {"from": "yesterday"}, {"to": "2026-13-01"}]
)
def test_a_wrong_parameter_is_named(api: APIClient, parameters: dict[str, str]) -> None:
    response = api.get("/api/v1/usage", parameters)
    assert response.status_code == 400
    assert next(iter(parameters)) in response.json()["detail"]


def test_days_are_chosen_with_both_ends(api: APIClient, session: Session, priced: AiModel) -> None:
    say(api, session)
    UsageSum.objects.update(day="2026-01-31")
    say(api, session)
    assert read_usage(api, **{"from": "2026-01-31", "to": "2026-01-31"})["total"]["calls"] == 1
    assert read_usage(api, to="2026-01-30")["total"]["calls"] == 0
    assert [row["calls"] for row in read_usage(api)["rows"]] == [1, 1]


def test_a_budget_refuses_the_turn_after_the_one_that_spent_it(
    api: APIClient, user: User, session: Session, priced: AiModel, scripted: ScriptedModel
) -> None:
    Budget.objects.create(user=user, amount="0.01", warning_percent=50)
    scripted.script(*[Reply(text="Hello.", usage=(1_000, 100)) for _ in range(9)])  # 0.0035 each
    answers = [say(api, session) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    problem = answers[-1].json()
    assert problem["type"] == "budget_spent"
    assert "Your budget for this month is 0.01 USD" in problem["detail"]
    assert "Nothing was stored." in problem["detail"]
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert session.messages.count() == 6
    state = read_usage(api)["budgets"][0]
    assert (state["is_spent"], state["is_almost_spent"], state["cost"]) == (True, True, 0.0105)


def test_a_budget_of_a_group_counts_its_members_together_and_nobody_else(
    user: User,
    session: Session,
    priced: AiModel,
    api: APIClient,
    scripted: ScriptedModel,
    as_user: Callable[..., APIClient],
) -> None:
    group = Group.objects.create(name="Bakers")
    bob, eve = User.objects.create_user("bob"), User.objects.create_user("eve")
    group.user_set.add(user, bob)
    Budget.objects.create(group=group, amount="0.01", period="day")
    scripted.default = Reply(text="Hello.", usage=(10_000, 100))
    assert say(api, session).status_code == 201
    refused = say(as_user(bob), Session.objects.create(owner=bob, model=priced))
    assert refused.status_code == 429
    assert "the group Bakers" in refused.json()["detail"]
    assert say(as_user(eve), Session.objects.create(owner=eve, model=priced)).status_code == 201


def test_a_budget_begins_anew_with_its_period(
    session: Session, priced: AiModel, api: APIClient, scripted: ScriptedModel
) -> None:
    Budget.objects.create(amount="0.01", period="day")
    scripted.default = Reply(text="Hello.", usage=(10_000, 100))
    assert say(api, session).status_code == 201
    assert say(api, session).status_code == 429
    UsageSum.objects.update(day=timezone.now().date() - timedelta(days=1))
    assert say(api, session).status_code == 201


def test_an_openai_client_is_refused_as_by_a_provider_without_credit(
    live: Live, user: User, priced: AiModel
) -> None:
    Budget.objects.create(user=user, amount=0)
    client = create_client(live.url, user)
    with pytest.raises(APIStatusError) as refusal:
        client.chat.completions.create(model=MODEL, messages=HELLO)
    assert (refusal.value.status_code, refusal.value.code) == (429, "insufficient_quota")


@pytest.mark.parametrize(
    "count", [20, pytest.param(1_000, marks=pytest.mark.slow)], ids=["few", "thousand"]
)
def test_the_sum_of_many_turns_is_the_sum_made_by_hand(
    api: APIClient,
    user: User,
    session: Session,
    priced: AiModel,
    scripted: ScriptedModel,
    settings: Any,
    count: int,
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 10_000}
    AiModel.objects.update(cache_write_price="3.125", context_window_size=None)
    Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)
    chance = random.Random(7)
    by_hand = Decimal(0)
    for _ in range(count):
        read, written = chance.randrange(5_000), chance.randrange(500)
        plain, output = chance.randrange(2_000), chance.randrange(800)
        usage = (plain + read + written, output, read, written)
        scripted.script(Reply(text="Hello.", usage=usage))
        assert say(api, session).status_code == 201
        by_hand += plain * Decimal("2.5") + read * Decimal("0.25")
        by_hand += written * Decimal("3.125") + output * 10
    by_hand /= 1_000_000
    assert sums.add_up(sums.select_usage(owner_id=user.pk)).cost == by_hand
    costs = [message.cost or 0 for message in session.messages.exclude(cost=None)]
    assert (len(costs), sum(costs)) == (count, by_hand)


def test_budgets_are_read_for_one_user_in_a_few_queries(
    user: User, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(1):
        limits.require_budget(user.pk)
    fill = Budget.objects.create(user=user, amount=1)
    with django_assert_max_num_queries(3):  # is there any, which hold here, and what is spent
        limits.require_budget(user.pk)
    assert str(fill) == "1 a month for alice"


def test_a_month_by_user_is_a_page_and_a_csv_file(session: Session) -> None:
    root = User.objects.create_superuser("root")
    alice = session.owner
    strange = User.objects.create_user("=1+2")
    for owner, day, cost in (
        (alice, "2026-10-01", 3),
        (alice, "2026-10-31", 4),
        (strange, "2026-10-31", 1),
    ):
        UsageSum.objects.create(
            owner=owner,
            day=day,
            model="a/b",
            purpose="chat",
            calls=1,
            cost_units=cost * 10**12,
            input_tokens=10,
        )
    UsageSum.objects.create(
        owner=alice, day="2026-11-01", model="a/b", purpose="chat", calls=9, cost_units=10**12
    )
    client = Client()
    client.force_login(root)
    page = client.get("/admin/budgets/usagesum/month", {"month": "2026-10"}, follow=True)
    text = page.content.decode()
    assert "7.00" in text
    assert "8.00" in text, "the sum of all"
    parameters = {"month": "2026-10", "by": "user", "format": "csv"}
    response = client.get("/admin/budgets/usagesum/month", parameters, follow=True)
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [(row["user"], row["calls"], row["cost"]) for row in rows] == [
        ("alice", "2", "7.000000000000"),
        ("'=1+2", "1", "1.000000000000"),
    ]
    for wrong in ({"month": "x"}, {"month": "9999-12"}, {"by": "owner__password"}):
        assert client.get("/admin/budgets/usagesum/month", wrong, follow=True).status_code == 200
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert client.get("/admin/budgets/usagesum/month", parameters, follow=True).status_code == 403
