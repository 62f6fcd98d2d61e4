"""One conversation, driven through the summary of each preset, over the wire of both protocols."""

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.summaries.templates import SUMMARY_TEMPLATES
from tests.support.compaction_scenes import (
    chat_calls,
    content_of,
    fill,
    say,
    spoken,
    summarize_or_chat,
    summary_calls,
    work,
)
from tests.support.scripted import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.seed_scenes import PROTOCOLS, living_under, said, within_budget

pytestmark = pytest.mark.django_db(transaction=True)


def headed(policy: str) -> str:
    """A summary as the preset's template wants it; one that asks for a delta gets it, too."""
    preset = PRESETS[policy]
    headings = SUMMARY_TEMPLATES[preset.summary.template].headings or ("Facts",)
    summary = "\n".join(
        f"{heading}:\n- Alice plans a trip, point {place}."
        for place, heading in enumerate(headings)
    )
    return summary + (
        '\n\n```json\n{"tasks": {"add": ["Book the flight"]}}\n```'
        if preset.summary.state_delta
        else ""
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("policy", PRESETS)
def test_it_ends_within_its_budget_and_nothing_said_is_lost(
    session: Session, scripted: ScriptedModel, policy: str, protocol: str
) -> None:
    summary = headed(policy)
    scripted.default = summarize_or_chat(
        summary=Reply(text=summary), chat=Reply(text="I would look for flights from Porto.")
    )
    talk = living_under(
        session, policy, scripted, protocol, context_window_size=32_000, output_reserve=8_000
    )
    for _ in range(2):
        fill(talk, messages=60)
        before = content_of(talk)
        turn = say(talk, "And what about the flight?")
        work()
        if not within_budget(talk):
            engine.compact_now(talk.pk, trigger="manual")
        assert turn.status == "completed"
        assert content_of(talk)[: len(before)] == before
        assert within_budget(talk)
    assert not CompactionRun.objects.exclude(status__in=["applied", "skipped"]).exists()
    assert CompactionRun.objects.filter(status="applied").count() >= 2
    heading = (
        SUMMARY_TEMPLATES[PRESETS[policy].summary.template].headings or ("Keep every name",)
    )[0]
    assert all(heading in spoken(request)[-1] for request in summary_calls(scripted))
    say(talk, "Thanks.")
    sent = said(chat_calls(scripted)[-1])
    assert summary.split("```")[0].strip() in sent
    assert "```json" not in sent
    assert ("- Book the flight" in sent) is PRESETS[policy].summary.state_delta
