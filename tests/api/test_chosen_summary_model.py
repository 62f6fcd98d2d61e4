"""A model that somebody chooses to write the summary of one run, where the usual one failed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from rest_framework.test import APIClient

from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import Session
from compaction.models import CompactionRun
from models_registry.models import AiModel, Provider
from tests.support.compaction_sessions import SUMMARY, list_event_data, list_summary_calls
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
QUOTA = Reply(status=429, text="You exceeded your current quota (insufficient_quota).")


@pytest.fixture
def other_model(model: AiModel) -> AiModel:
    return AiModel.objects.create(
        provider=model.provider, name="other-model", context_window_size=16_384
    )


@pytest.fixture
def broken(scripted: ScriptedModel, full: Session, other_model: AiModel) -> Session:
    """A full session whose own model cannot write a summary any more."""
    scripted.default = lambda request: (
        Reply(text=SUMMARY) if request["model"] == other_model.name else QUOTA
    )
    return full


def compact(api: APIClient, session: Session, **body: object) -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True, **body})


@pytest.mark.parametrize("name", ["other-model", "scripted/other-model"])
def test_it_writes_the_summary_of_this_run_and_the_session_keeps_its_own(
    api: APIClient, broken: Session, scripted: ScriptedModel, name: str
) -> None:
    assert compact(api, broken).json()["status"] == "fell_back"
    failed_calls = len(list_summary_calls(scripted))
    run = compact(api, broken, summary_model=name).json()
    assert (run["status"], run["summary_after"], run["model"], run["summary_model"]) == (
        "applied",
        SUMMARY,
        "scripted/other-model",
        "scripted/other-model",
    )
    calls = list_summary_calls(scripted)[failed_calls:]
    assert {call.json["model"] for call in calls} == {"other-model"}
    (applied,) = list_event_data(broken, "compaction.applied")
    assert (applied["model"], applied["summary_model"]) == ("scripted/other-model",) * 2
    broken.refresh_from_db()
    assert str(broken.model) == "scripted/test-model"
    again = compact(api, broken, replace=True).json()
    assert (again["status"], again["summary_model"]) == ("failed", "")


def test_it_comes_before_the_model_that_the_registry_names_for_summaries(
    api: APIClient, broken: Session, model: AiModel, other_model: AiModel
) -> None:
    model.summary_model = AiModel.objects.create(provider=model.provider, name="named-model")
    model.save()
    run = compact(api, broken, summary_model=other_model.name).json()
    assert (run["status"], run["model"]) == ("applied", "scripted/other-model")


def test_it_may_be_tried_although_the_own_model_failed_too_often(
    api: APIClient, broken: Session, other_model: AiModel
) -> None:
    assert [compact(api, broken).json()["status"] for _ in range(4)][2:] == ["fell_back", "skipped"]
    assert compact(api, broken, summary_model=other_model.name).json()["status"] == "applied"


def bar_by_group(user: User, other_model: AiModel) -> None:
    group = Group.objects.create(name="Team")
    user.groups.add(group)
    GroupRights.objects.create(group=group, limits_models=True, model_names=["scripted/test-model"])


def deactivate(user: User, other_model: AiModel) -> None:
    AiModel.objects.filter(pk=other_model.pk).update(is_active=False)


def rename(user: User, other_model: AiModel) -> None:
    AiModel.objects.filter(pk=other_model.pk).update(name="renamed")


def take_key_away(user: User, other_model: AiModel) -> None:
    provider = Provider.objects.create(
        name="keyless", protocol="openai", api_key_env="CHATCORE_TEST_NO_SUCH_KEY"
    )
    AiModel.objects.filter(pk=other_model.pk).update(provider=provider)


@pytest.mark.parametrize(
    ("act", "detail"),
    [
        (rename, "There is no usable language model of this name."),
        (deactivate, "There is no usable language model of this name."),
        (bar_by_group, "There is no usable language model of this name."),
        (take_key_away, "The provider keyless has no key. Choose a model of another provider."),
    ],
)
def test_one_that_cannot_write_is_refused_in_words(
    api: APIClient,
    broken: Session,
    user: User,
    other_model: AiModel,
    act: Callable[[User, AiModel], None],
    detail: str,
) -> None:
    act(user, other_model)
    refusal = compact(api, broken, summary_model=other_model.name)
    (error,) = refusal.json()["errors"]
    assert (refusal.status_code, error["field"], error["detail"]) == (400, "summary_model", detail)
    assert not CompactionRun.objects.exists()


def test_an_operator_sees_it_and_a_retry_keeps_it(
    api: APIClient, broken: Session, other_model: AiModel, admin_client: Client
) -> None:
    run = compact(api, broken, summary_model=other_model.name).json()
    path = "/admin/compaction/compactionrun/"
    assert "Summary model" in admin_client.get(f"{path}{run['id']}/change/").content.decode()
    admin_client.post(path, {"action": "retry", "_selected_action": run["id"]})
    newest = CompactionRun.objects.exclude(pk=run["id"]).get()
    assert newest.summary_model == "scripted/other-model"
