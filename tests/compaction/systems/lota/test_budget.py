"""Lota's document as far as sizes go: threshold and trigger, estimate, tail."""

import pytest

from compaction.core.budget import Budget, plan
from compaction.core.estimate import LastUsage, Measurement, measure
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.systems.kit.settings import BudgetKnobs, TailKnobs, WritingKnobs
from compaction.systems.lota.settings import MemoryKnobs, StateKnobs

LOTA = PRESETS["lota"]


def plan_budget(window: int | None) -> Budget:
    budget = plan(LOTA, window)
    assert budget is not None
    return budget


def test_the_sdk_operates_within_200000_tokens_where_nothing_else_is_known() -> None:
    assert plan_budget(None).window == 200_000


def test_default_settings_give_a_threshold_of_140000() -> None:
    assert (
        LOTA.get(BudgetKnobs).output_reserve,
        LOTA.get(BudgetKnobs).safety_margin,
        LOTA.trigger.threshold,
    ) == (
        32_000,
        8_000,
        0.7,
    )
    assert plan_budget(200_000).threshold == 140_000
    assert plan_budget(200_000).is_over(140_000)
    assert not plan_budget(200_000).is_over(139_999)


@pytest.mark.parametrize(
    ("window", "threshold"),
    [
        (1_000_000, 700_000),  # 70 %
        (133_400, 93_380),  # just above where the two meet
        (133_000, 93_000),  # the window without reserve and margin
        (100_000, 60_000),
        (8_192, 4_096),  # 8,192 − 40,000 is negative: never below half of the window
    ],
)
def test_the_threshold_is_the_smaller_of_70_percent_and_what_reserve_and_margin_leave(
    window: int, threshold: int
) -> None:
    assert plan_budget(window).threshold == threshold


def test_it_estimates_three_characters_to_a_token_of_summary_and_live_messages() -> None:
    entries = (
        TranscriptEntry(seq=1, role="user", content="x" * 300),
        TranscriptEntry(seq=2, role="assistant", content="x" * 600),
    )
    live = Transcript(
        entries=entries, summary="s" * 90, system="never counted " * 99, tools="nor these " * 99
    )
    assert measure(live, LOTA) == Measurement(tokens=100 + 200 + 30)


def test_no_provider_count_enters_the_estimate() -> None:
    transcript = Transcript(entries=(TranscriptEntry(seq=1, role="user", content="x" * 300),))
    assert measure(
        transcript, LOTA, LastUsage(tokens=90_000, input=89_000, after_seq=1)
    ) == Measurement(tokens=100)


def test_the_check_runs_at_the_end_of_each_turn() -> None:
    assert LOTA.trigger.phases == ("after_response", "manual")


def test_constants() -> None:
    assert (LOTA.get(TailKnobs).kind, LOTA.get(TailKnobs).count) == (
        "count",
        6,
    )  # WORKSTREAM_RAW_TAIL_MESSAGES
    assert LOTA.get(WritingKnobs).chunk_chars == 120_000  # COMPACTION_CHUNK_MAX_CHARS
    assert LOTA.get(WritingKnobs).rollup_tokens == 80_000  # SUMMARY_ROLLUP_MAX_TOKENS
    assert (LOTA.get(MemoryKnobs).entries, LOTA.get(MemoryKnobs).fold) == (15, 10)
    assert (LOTA.flow.workers, LOTA.flow.lease_seconds, LOTA.flow.attempts) == (2, 300, 2)
    assert LOTA.get(StateKnobs).__class__(
        decisions=8,
        constraints=6,
        tasks=10,
        questions=5,
        risks=5,
        artifacts=10,
        contributions=6,
    ) == LOTA.get(StateKnobs)
