"""Compactions by hand are paid for: they are counted, and those that keep failing stop."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.budgets.models import Budget, UsageSum
from chatcore.models import Session
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.client_tool_requests import address
from tests.support.compaction_sessions import list_summary_calls, use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

__all__ = ["address"]

pytestmark = pytest.mark.django_db(transaction=True)


def limit(settings: Any, **limits: int) -> None:
    settings.CHATCORE = {**settings.CHATCORE, **limits}


def compact(api: APIClient, session: Session, **body: Any) -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True} | body)


def fail_three_times(api: APIClient, session: Session, scripted: ScriptedModel) -> int:
    scripted.default = Reply(status=500, body=b"out of order")
    use_policy(session, summary={"retries": 0})
    assert [compact(api, session).json()["status"] for _ in range(3)] == ["fell_back"] * 3
    return len(list_summary_calls(scripted))


def test_compactions_of_all_sessions_of_a_user_count_together(
    api: APIClient, full: Session, model: AiModel, user: User, settings: Any
) -> None:
    limit(settings, COMPACTIONS_PER_MINUTE=2)
    other = Session.objects.create(owner=user, model=model)
    assert [compact(api, full).status_code, compact(api, other).status_code] == [200, 200]
    refused = compact(api, full)
    assert (refused.status_code, refused.json()["type"]) == (429, "too_many_compactions")
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert CompactionRun.objects.count() == 2


def test_the_limits_of_two_users_and_of_turns_are_their_own(
    api: APIClient, full: Session, model: AiModel, settings: Any, as_user: Callable[..., APIClient]
) -> None:
    limit(settings, COMPACTIONS_PER_MINUTE=1)
    bob = User.objects.create_user("bob")
    his = Session.objects.create(owner=bob, model=model)
    assert compact(api, full).status_code == 200
    assert compact(as_user(bob), his).status_code == 200
    said = api.post(f"/api/v1/sessions/{full.pk}/messages", {"content": "Hi"})
    assert said.status_code == 201


def test_a_preview_and_what_is_not_there_cost_nothing(
    api: APIClient, full: Session, settings: Any, user: User
) -> None:
    limit(settings, COMPACTIONS_PER_MINUTE=1)
    foreign = Session.objects.create(owner=User.objects.create_user("bob"))
    assert compact(api, full, dry_run=True).status_code == 200
    assert compact(api, foreign).status_code == 404
    assert compact(api, full, policy="none").status_code == 400
    assert compact(api, full).status_code == 200


def test_the_terminal_counts_for_the_owner_and_the_administration_for_the_operator(
    api: APIClient, full: Session, client: Client, settings: Any
) -> None:
    limit(settings, COMPACTIONS_PER_MINUTE=1)
    run = compact(api, full).json()["id"]
    with pytest.raises(CommandError, match="Too many compactions by hand"):
        call_command("compact_session", str(full.pk), stdout=StringIO())
    client.force_login(User.objects.create_superuser("operator"))
    changelist = reverse("admin:compaction_compactionrun_changelist")
    for action, answer in (("compact_now", "requested"), ("retry", "Too many compactions")):
        data = {"action": action, "_selected_action": [run]}
        assert answer in client.post(changelist, data, follow=True).content.decode()
    assert CompactionRun.objects.count() == 2


def test_what_failed_three_times_is_not_tried_again(
    api: APIClient, full: Session, scripted: ScriptedModel
) -> None:
    calls = fail_three_times(api, full, scripted)
    for _ in range(2):
        run = compact(api, full).json()
        assert run["status"] == "skipped"
        assert run["reason"].startswith("It failed 3 times, and nothing has changed since: ")
    assert len(list_summary_calls(scripted)) == calls


@pytest.mark.parametrize(
    "change", mark_others_slow(["message", "instructions", "hour", "policy", "model"], first=3)
)
def test_it_is_tried_again_when_something_has_changed(
    api: APIClient, full: Session, scripted: ScriptedModel, model: AiModel, change: str
) -> None:
    calls = fail_three_times(api, full, scripted)
    match change:
        case "message":
            api.post(
                f"/api/v1/sessions/{full.pk}/messages/import",
                {"messages": [{"role": "user", "content": "One more."}]},
            )
        case "policy":
            use_policy(full, summary={"retries": 0, "max_words": 300})
        case "model":
            other = AiModel.objects.create(
                provider=model.provider, name="other", context_window_size=8192
            )
            Session.objects.filter(pk=full.pk).update(model=other)
        case "hour":
            for run in CompactionRun.objects.all():
                run.created_at = run.created_at.replace(year=run.created_at.year - 1)
                run.save()
    options = {"instructions": "the hotel"} if change == "instructions" else {}
    assert compact(api, full, **options).json()["status"] == "fell_back"
    assert len(list_summary_calls(scripted)) == calls + 1


def test_one_success_in_between_begins_the_count_again(
    api: APIClient, full: Session, scripted: ScriptedModel
) -> None:
    use_policy(full, summary={"retries": 0})
    out_of_order = Reply(status=500, body=b"out of order")
    scripted.script(out_of_order, out_of_order, Reply(text="A trip to Lisbon is planned."))
    statuses = [compact(api, full).json()["status"] for _ in range(3)]
    assert statuses == ["fell_back", "fell_back", "applied"]


def test_a_spent_budget_refuses_a_compaction_by_hand_in_words(
    full: Session, api: APIClient, user: User
) -> None:
    Budget.objects.create(user=user, period="day", amount="0.01")
    UsageSum.objects.create(
        owner=user,
        session=full.pk,
        day=timezone.now().date(),
        model="scripted/test-model",
        purpose="answer",
        cost_units=10**12,
    )
    refused = api.post(f"/api/v1/sessions/{full.pk}/compact", {"wait": True})
    assert (refused.status_code, refused.json()["type"]) == (429, "budget_spent")
    assert "Your budget for today is 0.01" in refused.json()["detail"]
    assert int(refused.headers["Retry-After"]) > 0
    assert not CompactionRun.objects.exists()
    assert api.post(f"/api/v1/sessions/{full.pk}/compact", {"dry_run": True}).status_code == 200
