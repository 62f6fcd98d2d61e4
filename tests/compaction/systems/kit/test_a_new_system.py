"""A system is added as compaction/systems/kit/README.md says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core import policy as policy_module
from compaction.core.knobs import OTHER_GROUPS, KnobGroup, add_settings, knob
from compaction.core.presets import PRESETS
from compaction.core.rules import TEXT
from compaction.core.systems import add_preset
from compaction.models import CompactionPolicy
from compaction.summaries.templates import SUMMARY_TEMPLATES, PromptTags
from compaction.systems.kit import pipeline
from compaction.systems.kit.drafts import ContextDraft, StageContext, apply_edits
from compaction.systems.kit.templates import add_template, build_headed_template
from tests.support.compaction_sessions import fill_session, list_summary_calls, summarize_or_chat
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def toy() -> Iterator[None]:
    tables: list[dict[Any, Any]] = [PRESETS, OTHER_GROUPS, SUMMARY_TEMPLATES, pipeline.STAGES]
    copies = [dict(table) for table in tables]
    names = list(policy_module.STAGES)
    _install()
    yield
    for table, copy in zip(tables, copies, strict=True):
        table.clear()
        table.update(copy)
    policy_module.STAGES[:] = names


def _install() -> None:
    @add_settings
    @dataclass(frozen=True, kw_only=True, slots=True)
    class HushKnobs(KnobGroup):
        """The stage `hush`."""

        prefix: ClassVar[str] = "hush"
        written: ClassVar[tuple[str, ...]] = ("placeholder",)
        placeholder: str = knob(TEXT, "[gone]", "The text in the place of an old answer.")

    def hush(draft: ContextDraft, context: StageContext) -> ContextDraft:
        texts = {
            entry.seq: context.policy.get(HushKnobs).placeholder
            for entry in draft.transcript.entries
            if entry.role == "assistant" and not context.protection.covers(entry)
        }
        return apply_edits(draft, context, "pruned", texts)

    pipeline.add_stage("hush", hush)
    add_template("one_word", build_headed_template({"THE WORD": "the word"}))
    settings = {
        "stages": ["hush", "summarize"],
        "hush": {"placeholder": "[hush]"},
        "summary": {"template": "one_word"},
        "target": {"ratio": 0},
    }
    add_preset("toy", settings)


@pytest.mark.usefixtures("toy")
def test_its_stage_settings_and_template_are_used(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session)
    overrides = {"hush": {"placeholder": "[quiet]"}}
    CompactionPolicy.objects.create(name="own", base="toy", overrides=overrides)
    address = f"/api/v1/sessions/{session.pk}"
    assert api.patch(address, {"policy": "own"}).status_code == 200
    run = api.post(f"{address}/compact", {"wait": True}).json()
    assert (run["status"], run["stages_used"]) == ("applied", ["hush", "summarize"]), run
    assert "THE WORD" in str(list_summary_calls(scripted)[0].json)
    policies = api.get("/api/v1/policies").json()["results"]
    assert {each["name"]: each["knobs"]["hush"] for each in policies}["own"] == {
        "placeholder": "[quiet]"
    }


def test_a_tag_that_a_message_could_imitate_is_refused() -> None:
    template = build_headed_template({"A": "b"}, tags=PromptTags(input="sections"))
    with pytest.raises(ValueError, match="sections must stand in TAG_NAMES"):
        add_template("wrong", template)
