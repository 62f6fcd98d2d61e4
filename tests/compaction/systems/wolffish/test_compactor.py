"""Wolffish's compactor (seed 002): targets, excerpts, protected messages and the 41 emails."""

import pytest

from compaction.core.budget import plan
from compaction.core.estimate import LastUsage, measure
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.systems.kit.settings import TailKnobs, TargetKnobs
from compaction.systems.wolffish.excerpt import cut_middle
from compaction.systems.wolffish.settings import ExcerptKnobs
from tests.support.stage_transcripts import (
    Summarizer,
    answer,
    apply_outcome,
    compact,
    result,
    talk,
    user,
)

WOLFFISH = PRESETS["wolffish"]
WINDOW = 200_000
MAIL_WINDOW = 320_000  # a pass over eight emails comes down to its half by excerpts alone
DEEPSEEK = {"window": 1_000_000, "reserve": 32_768}


def make_batch(first: int, emails: int, characters: int = 49_400) -> tuple[TranscriptEntry, ...]:
    """Build an answer that reads that many emails, and the emails."""
    calls = tuple(
        TranscriptCall(
            id=f"mail_{first}_{n}", name="gmail_read", arguments=f'{{"id": "{first}-{n}"}}'
        )
        for n in range(emails)
    )
    bodies = (f"From: {n}. ".ljust(characters, "x") for n in range(emails))
    results = (
        result(first + 1 + n, calls[n].id, body, tool="gmail_read") for n, body in enumerate(bodies)
    )
    return (TranscriptEntry(seq=first, role="assistant", calls=calls), *results)


def list_seqs(outcome: object) -> list[int]:
    return [edit.seq for edit in outcome.edits]  # type: ignore[attr-defined]


# Constants


def test_the_constants_are_the_seeds() -> None:
    knobs = WOLFFISH.get(ExcerptKnobs)
    assert (
        WOLFFISH.estimate.chars_per_token,
        WOLFFISH.trigger.threshold,
        WOLFFISH.get(TargetKnobs).ratio,
    ) == (1.5, 0.75, 0.50)
    assert (
        WOLFFISH.get(TailKnobs).kind,
        WOLFFISH.get(TailKnobs).count,
        WOLFFISH.get(TailKnobs).min_chars,
    ) == (
        "per_role",
        3,
        500,
    )
    assert (
        knobs.head_ratio,
        knobs.head_cap,
        knobs.tail_ratio,
        knobs.tail_cap,
        knobs.expected_ratio,
    ) == (0.15, 6_000, 0.08, 3_000, 0.25)


# Step 3: proportional truncation


def test_45_000_characters_keep_6_000_and_3_000_under_the_seeds_label() -> None:
    text = "h" * 6_000 + "m" * 36_000 + "t" * 3_000
    label = (
        "[TRUNCATED — 45,000 chars original, 36,000 chars omitted, "
        "showing first 6,000 + last 3,000 chars]"
    )
    assert (
        cut_middle(text, WOLFFISH.get(ExcerptKnobs))
        == "h" * 6_000 + f"\n\n{label}\n\n" + "t" * 3_000
    )


@pytest.mark.parametrize(
    ("size", "head", "tail"),
    [(1_000, 150, 80), (10_000, 1_500, 800), (39_999, 5_999, 3_000), (100_000, 6_000, 3_000)],
)
def test_head_is_15_percent_and_tail_8_percent_with_caps(size: int, head: int, tail: int) -> None:
    assert f"showing first {head:,} + last {tail:,} chars" in cut_middle(
        "x" * size, WOLFFISH.get(ExcerptKnobs)
    )


def test_calls_of_an_answer_are_preserved() -> None:
    entries = (
        user(1),
        TranscriptEntry(
            seq=2,
            role="assistant",
            content="x" * 300_000,
            calls=(TranscriptCall(id="a", name="t"),),
        ),
        result(3, "a"),
        *talk(8, 600, first=4),
    )
    outcome = compact(entries, WOLFFISH, window=WINDOW)
    assert list_seqs(outcome) == [2]
    assert outcome.entries[1].calls == entries[1].calls


# Target selection


def test_the_largest_tool_results_go_first_until_the_savings_cover_the_excess_over_half() -> None:
    sizes = [20_000, 130_000, 60_000, 10_000, 10_000, 1_000, 1_000, 1_000]
    calls = tuple(TranscriptCall(id=str(n), name="t") for n in range(8))
    entries = (
        user(1),
        TranscriptEntry(seq=2, role="assistant", calls=calls),
        *(result(3 + n, str(n), "x" * size) for n, size in enumerate(sizes)),
    )
    outcome = compact(entries, WOLFFISH, window=WINDOW, only_stages=("excerpt",))
    assert list_seqs(outcome) == [4]
    excess = outcome.tokens_before - 100_000
    assert excess <= 130_000 / 1.5 * 0.75


def test_answers_are_cut_only_when_tool_results_were_not_enough_and_questions_last() -> None:
    few = tuple(answer(2 + n, calls=each) for n, each in enumerate("abcd"))
    results = tuple(result(6 + n, each, "x" * 9_000) for n, each in enumerate("abcd"))
    outcome = compact(
        (user(1), *few, *results, *talk(14, 20_000, first=11)),
        WOLFFISH,
        window=WINDOW,
        only_stages=("excerpt",),
    )
    roles = {entry.seq: entry.role for entry in outcome.entries}
    cut_roles = [roles[seq] for seq in list_seqs(outcome)]
    assert cut_roles.count("tool") == 1
    assert cut_roles.count("assistant") == 4
    assert cut_roles.count("user") == 4


def test_questions_are_spared_where_answers_are_enough() -> None:
    results = tuple(result(3 + n, each, "x" * 9_000) for n, each in enumerate("abcd"))
    old = tuple(
        (user if seq % 2 else answer)(seq, "x" * (1_000 if seq % 2 else 40_000))
        for seq in range(7, 17)
    )
    entries = (user(1), answer(2, calls="abcd"), *results, *old, *talk(6, 400, first=17))
    outcome = compact(entries, WOLFFISH, window=WINDOW, only_stages=("excerpt",))
    assert list_seqs(outcome) == [3, 8, 10, 12]


def test_first_message_errors_small_ones_and_the_last_three_of_a_role_are_protected() -> None:
    calls = "abcdefg"
    sizes = {"a": 100_000, "b": 500, "c": 60_000, "d": 60_000, "e": 8_000, "f": 8_000, "g": 8_000}
    results = [
        result(3 + n, each, "x" * sizes[each], is_error=each == "a") for n, each in enumerate(calls)
    ]
    entries = (user(1, "x" * 8_000), answer(2, calls=calls), *results, *talk(6, 2_000, first=11))
    outcome = compact(entries, WOLFFISH, window=WINDOW, force=True, only_stages=("excerpt",))
    assert list_seqs(outcome) == [5, 6]


def test_an_old_summary_is_compacted_again_with_what_came_after() -> None:
    first = compact((user(1), *make_batch(2, 15)), WOLFFISH, window=WINDOW * 2)
    before = apply_outcome(Transcript(entries=(user(1), *make_batch(2, 15))), first)
    summarizer = Summarizer("Again.")
    longer = Transcript(
        entries=(*before.entries, *make_batch(30, 15)),
        summary=before.summary,
        summarized_up_to=before.summarized_up_to,
    )
    second = compact(longer, WOLFFISH, summarizer, window=WINDOW * 2)
    assert (second.summary, [task.previous for task in summarizer.tasks]) == (
        "Again.",
        ["They spoke."],
    )


# Layers


def test_layer_2_takes_the_higher_of_the_estimate_and_the_last_actual_count() -> None:
    transcript = Transcript(entries=(user(1), *make_batch(2, 4, characters=30_000), answer(7)))
    budget = plan(WOLFFISH, WINDOW)
    assert budget is not None
    assert not budget.is_over(measure(transcript, WOLFFISH).tokens)
    actual = measure(transcript, WOLFFISH, LastUsage(tokens=160_100, input=160_000, after_seq=7))
    assert actual.tokens == 160_000
    assert compact(transcript, WOLFFISH, window=WINDOW, measurement=actual).stages_used == (
        "excerpt",
        "summarize",
    )


def test_layer_3_compacts_below_the_threshold_when_the_provider_refused() -> None:
    entries = (user(1), *make_batch(2, 5, characters=20_000))
    assert compact(entries, WOLFFISH, window=WINDOW).status == "skipped"
    assert list_seqs(compact(entries, WOLFFISH, window=WINDOW, force=True)) == [3, 4]


# Steps 1 to 5, and the 41 emails


def test_step_1_strips_images_first_and_that_may_be_enough() -> None:
    calls = tuple(TranscriptCall(id=f"c{seq}", name="look") for seq in range(4, 20))
    results = (
        TranscriptEntry(
            seq=seq,
            role="tool",
            content="A screenshot.",
            images=10,
            call_id=f"c{seq}",
            tool_name="look",
        )
        for seq in range(4, 20)
    )
    caller = TranscriptEntry(seq=3, role="assistant", calls=calls)
    entries = (user(1), user(2, "My garden.", images=1), caller, *results)
    summarizer = Summarizer()
    outcome = compact(entries, WOLFFISH, summarizer, window=WINDOW)
    assert outcome.stages_used == ("strip_images",)
    # Of all tool results, the newest three too; and a user's picture is no screenshot.
    assert [edit.seq for edit in outcome.edits] == list(range(4, 20))
    assert {edit.replacement for edit in outcome.edits} == {
        "[Screenshot analyzed — image omitted from context]\nA screenshot."
    }


def test_step_4_one_call_sums_up_the_originals_and_step_5_leaves_the_excerpts_in_place() -> None:
    entries = (user(1, "Brief me."), *make_batch(2, 8))
    summarizer = Summarizer("TASK: brief.")
    outcome = compact(entries, WOLFFISH, summarizer, window=MAIL_WINDOW)
    assert len(summarizer.tasks) == 1
    assert [entry.content for entry in summarizer.tasks[0].entries] == [
        entry.content for entry in entries
    ]
    assert (outcome.summary, outcome.boundary_seq) == ("TASK: brief.", None)
    assert [entry.seq for entry in outcome.entries] == [entry.seq for entry in entries]


def test_when_the_summary_fails_the_excerpts_stay() -> None:
    outcome = compact(
        (user(1), *make_batch(2, 8)),
        WOLFFISH,
        Summarizer(fails="All 5 attempts failed."),
        window=MAIL_WINDOW,
    )
    assert (outcome.status, outcome.summary, outcome.summary_error) == (
        "applied",
        None,
        "All 5 attempts failed.",
    )
    assert outcome.edits


def test_41_emails_are_read_in_three_batches_within_the_budget() -> None:
    """The section Real-World Performance: 541K tokens after the first 15 emails.

    Before each later batch a pass compacts down to half of 967,232 tokens.
    """
    budget = plan(WOLFFISH, DEEPSEEK["window"], output_reserve=DEEPSEEK["reserve"])
    assert budget is not None
    assert (budget.input, budget.threshold, budget.target) == (967_232, 725_424, 483_616)
    transcript = Transcript(
        entries=(user(1, "Read all unread emails and brief me."),), overhead_tokens=47_000
    )
    sizes, passes = [], 0
    for first, emails in ((2, 15), (20, 15), (40, 11)):
        transcript = Transcript(
            entries=(*transcript.entries, *make_batch(first, emails)),
            summary=transcript.summary,
            overhead_tokens=47_000,
            summarized_up_to=transcript.summarized_up_to,
        )
        sizes.append(measure(transcript, WOLFFISH).tokens)
        outcome = compact(
            transcript, WOLFFISH, window=budget.input, measurement=measure(transcript, WOLFFISH)
        )
        passes += outcome.is_applied
        transcript = apply_outcome(transcript, outcome) if outcome.is_applied else transcript
        assert measure(transcript, WOLFFISH).tokens <= budget.threshold
    assert sizes[0] == pytest.approx(541_000, rel=0.01)
    assert max(sizes) > budget.threshold
    assert passes == 2
    mails = [entry for entry in transcript.entries if entry.tool_name == "gmail_read"]
    assert len(mails) == 41
    assert transcript.summary


def test_the_card_tells_targets_with_tool_sizes_and_method() -> None:
    outcome = compact((user(1), *make_batch(2, 8)), WOLFFISH, window=MAIL_WINDOW)
    target = outcome.targets[0]
    assert (target.tool, target.method, target.chars_before) == ("gmail_read", "excerpted", 49_400)
    assert target.chars_after == len(cut_middle("x" * 49_400, WOLFFISH.get(ExcerptKnobs)))
    assert outcome.messages_compacted == len(outcome.targets)
    assert outcome.tokens_before - outcome.tokens_after > 0
