"""Which policy applies, what a stored one may say, and what the checks find."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import Client
from django.urls import reverse

from chatcore.models import Attachment, Session
from compaction import policies
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy
from compaction.policies import checks
from compaction.runs import engine
from compaction.sessions import session_context
from compaction.systems.kit.settings import ThresholdKnobs
from models_registry.models import AiModel
from tests.support.admin_forms import read_form
from tests.support.compaction_sessions import fill_session
from tests.support.context_usage import load_usage

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> None:
    for name in ("project", "models", "sessions"):
        CompactionPolicy.objects.create(name=name, overrides={"trigger": {"threshold": 0.8}})


def resolved(session: Session) -> str:
    context = session_context.load_session_context(session.pk)
    assert context is not None
    return context.policy_name


@pytest.mark.usefixtures("rows")
def test_the_session_wins_over_the_model_over_the_project_over_oneclaw(
    session: Session, model: AiModel, settings: Any
) -> None:
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
    CompactionPolicy.objects.create(
        name="half", overrides={"trigger": {"threshold": 0.5}, "estimate": {"chars_per_token": 2}}
    )
    Session.objects.filter(pk=session.pk).update(policy="half")
    session.messages.create(seq=1, role="user", content="x" * 4000)
    usage_fields = load_usage(session.pk)
    tools = usage_fields["breakdown"]["tool_definitions"]
    assert usage_fields["threshold_tokens"] == 4096
    assert usage_fields["estimated_input_tokens"] - tools == 2000


@pytest.mark.parametrize("policy", PRESETS)
def test_the_check_without_a_message_read_and_the_pass_measure_the_same(
    session: Session, policy: str
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy, system_prompt="Be brief. " * 40)
    fill_session(session, messages=12, tokens=400)
    usage_fields, run = load_usage(session.pk), engine.preview_run(session.pk)
    assert run.tokens_before == pytest.approx(usage_fields["estimated_input_tokens"], rel=0.01)
    assert sum(usage_fields["breakdown"].values()) == usage_fields["estimated_input_tokens"]
    assert usage_fields["threshold_tokens"] is not None
    assert usage_fields["should_compact"] == (
        usage_fields["estimated_input_tokens"]
        >= usage_fields["threshold_tokens"] + PRESETS[policy].get(ThresholdKnobs).strict
    )


@pytest.mark.parametrize(
    ("policy", "max_tokens", "available"),
    [
        ("oneclaw", 1_000, 8_192),
        ("neurolink", None, 5_324),
        ("neurolink", 1_000, 7_192),
        ("wolffish", None, 6_192),
        ("wolffish", 1_000, 7_192),
        ("baseagent", None, 4_096),
    ],
)
def test_what_may_be_sent_is_told_by_the_model_s_reserve_and_the_session_s_max_tokens(
    session: Session, policy: str, max_tokens: int | None, available: int
) -> None:
    AiModel.objects.filter(name="test-model").update(output_reserve=2_000)
    Session.objects.filter(pk=session.pk).update(
        policy=policy, params={"max_tokens": max_tokens} if max_tokens else {}
    )
    usage_fields = load_usage(session.pk)
    assert (usage_fields["available_input_tokens"], usage_fields["context_window"]) == (
        available,
        8_192,
    )


@pytest.mark.parametrize(("share", "level"), [(0.5, "ok"), (0.85, "warning"), (1.1, "critical")])
def test_the_level_tells_how_near_the_threshold_is(
    session: Session, share: float, level: str
) -> None:
    session.messages.create(seq=1, role="user", content="x" * (4 * int(6_963 * share) - 1_200))
    assert load_usage(session.pk)["level"] == level


def test_files_of_live_messages_are_counted_by_themselves(session: Session, model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(supports_images=True)
    rows = [
        session.messages.create(seq=seq, role="user", content="See the file.") for seq in (1, 2)
    ]
    files = {"session": session, "name": "a", "size": 1, "data": b"x", "token_estimate": 300}
    Attachment.objects.create(message=rows[0], media_type="text/plain", **files)
    Attachment.objects.create(message=rows[1], media_type="text/plain", **files)
    Attachment.objects.create(message=rows[1], media_type="image/png", **files)
    Attachment.objects.create(
        message=rows[1], media_type="text/plain", kind=Attachment.Kind.OUTPUT, **files
    )
    Attachment.objects.create(message=None, media_type="text/plain", **files)
    Session.objects.filter(pk=session.pk).update(last_seq=2, message_count=2)
    usage_fields = load_usage(session.pk)
    assert usage_fields["breakdown"]["file_attachments"] == 300 + 300 + 1_024
    assert sum(usage_fields["breakdown"].values()) == usage_fields["estimated_input_tokens"]
    Session.objects.filter(pk=session.pk).update(compact_boundary_seq=2)
    assert load_usage(session.pk)["breakdown"]["file_attachments"] == 300 + 1_024


def test_a_stored_threshold_that_cannot_be_is_passed_over_with_a_warning(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    Session.objects.filter(pk=session.pk).update(compact_threshold=0.1)  # below protect.ratio
    assert load_usage(session.pk)["threshold_tokens"] == 6_963
    assert "skipped" in caplog.text
    Session.objects.filter(pk=session.pk).update(compact_threshold=0.4)
    assert load_usage(session.pk)["threshold_tokens"] == 3_276


def test_a_policy_asked_for_by_name_is_taken_as_it_is(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(compact_threshold=0.4)
    named = session_context.load_session_context(session.pk, policy=("oneclaw", PRESETS["oneclaw"]))
    assert named is not None
    assert named.budget is not None
    assert named.budget.threshold == 6_963


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
def test_a_policy_that_cannot_be_is_refused_by_the_name_of_its_field(
    name: str, base: str, overrides: Any, field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        CompactionPolicy(name=name, base=base, overrides=overrides).full_clean()
    assert field in str(refused.value)


@pytest.mark.usefixtures("rows")
def test_all_policies_are_listed_presets_first() -> None:
    assert list(policies.list_policies()) == [*PRESETS, "models", "project", "sessions"]


def test_a_policy_survives_its_snapshot() -> None:
    assert policies.parse_policy_snapshot(PRESETS["oneclaw"].to_dict()) == PRESETS["oneclaw"]


def test_a_project_policy_that_does_not_exist_stops_the_start(settings: Any) -> None:
    settings.COMPACTION = settings.COMPACTION | {"POLICY": "nonsense"}
    with pytest.raises(SystemCheckError, match="no compaction policy named 'nonsense'"):
        call_command("check", databases=["default"])


@pytest.mark.usefixtures("rows")
def test_a_stored_project_policy_is_fine(settings: Any) -> None:
    settings.COMPACTION = settings.COMPACTION | {"POLICY": "project"}
    assert checks.check_stored_policies(databases=["default"]) == []


def test_a_stored_policy_that_is_no_longer_valid_is_warned_of() -> None:
    CompactionPolicy.objects.create(name="old", overrides={"gone": 1})
    assert [context.id for context in checks.check_stored_policies(databases=["default"])] == [
        "compaction.W001"
    ]


def test_a_stored_policy_that_cannot_be_read_is_shown(
    session: Session, admin_client: Client, client: Client
) -> None:
    overrides = {"absent": {"share": 0.5}, "trigger": {"threshold": 0.7, "gone": 1}}
    row = CompactionPolicy.objects.create(name="old", overrides=overrides)
    Session.objects.filter(pk=session.pk).update(policy="old")
    output = StringIO()
    call_command("check", databases=["default"], stderr=output)
    assert "The stored policy 'old' cannot be used" in output.getvalue()
    page = admin_client.get(reverse("admin:compaction_compactionpolicy_changelist"))
    assert "absent: is not known here" in page.content.decode()
    client.force_login(session.owner)
    page = client.get(reverse("chat_settings", args=[session.pk]))
    assert "old (cannot be used)" in page.content.decode()
    assert resolved(session) == "oneclaw"
    # The operator sees what is not known, and it stays when the rest is changed.
    address = reverse("admin:compaction_compactionpolicy_change", args=[row.pk])
    fields = read_form(admin_client.get(address).content.decode(), "compactionpolicy_form")
    assert json.loads(str(fields["unread"])) == {"absent": {"share": 0.5}, "trigger": {"gone": 1}}
    fields["trigger__threshold"] = "0.8"
    assert admin_client.post(address, fields).status_code == 302
    row.refresh_from_db()
    assert row.overrides == {"absent": {"share": 0.5}, "trigger": {"threshold": 0.8, "gone": 1}}
    assert admin_client.post(address, fields | {"unread": ""}).status_code == 302
    assert resolved(session) == "old"


def test_a_policy_on_oneclaw_that_uses_parts_of_systems_is_named() -> None:
    stages = ["prune_tool_outputs", "summarize"]
    for base in ("oneclaw", "neurolink"):
        overrides = {"stages": stages, "protect": {"kind": "count", "count": 6}}
        CompactionPolicy.objects.create(name=f"own-{base}", base=base, overrides=overrides)
    [message] = checks.check_stored_policies(databases=["default"])
    assert message.id == "compaction.I001"
    assert "'own-oneclaw' is based on oneclaw" in message.msg
    assert message.msg.endswith("protect.count, protect.kind, stages.")


def test_the_project_says_how_runs_are_worked_on_unless_the_policy_does(
    session: Session, settings: Any
) -> None:
    fill_session(session)
    settings.COMPACTION = settings.COMPACTION | {"WORKERS": 5, "ATTEMPTS": 7}
    assert engine.request_run(session.pk, trigger="manual").places == 5
    flow = policies.read_flow(PRESETS["lota"])
    assert (flow.workers, flow.lease_seconds, flow.attempts) == (2, 300, 2)
    flow = policies.read_flow(PRESETS["oneclaw"])
    assert (flow.workers, flow.lease_seconds, flow.attempts) == (5, 300, 7)
