"""NeuroLink's pipeline (seed 000): its four stages, their constants and tool pair repair."""

from dataclasses import replace

from compaction.core.budget import plan
from compaction.core.estimate import measure
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptEntry
from compaction.systems.neurolink.settings import DedupeKnobs
from tests.support.stage_transcripts import (
    Summarizer,
    answer,
    apply_outcome,
    compact,
    make_tool_exchange,
    result,
    talk,
    user,
)
from textkit.tool_pairs import CALL_COMPACTED, RESULT_COMPACTED

NEUROLINK = PRESETS["neurolink"]
WINDOW = 200_000
THRESHOLD = 108_800


def set_size(entries: tuple[TranscriptEntry, ...], tokens: int) -> tuple[TranscriptEntry, ...]:
    """Return the entries with that many tokens each."""
    return tuple(replace(entry, tokens=tokens) for entry in entries)


def make_rounds(count: int, tokens: int, first: int) -> tuple[TranscriptEntry, ...]:
    """Build rounds of one call, whose results have that many tokens."""
    pairs = [
        (
            answer(seq, "", calls="a", tokens=4),
            result(seq + 1, "a", "x" * 4 * tokens, tokens=tokens),
        )
        for seq in range(first, first + 2 * count, 2)
    ]
    return tuple(entry for pair in pairs for entry in pair)


def test_the_pipeline_runs_at_the_threshold_and_not_below() -> None:
    assert plan(NEUROLINK, WINDOW) is not None
    entries = set_size(talk(100), 1_088)
    measurement = measure(Transcript(entries=entries), NEUROLINK)
    missing = THRESHOLD - measurement.tokens
    assert compact(
        Transcript(entries=entries, overhead_tokens=missing), NEUROLINK, window=WINDOW
    ).is_applied
    assert (
        compact(
            Transcript(entries=entries, overhead_tokens=missing - 1), NEUROLINK, window=WINDOW
        ).status
        == "skipped"
    )


def test_stages_run_in_order_and_each_only_when_the_one_before_was_not_enough() -> None:
    assert NEUROLINK.stages == (
        "prune_tool_outputs",
        "dedupe_file_reads",
        "summarize",
        "slide_window",
    )
    entries = (
        *set_size(talk(2), 100),
        *make_rounds(20, 5_000, 3),
        *set_size(talk(20, first=43), 1_000),
    )
    summarizer = Summarizer()
    outcome = compact(entries, NEUROLINK, summarizer, window=WINDOW)
    assert (outcome.stages_used, summarizer.tasks) == (("prune_tool_outputs",), [])
    assert outcome.tokens_after < THRESHOLD
    again = compact(apply_outcome(Transcript(entries=entries), outcome), NEUROLINK, window=WINDOW)
    assert again.status == "skipped"


# Stage 1: tool output pruning


def test_stage_1_protects_the_newest_40_000_tokens_of_tool_outputs() -> None:
    entries = (
        *set_size(talk(2), 100),
        *make_rounds(22, 5_000, 3),
        *set_size(talk(30, first=47), 100),
    )
    outcome = compact(entries, NEUROLINK, window=WINDOW)
    pruned_edits = [edit for edit in outcome.edits if edit.kind == "pruned"]
    assert len(pruned_edits) == 22 - 8
    assert {edit.replacement for edit in pruned_edits} == {"[Tool result cleared]"}
    assert max(edit.seq for edit in pruned_edits) < 47 - 16


def test_stage_1_keeps_the_result_that_crosses_40_000() -> None:
    entries = (
        *set_size(talk(2), 100),
        *make_rounds(10, 12_000, 3),
        *set_size(talk(20, first=23), 100),
    )
    assert len(compact(entries, NEUROLINK, window=WINDOW).edits) == 10 - 4


def test_stage_1_is_applied_only_when_it_saves_20_000_tokens() -> None:
    entries = (
        *set_size(talk(2), 100),
        *make_rounds(5, 11_900, 3),
        *set_size(talk(60, first=13), 1_000),
    )
    assert compact(entries, NEUROLINK, window=WINDOW).stages_used == ("summarize",)
    entries = (
        *set_size(talk(2), 100),
        *make_rounds(6, 11_900, 3),
        *set_size(talk(60, first=15), 1_000),
    )
    assert compact(entries, NEUROLINK, window=WINDOW).stages_used == ("prune_tool_outputs",)


def test_stage_1_never_prunes_the_skill_tool() -> None:
    entries = tuple(
        replace(entry, tool_name="skill") if entry.role == "tool" else entry
        for entry in make_rounds(30, 5_000, 3)
    )
    outcome = compact(
        (*set_size(talk(2), 100), *entries, *set_size(talk(30, first=63), 100)),
        NEUROLINK,
        window=WINDOW,
    )
    assert "prune_tool_outputs" not in outcome.stages_used


# Stage 2: file read deduplication


def test_stage_2_keeps_the_latest_read_of_each_file() -> None:
    text = "line\n" * 8_000
    reads = tuple(
        entry
        for seq in range(3, 11, 2)
        for entry in make_tool_exchange(seq, '{"path": "src/app.ts"}', text)
    )
    entries = (*set_size(talk(2), 100), *reads, *set_size(talk(60, first=11), 1_100))
    outcome = compact(entries, NEUROLINK, window=WINDOW)
    assert outcome.stages_used == ("dedupe_file_reads",)
    assert {edit.replacement for edit in outcome.edits} == {
        "[File src/app.ts - refer to latest read below]"
    }
    assert [edit.seq for edit in outcome.edits] == [4, 6, 8]


def test_stage_2_needs_savings_of_30_percent() -> None:
    assert NEUROLINK.get(DedupeKnobs).minimum_ratio == 0.3


# Stage 3: summarization


def test_stage_3_keeps_30_percent_of_the_messages_and_at_least_4() -> None:
    outcome = compact(set_size(talk(100), 1_200), NEUROLINK, window=WINDOW)
    assert (outcome.stages_used, outcome.boundary_seq) == (("summarize",), 71)
    outcome = compact(set_size(talk(10), 12_000), NEUROLINK, window=WINDOW)
    assert outcome.boundary_seq == 7
    # 30 % of 14 messages are 4.2: with four, less than that would stay.
    outcome = compact(set_size(talk(14), 8_200), NEUROLINK, window=WINDOW)
    assert (outcome.stages_used, outcome.boundary_seq) == (("summarize",), 10)


def test_stage_3_keeps_the_first_pair_and_merges_the_summary_before() -> None:
    summarizer = Summarizer()
    outcome = compact(
        Transcript(entries=set_size(talk(100), 1_200), summary="Before."),
        NEUROLINK,
        summarizer,
        window=WINDOW,
    )
    assert outcome.exempt_seqs == (1, 2)
    assert [task.previous for task in summarizer.tasks] == ["Before."]


def test_stage_3_does_not_summarize_four_messages_within_the_threshold() -> None:
    assert (
        compact(set_size(talk(4), 1_000), NEUROLINK, window=WINDOW, force=True).status == "skipped"
    )


def test_a_summary_that_fails_falls_through_to_stage_4() -> None:
    outcome = compact(
        set_size(talk(100), 1_200), NEUROLINK, Summarizer(fails="LLM error"), window=WINDOW
    )
    assert (outcome.status, outcome.stages_used, outcome.summary_error) == (
        "applied",
        ("slide_window",),
        "LLM error",
    )


# Stage 4: sliding window truncation


def test_stage_4_keeps_the_first_pair_and_removes_half_of_the_rest_an_even_number() -> None:
    outcome = compact(
        set_size(talk(101), 1_200), NEUROLINK, Summarizer(fails="LLM error"), window=WINDOW
    )
    assert outcome.exempt_seqs == (1, 2)
    assert outcome.messages_compacted == 48
    assert (
        outcome.marker
        == "[Earlier conversation history was truncated to fit within context limits]"
    )


def test_stage_4_removes_nothing_that_is_tagged_for_good() -> None:
    """The outcome only moves a boundary, so that a rewind shows the hidden messages again."""
    outcome = compact(
        set_size(talk(101), 1_200), NEUROLINK, Summarizer(fails="LLM error"), window=WINDOW
    )
    assert outcome.edits == ()
    assert outcome.boundary_seq == 51


# After an overflow; repair


def test_after_an_overflow_it_comes_down_to_70_percent_of_the_input() -> None:
    entries = set_size(talk(100), 1_000)
    assert compact(entries, NEUROLINK, window=WINDOW).status == "skipped"
    outcome = compact(entries, NEUROLINK, window=WINDOW, recovering=True)
    assert outcome.is_applied
    assert outcome.tokens_after <= 0.7 * 136_000


def test_tool_pair_repair_says_what_the_seed_says() -> None:
    assert RESULT_COMPACTED == "[Tool result unavailable - conversation was compacted]"
    assert CALL_COMPACTED.format(tool="grep") == "[Tool call for grep - conversation was compacted]"


def test_a_manual_compaction_tells_stages_and_tokens_saved() -> None:
    outcome = compact(
        (*set_size(talk(20), 1_000), user(21, tokens=10)), NEUROLINK, window=WINDOW, force=True
    )
    assert outcome.stages_used == ("summarize",)
    assert outcome.tokens_before - outcome.tokens_after > 10_000
