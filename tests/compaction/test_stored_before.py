"""Policies as they were stored before each system declared its own settings."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction import policies
from compaction.core.knobs import FlowKnobs
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import fill_session, summarize_or_chat
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)

# What runs stored as their `policy_snapshot`, for each preset (commit c28f822d).
SNAPSHOTS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).parents[1].joinpath("data/policies_before_systems.json").read_text()
)


def leave_out_flow(policy: Policy) -> Policy:
    """Return a policy without what it says of workers, leases and attempts."""
    return dataclasses.replace(policy, flow=FlowKnobs())


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_is_the_policy_that_it_was(name: str) -> None:
    policy = policies.parse_policy_snapshot(SNAPSHOTS[name])
    assert leave_out_flow(policy) == leave_out_flow(PRESETS[name])
    assert policies.read_flow(policy) == policies.read_flow(PRESETS[name])


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_row_with_every_setting_acts_as_its_preset(
    api: APIClient, session: Session, name: str
) -> None:
    CompactionPolicy.objects.create(name="own", base="oneclaw", overrides=SNAPSHOTS[name])
    rows = {each["name"]: each["knobs"] for each in api.get("/api/v1/policies").json()["results"]}
    flow = rows["own"].pop("flow")
    assert {**SNAPSHOTS[name]["flow"]} == flow
    rows[name].pop("flow")
    assert rows["own"] == rows[name]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_run_that_was_queued_before_the_upgrade_is_applied(
    session: Session, scripted: ScriptedModel, name: str
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session)
    Session.objects.filter(pk=session.pk).update(policy=name)
    run = engine.request_run(session.pk, trigger="manual")
    CompactionRun.objects.filter(pk=run.pk).update(policy_snapshot=SNAPSHOTS[name])
    ended_run = engine.execute_run(run.pk)
    assert ended_run is not None
    assert ended_run.status == "applied", ended_run.reason
