"""One conversation through the summary of each preset, in both protocols."""

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.summaries.templates import SUMMARY_TEMPLATES
from compaction.systems.kit.settings import WritingKnobs
from compaction.systems.lota.settings import DeltaKnobs
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import (
    PROTOCOLS,
    is_within_budget,
    join_message_texts,
    set_policy,
    write_summary,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("protocol", mark_others_slow(PROTOCOLS))
@pytest.mark.parametrize("policy", PRESETS)
def test_it_ends_within_its_budget_and_nothing_said_is_lost(
    session: Session, scripted: ScriptedModel, policy: str, protocol: str
) -> None:
    # Nothing that nobody said: the checks of summaries would take it out.
    summary = write_summary(policy, first_item="They speak of a trip to Lisbon.")
    scripted.default = summarize_or_chat(
        summary=Reply(text=summary), chat=Reply(text="I would look for flights from Porto.")
    )
    talk = set_policy(
        session, policy, scripted, protocol, context_window_size=32_000, output_reserve=8_000
    )
    for _ in range(2):
        fill_session(talk, messages=60)
        before = read_stored_messages(talk)
        turn = say(talk, "And what about the flight?")
        run_queued_compactions()
        if not is_within_budget(talk):
            engine.compact_now(talk.pk, trigger="manual")
        assert turn.status == "completed"
        assert read_stored_messages(talk)[: len(before)] == before
        assert is_within_budget(talk)
    assert not CompactionRun.objects.exclude(status__in=["applied", "skipped"]).exists()
    assert CompactionRun.objects.filter(status="applied").count() >= 2
    heading = (
        SUMMARY_TEMPLATES[PRESETS[policy].get(WritingKnobs).template].headings
        or ("Keep every name",)
    )[0]
    assert all(
        heading in read_message_texts(request)[-1] for request in list_summary_calls(scripted)
    )
    say(talk, "Thanks.")
    text = join_message_texts(list_chat_calls(scripted)[-1])
    assert summary.split("```")[0].strip() in text
    assert "```json" not in text
    assert ("- Book the flight" in text) is PRESETS[policy].get(DeltaKnobs).state_delta
