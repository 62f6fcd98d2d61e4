"""BaseAgent's pruning (seed 003), with the figures of its diagram and of its log.

The diagram prunes 150K tokens to 60K, the log 148,000 to 93,000. The two tuning profiles follow.
"""

from dataclasses import replace

import pytest

from compaction.core.estimate import measure
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.systems.kit.settings import PruneKnobs
from tests.support.stage_transcripts import Summarizer, answer, compact, result, user

BASEAGENT = PRESETS["baseagent"]
WINDOW = 200_000
PLACEHOLDER = "[Old tool result content cleared]"


def make_round(
    seq: int, tokens: int, *, call_tokens: int = 4
) -> tuple[TranscriptEntry, TranscriptEntry]:
    """Build an answer that calls a tool, and a result of that many tokens."""
    return answer(seq, "", calls="a", tokens=call_tokens), result(
        seq + 1, "a", "x" * 4 * tokens, tokens=tokens
    )


def make_newest_turns(first: int) -> tuple[TranscriptEntry, ...]:
    """Build two short turns, which the scan skips."""
    return (
        user(first, tokens=1),
        answer(first + 1, tokens=1),
        user(first + 2, tokens=1),
        answer(first + 3, tokens=1),
    )


def test_the_constants_are_the_seeds() -> None:
    knobs = BASEAGENT.get(PruneKnobs)
    assert (knobs.protect_tokens, knobs.minimum_savings, knobs.strict, knobs.skip_user_turns) == (
        40_000,
        20_000,
        True,
        2,
    )
    assert (knobs.crossing_item, knobs.placeholder) == ("prune", PLACEHOLDER)


def test_the_diagram_prunes_150_000_tokens_to_60_000() -> None:
    """The diagram: system 5K, user 1K, three calls of 10K with results of 50K, 40K and 24K.

    The newest 24K stay.
    """
    rounds = (
        *make_round(2, 50_000, call_tokens=10_000),
        *make_round(4, 40_000, call_tokens=10_000),
        *make_round(6, 24_000, call_tokens=10_000),
    )
    entries = (user(1, tokens=1_000), *rounds, *make_newest_turns(8))
    summarizer = Summarizer()
    outcome = compact(
        Transcript(entries=entries, overhead_tokens=5_000), BASEAGENT, summarizer, window=WINDOW
    )
    assert outcome.tokens_before == 150_004
    assert [edit.seq for edit in outcome.edits] == [3, 5]
    assert outcome.tokens_after == pytest.approx(60_000, abs=40)
    assert (outcome.stages_used, summarizer.tasks) == (("prune_tool_outputs",), [])


def test_the_log_recovers_55_000_of_95_000_and_ends_at_93_000() -> None:
    """Prune scan: 95000 total tokens, 55000 prunable; 12 tool outputs; 148000 -> 93000 tokens."""
    old = tuple(e for n in range(12) for e in make_round(2 + 2 * n, 4_583 if n else 4_587))
    recent = tuple(e for n in range(8) for e in make_round(26 + 2 * n, 5_000))
    entries = (user(1, tokens=52_916), *old, *recent, *make_newest_turns(42))
    outcome = compact(Transcript(entries=entries), BASEAGENT, window=WINDOW)
    assert outcome.tokens_before == 148_000
    assert len(outcome.edits) == 12
    assert outcome.tokens_after == pytest.approx(93_000, abs=200)
    assert outcome.stages_used == ("prune_tool_outputs",)


def test_the_scan_skips_the_newest_two_user_turns() -> None:
    entries = (
        user(1),
        *make_round(2, 60_000),
        user(4),
        *make_round(5, 50_000),
        user(7),
        *make_round(8, 50_000),
        answer(10),
    )
    outcome = compact(entries, BASEAGENT, window=WINDOW)
    assert [edit.seq for edit in outcome.edits] == [3]


def test_with_one_user_turn_there_is_nothing_to_scan_and_a_summary_is_written() -> None:
    entries = (
        user(1),
        *make_round(2, 60_000),
        *make_round(4, 60_000),
        *make_round(6, 30_000),
        answer(8),
    )
    assert compact(entries, BASEAGENT, window=WINDOW).stages_used == ("summarize",)


@pytest.mark.parametrize(
    ("prunable", "stage"), [(20_013, "prune_tool_outputs"), (20_012, "summarize")]
)
def test_it_prunes_only_when_more_than_20_000_tokens_are_saved(prunable: int, stage: str) -> None:
    """The placeholder itself takes 12 tokens, its framing included."""
    entries = (user(1), *make_round(2, prunable), *make_round(4, 40_000), *make_newest_turns(6))
    missing = 142_801 - measure(Transcript(entries=entries), BASEAGENT).tokens
    assert compact(
        Transcript(entries=entries, overhead_tokens=missing), BASEAGENT, window=WINDOW
    ).stages_used == (stage,)


def test_the_second_pass_replaces_what_is_older_than_two_turns_by_a_hand_off_summary() -> None:
    entries = (user(1, tokens=150_000), answer(2, tokens=10), *make_newest_turns(3))
    outcome = compact(entries, BASEAGENT, Summarizer("CHECKPOINT"), window=WINDOW)
    assert (outcome.stages_used, outcome.summary, outcome.boundary_seq) == (
        ("summarize",),
        "CHECKPOINT",
        3,
    )


@pytest.mark.parametrize(
    ("profile", "first_over", "protected_rounds"),
    [("baseagent", 142_801, 8), ("baseagent-long", 117_601, 6), ("baseagent-complex", 151_201, 12)],
)
def test_the_tuning_profiles_act_earlier_and_protect_less_or_the_reverse(
    profile: str, first_over: int, protected_rounds: int
) -> None:
    policy: Policy = PRESETS[profile]
    rounds = tuple(e for n in range(20) for e in make_round(2 + 2 * n, 5_000))
    entries = (user(1, tokens=1_000), *rounds, *make_newest_turns(42))
    missing = first_over - sum(entry.tokens for entry in entries)
    assert (
        compact(
            Transcript(entries=entries, overhead_tokens=missing - 1), policy, window=WINDOW
        ).status
        == "skipped"
    )
    outcome = compact(Transcript(entries=entries, overhead_tokens=missing), policy, window=WINDOW)
    assert len(outcome.edits) == 20 - protected_rounds
    unchanged_results = [
        replace(entry)
        for entry in outcome.entries
        if entry.role == "tool" and entry.content != PLACEHOLDER
    ]
    assert len(unchanged_results) == protected_rounds
