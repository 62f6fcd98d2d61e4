"""Which policy applies, what a stored one may say, and what the checks find."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from chatcore.models import Session
from compaction import checks, policies, situation
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy
from compaction.usage import usage
from models_registry.models import AiModel

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> None:
    for name in ("project", "models", "sessions"):
        CompactionPolicy.objects.create(name=name, overrides={"trigger": {"threshold": 0.8}})


def resolved(session: Session) -> str:
    found = situation.of(session.pk)
    assert found is not None
    return found.policy_name


@pytest.mark.usefixtures("rows")
def test_the_session_wins_over_the_model_over_the_project_over_oneclaw(session: Session, model: AiModel, settings: Any) -> None:
    assert resolved(session) == "oneclaw"
    settings.COMPACTION = settings.COMPACTION | {"POLICY": "project"}
    assert resolved(session) == "project"
    AiModel.objects.filter(pk=model.pk).update(policy="models")
    assert resolved(session) == "models"
    Session.objects.filter(pk=session.pk).update(policy="sessions")
    assert resolved(session) == "sessions"


def test_a_policy_that_is_gone_is_passed_over(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(policy="deleted-meanwhile")
    assert resolved(session) == "oneclaw"


def test_a_stored_policy_changes_what_is_measured(session: Session) -> None:
    CompactionPolicy.objects.create(name="half", overrides={"trigger": {"threshold": 0.5}, "estimate": {"chars_per_token": 2}})
    Session.objects.filter(pk=session.pk).update(policy="half")
    session.messages.create(seq=1, role="user", content="x" * 4000)
    told = usage(session.pk)
    tools = told["breakdown"]["tool_definitions"]
    assert told["threshold_tokens"] == 4096
    assert told["estimated_input_tokens"] - tools == 2000


@pytest.mark.parametrize(
    ("name", "base", "overrides", "field"),
    [
        ("oneclaw", "oneclaw", {}, "name"),
        ("mine", "nonsense", {}, "base"),
        ("mine", "oneclaw", {"threshold": 0.8}, "threshold"),
        ("mine", "oneclaw", {"trigger": {"threshold": 1.2}}, "trigger.threshold"),
        ("mine", "oneclaw", {"protect": {"ratio": 0.9}}, "protect.ratio"),
        ("mine", "oneclaw", ["trigger"], "policy"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_the_name_of_its_field(name: str, base: str, overrides: Any, field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        CompactionPolicy(name=name, base=base, overrides=overrides).full_clean()
    assert field in str(refused.value)


@pytest.mark.usefixtures("rows")
def test_all_policies_are_listed_presets_first() -> None:
    assert list(policies.available()) == [*PRESETS, "models", "project", "sessions"]


def test_a_policy_survives_its_snapshot() -> None:
    assert policies.from_snapshot(PRESETS["oneclaw"].as_dict()) == PRESETS["oneclaw"]


def test_a_project_policy_that_does_not_exist_stops_the_start(settings: Any) -> None:
    settings.COMPACTION = settings.COMPACTION | {"POLICY": "nonsense"}
    with pytest.raises(SystemCheckError, match="no compaction policy named 'nonsense'"):
        call_command("check", databases=["default"])


@pytest.mark.usefixtures("rows")
def test_a_stored_project_policy_is_fine(settings: Any) -> None:
    settings.COMPACTION = settings.COMPACTION | {"POLICY": "project"}
    assert checks.check_stored_policies(databases=["default"]) == []


def test_a_backend_that_cannot_be_imported_stops_the_start() -> None:
    with override_settings(COMPACTION={"BACKEND": "nowhere.Backend", "POLICY": "oneclaw"}):
        assert [found.id for found in checks.check_backend()] == ["compaction.E001"]


def test_a_stored_policy_that_is_no_longer_valid_is_warned_of() -> None:
    CompactionPolicy.objects.create(name="old", overrides={"gone": 1})
    assert [found.id for found in checks.check_stored_policies(databases=["default"])] == ["compaction.W001"]
