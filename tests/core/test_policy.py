"""Policies: plain data, validated by field, and the oneclaw preset's numbers."""

import ast
from pathlib import Path
from typing import Any

import pytest

from compaction.core import policy as policy_module
from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.systems.kit.pipeline import STAGES
from compaction.systems.kit.settings import ThresholdKnobs
from compaction.systems.lota.state import SECTIONS


def test_oneclaw_is_what_the_seed_says() -> None:
    assert PRESETS["oneclaw"] is ONECLAW
    knobs_by_group = ONECLAW.to_dict()
    assert knobs_by_group["window"] == {"unknown": "disable", "by_family": {}}
    assert knobs_by_group["trigger"] == {
        "threshold": 0.85,
        "clamp": False,
        "strict": True,
        "phases": ["after_response", "on_model_change", "on_overflow", "manual"],
    }
    assert (
        knobs_by_group["estimate"]["chars_per_token"],
        knobs_by_group["estimate"]["calibration"],
    ) == (
        4,
        "last_usage",
    )
    assert (knobs_by_group["protect"]["kind"], knobs_by_group["protect"]["ratio"]) == (
        "token_ratio",
        0.25,
    )
    assert knobs_by_group["stages"] == ["summarize"]
    assert {
        name: knobs_by_group["summary"][name]
        for name in ("max_tokens", "min_words", "max_words", "retries")
    } == {
        "max_tokens": 2048,
        "min_words": 200,
        "max_words": 500,
        "retries": 1,
    }
    assert (
        knobs_by_group["fallback"]["notice"]
        == "Conversation history has been automatically trimmed"
    )
    assert knobs_by_group["flow"]["lease_seconds"] is None  # 300, from the project


def test_overrides_change_only_what_they_name() -> None:
    policy = Policy.parse({"trigger": {"threshold": 0.5}, "summary": {"retries": 0}}, ONECLAW)
    assert policy.trigger.threshold == 0.5
    assert policy.get(ThresholdKnobs).strict is True
    assert policy.summary.retries == 0
    assert policy.summary.max_tokens == 2048
    assert ONECLAW.trigger.threshold == 0.85


def test_a_policy_reads_back_what_it_wrote() -> None:
    changed_policy = Policy.parse(
        {"trigger": {"phases": ["manual"]}, "window": {"unknown": 128_000}}, ONECLAW
    )
    assert Policy.parse(changed_policy.to_dict(), ONECLAW) == changed_policy


def test_no_overrides_are_the_base() -> None:
    assert Policy.parse({}, ONECLAW) == ONECLAW


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"trigger": {"treshold": 0.8}}, "trigger.treshold"),
        ({"triggers": {}}, "triggers"),
        ({"trigger": 0.8}, "trigger"),
        ([], "policy"),
        ({"trigger": {"threshold": 1.5}}, "trigger.threshold"),
        ({"trigger": {"threshold": -0.1}}, "trigger.threshold"),
        ({"trigger": {"threshold": "0.8"}}, "trigger.threshold"),
        ({"trigger": {"threshold": True}}, "trigger.threshold"),
        ({"trigger": {"threshold": float("nan")}}, "trigger.threshold"),
        ({"trigger": {"strict": 1}}, "trigger.strict"),
        ({"trigger": {"phases": ["sometimes"]}}, "trigger.phases"),
        ({"trigger": {"phases": ["manual", "manual"]}}, "trigger.phases"),
        ({"trigger": {"phases": "manual"}}, "trigger.phases"),
        ({"window": {"unknown": 0}}, "window.unknown"),
        ({"window": {"unknown": "guess"}}, "window.unknown"),
        ({"estimate": {"chars_per_token": 0}}, "estimate.chars_per_token"),
        ({"estimate": {"calibration": "always"}}, "estimate.calibration"),
        ({"protect": {"ratio": 2}}, "protect.ratio"),
        ({"protect": {"ratio": 0.85}}, "protect.ratio"),
        ({"trigger": {"threshold": 0.2}}, "protect.ratio"),
        ({"stages": []}, "stages"),
        ({"stages": ["summarise"]}, "stages"),
        ({"stages": ["summarize", "summarize"]}, "stages"),
        ({"summary": {"max_tokens": 0}}, "summary.max_tokens"),
        ({"summary": {"retries": -1}}, "summary.retries"),
        ({"summary": {"retries": 1.5}}, "summary.retries"),
        ({"summary": {"min_words": 600}}, "summary.min_words"),
        ({"fallback": {"notice": "  "}}, "fallback.notice"),
        ({"overflow": {"recovery_ratio": 7}}, "overflow.recovery_ratio"),
        ({"flow": {"lease_seconds": 0}}, "flow.lease_seconds"),
        ({"flow": {"attempts": 0}}, "flow.attempts"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(overrides: Any, field: str) -> None:
    with pytest.raises(PolicyError) as refusal:
        Policy.parse(overrides, ONECLAW)
    assert refusal.value.field == field
    assert refusal.value.message
    assert str(refusal.value).startswith(f"{field}: ")


def test_every_stage_a_policy_may_name_exists() -> None:
    assert set(policy_module.STAGES) == set(STAGES)


def test_every_knob_is_read_somewhere() -> None:
    root = Path(policy_module.__file__).parent.parent
    sources = [path for path in root.rglob("*.py") if path.name not in ("policy.py", "presets.py")]
    attributes = {
        node.attr
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    attributes |= set(SECTIONS)  # the knobs of the state are read by its sections' names
    knobs = {
        knob for group in ONECLAW.to_dict().values() if isinstance(group, dict) for knob in group
    }
    assert len(knobs) > 10
    assert knobs - attributes == set()
