"""Wolffish's step 4 (seed 002): a summary of the original messages in five sections."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine, leases
from compaction.systems.kit.settings import WritingKnobs
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_summary_calls,
    read_message_texts,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import PROTOCOLS, read_last_text, set_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

WOLFFISH = PRESETS["wolffish"]
SECTIONS = ("TASK", "PROGRESS", "REMAINING", "DATA", "DECISIONS")
AS_IN_THE_DOCUMENT = """TASK: Read all unread emails and produce a briefing.
PROGRESS:
1. Searched 2 accounts — found 43 unread
2. Read emails 1-30 (batches of 15)
REMAINING:
1. 13 emails not yet read: [IDs]
2. Final briefing not produced
DATA:
- Keeta order #KT-9284 delivered 2:43 AM
- Apple DPLA deadline: July 9, 2026
DECISIONS:
- User confirmed all accounts should be included"""
DOWN = Reply(status=500, text="out of order")
WINDOW = {"context_window_size": 24_000, "output_reserve": 4_000}


@pytest.fixture
def agent(session: Session, scripted: ScriptedModel) -> Session:
    """A session of thirty messages of 2,000 characters, which are 1,354 tokens each here."""
    scripted.default = summarize_or_chat(summary=Reply(text=AS_IN_THE_DOCUMENT))
    return fill_talk(set_policy(session, "wolffish", scripted, "openai", **WINDOW))


def fill_talk(session: Session) -> Session:
    fill_session(session, messages=30)
    return session


def compact(session: Session, **summary: Any) -> CompactionRun:
    return engine.compact_now(session.pk, trigger="manual", overrides={"summary": summary})


def test_the_constants() -> None:
    assert (WOLFFISH.summary.retries, WOLFFISH.get(WritingKnobs).backoff) == (5, (1, 2, 4, 8, 16))
    assert (
        WOLFFISH.get(WritingKnobs).template,
        WOLFFISH.get(WritingKnobs).source,
        WOLFFISH.get(WritingKnobs).merging,
    ) == (
        "task_state",
        "originals",
        "parts",
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_asks_for_five_sections_and_takes_them(
    session: Session, scripted: ScriptedModel, protocol: str
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(text=AS_IN_THE_DOCUMENT))
    agent = fill_talk(set_policy(session, "wolffish", scripted, protocol, **WINDOW))
    run = compact(agent)
    assert (run.status, run.summary_after) == ("applied", AS_IN_THE_DOCUMENT)
    prompt = read_message_texts(list_summary_calls(scripted)[-1])[-1].split("</transcript>")[1]
    places = [prompt.index(f"\n{name} (") for name in SECTIONS]
    assert places == sorted(places)
    say(agent, "Go on.")
    assert AS_IN_THE_DOCUMENT in read_last_text(
        list_chat_calls(scripted)[-1]
    ) or AS_IN_THE_DOCUMENT in "".join(read_message_texts(list_chat_calls(scripted)[-1]))


def test_what_exceeds_the_summarizers_window_is_summarized_in_parts_and_the_results_merged(
    agent: Session, scripted: ScriptedModel
) -> None:
    numbers = iter(range(1, 99))
    scripted.default = lambda _: Reply(
        text=f"TASK: Plan a trip.\nPROGRESS:\n1. Part {next(numbers)} was read."
    )
    run = compact(agent, chunk_chars=20_000)
    prompts = [read_message_texts(request)[-1] for request in list_summary_calls(scripted)]
    *parts, merge_prompt = prompts
    assert len(parts) >= 2
    assert not any("Part 1 was read" in text for text in parts)
    assert all(f"Part {number} was read." in merge_prompt for number in range(1, len(parts) + 1))
    assert "lisbon trip" not in merge_prompt
    assert run.summary_after == f"TASK: Plan a trip.\nPROGRESS:\n1. Part {len(prompts)} was read."
    assert all(text.count("0001 lisbon") == (index == 0) for index, text in enumerate(prompts))


def test_it_is_one_call_where_all_fits(agent: Session, scripted: ScriptedModel) -> None:
    assert compact(agent).provider_calls == 1


def test_it_is_retried_five_times_after_1_2_4_8_and_16_seconds(
    agent: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    monkeypatch.setattr(leases, "wait_while_claimed", lambda _, seconds: delays.append(seconds))
    scripted.script(*[DOWN] * 5)
    run = compact(agent)
    assert (run.status, run.provider_calls, delays) == ("applied", 6, [1, 2, 4, 8, 16])


def test_all_retries_exhausted_it_says_why(agent: Session, scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat(summary=DOWN)
    run = compact(agent, backoff=[0.001, 0.002, 0.004, 0.008, 0.016])
    assert run.provider_calls == 6
    assert "out of order" in run.reason


def test_a_summary_is_compressed_again_with_what_came_after(
    agent: Session, scripted: ScriptedModel
) -> None:
    """Previously compacted summaries are not protected."""
    compact(agent)
    fill_session(agent, messages=4)
    scripted.default = summarize_or_chat(
        summary=Reply(text=f"{AS_IN_THE_DOCUMENT}\nAll of it is done, and nothing remains.")
    )
    run = compact(agent)
    assert run.summary_after == f"{AS_IN_THE_DOCUMENT}\nAll of it is done, and nothing remains."
    prompts = "".join(
        read_message_texts(request)[-1] for request in list_summary_calls(scripted)[1:]
    )
    assert prompts.count("Keeta order #KT-9284") == 1
