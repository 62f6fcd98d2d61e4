"""The stage summarize: what the summarizer gets, what stays, and what happens when it fails."""

from dataclasses import replace

import pytest

from compaction.core.estimate import Measurement
from compaction.core.transcript import Transcript, TranscriptEntry
from tests.support.stage_transcripts import (
    WINDOW,
    Summarizer,
    answer,
    apply_outcome,
    build_policy,
    compact,
    result,
    talk,
    user,
)

TAIL = {"kind": "count", "count": 2}
SHOWN = build_policy("excerpt", "summarize", protect=TAIL, target={"ratio": 0.5})
ORIGINALS = build_policy(
    "excerpt", "summarize", protect=TAIL, target={"ratio": 0.5}, summary={"source": "originals"}
)
BOOK = "".join(f"Line {n}. " for n in range(4_000))


def long_read(first: int = 1) -> tuple[TranscriptEntry, ...]:
    return (
        user(first, "Read it."),
        answer(first + 1, calls="a"),
        result(first + 2, "a", BOOK),
        user(first + 3, "Well?"),
        answer(first + 4),
    )


def test_an_excerpt_that_is_enough_needs_no_summary_where_the_policy_sums_up_what_is_shown() -> (
    None
):
    summarizer = Summarizer()
    outcome = compact(long_read(), SHOWN, summarizer)
    assert (outcome.stages_used, summarizer.tasks) == (("excerpt",), [])


def test_where_it_sums_up_originals_the_excerpt_stays_and_the_summary_is_added() -> None:
    summarizer = Summarizer("They read a book.")
    outcome = compact(long_read(), ORIGINALS, summarizer)
    assert (outcome.stages_used, outcome.summary, outcome.boundary_seq) == (
        ("excerpt", "summarize"),
        "They read a book.",
        None,
    )
    assert [entry.seq for entry in outcome.entries] == [1, 2, 3, 4, 5]
    assert "TRUNCATED" in outcome.entries[2].content
    assert [entry.content for entry in summarizer.tasks[0].entries] == [
        "Read it.",
        "An answer.",
        BOOK,
        "Well?",
        "An answer.",
    ]
    assert outcome.summarized_up_to == 5


def test_the_next_summary_is_given_only_what_the_last_one_did_not_tell() -> None:
    first = compact(long_read(), ORIGINALS)
    before = apply_outcome(Transcript(entries=long_read()), first)
    grown = Transcript(
        entries=(*before.entries, *long_read(6)),
        summary=before.summary,
        summarized_up_to=before.summarized_up_to,
    )
    summarizer = Summarizer("Two books.")
    second = compact(grown, ORIGINALS, summarizer)
    assert second.summary == "Two books."
    assert [task.previous for task in summarizer.tasks] == ["They spoke."]
    assert [entry.seq for entry in summarizer.tasks[0].entries] == [6, 7, 8, 9, 10]


def test_what_is_kept_before_the_boundary_is_told_once() -> None:
    by_count = build_policy("summarize", protect={"kind": "count", "count": 4, "first": 2})
    entries = (
        user(1, pinned=True),
        answer(2),
        *talk(2, first=3),
        user(5, pinned=True),
        *talk(60, first=6),
    )
    first = compact(entries, by_count)
    assert first.exempt_seqs == (1, 2, 5)
    before = apply_outcome(Transcript(entries=entries), first)
    summarizer = Summarizer("Still speaking.")
    second = compact(
        replace(before, entries=(*before.entries, *talk(60, first=66))), by_count, summarizer
    )
    assert [entry.seq for task in summarizer.tasks for entry in task.entries] == list(
        range(first.boundary_seq or 0, second.boundary_seq or 0)
    )
    assert second.exempt_seqs == (1, 2, 5)


def test_a_pinned_message_is_told_of_only_once_it_is_no_longer_pinned() -> None:
    by_count = build_policy("summarize", protect={"kind": "count", "count": 4})
    entries = (*talk(2), user(3, "Never on a Friday.", pinned=True), *talk(60, first=4))
    summarizer = Summarizer()
    first = compact(entries, by_count, summarizer)
    assert first.exempt_seqs == (3,)
    assert first.untold_seqs == (3,)
    before = apply_outcome(Transcript(entries=entries), first)
    second_transcript = replace(before, entries=(*before.entries, *talk(60, first=64)))
    second = compact(second_transcript, by_count, summarizer)
    assert (second.exempt_seqs, second.untold_seqs) == ((3,), (3,))
    after = apply_outcome(second_transcript, second)
    unpinned_entries = tuple(replace(entry, pinned=False) for entry in after.entries)
    last_transcript = replace(after, entries=(*unpinned_entries, *talk(60, first=124)))
    last = compact(last_transcript, by_count, summarizer)
    assert (last.exempt_seqs, last.untold_seqs) == ((), ())
    told_seqs = [entry.seq for task in summarizer.tasks for entry in task.entries]
    assert sorted(told_seqs) == list(range(1, last.boundary_seq or 0))
    assert 3 in [entry.seq for entry in summarizer.tasks[-1].entries]


def test_what_slid_past_the_boundary_untold_is_told_by_the_next_summary() -> None:
    sliding = build_policy(
        "slide_window", protect={"kind": "count", "count": 2}, target={"otherwise": "fits"}
    )
    entries = (
        *talk(4, first=20),
        user(24, "The newest question."),
        *(answer(seq, "x" * 800) for seq in range(25, 75)),
    )
    slid = compact(Transcript(entries=entries, summary="Before.", boundary_seq=20), sliding)
    assert (slid.exempt_seqs, slid.summarized_up_to) == ((24,), 19)
    before = apply_outcome(Transcript(entries=entries), slid)
    summarizer = Summarizer()
    compact(
        replace(before, entries=(*before.entries, *talk(60, first=75))),
        build_policy("summarize"),
        summarizer,
    )
    assert [task.entries[0].seq for task in summarizer.tasks] == [24]


def test_the_boundary_moves_when_the_excerpts_leave_the_context_over_its_target() -> None:
    summarizer = Summarizer()
    outcome = compact((*long_read(), *talk(40, 700, first=6)), ORIGINALS, summarizer)
    assert outcome.stages_used == ("excerpt", "summarize")
    assert outcome.boundary_seq == 44
    assert BOOK in [entry.content for entry in summarizer.tasks[0].entries]
    assert outcome.edits == ()
    assert outcome.tokens_after <= WINDOW / 2


def test_what_an_earlier_summary_tells_of_may_go_without_another_call() -> None:
    entries = tuple(
        result(3, "a", "cut", original=BOOK) if entry.seq == 3 else entry
        for entry in (*long_read(), *talk(20, first=6))
    )
    earlier = Transcript(entries=entries, summary="All told.", summarized_up_to=25)
    summarizer = Summarizer()
    outcome = compact(earlier, build_policy("summarize", protect=TAIL), summarizer, force=True)
    assert (outcome.summary, outcome.boundary_seq, outcome.summarized_up_to, summarizer.tasks) == (
        "All told.",
        24,
        25,
        [],
    )


def test_the_summarizer_is_given_messages_as_they_are_shown_or_as_they_were() -> None:
    entries = (
        user(1),
        answer(2, calls="a"),
        result(3, "a", "cut", original=BOOK),
        *talk(50, first=4),
    )
    for source, source_text in (("shown", "cut"), ("originals", BOOK)):
        summarizer = Summarizer()
        compact(entries, build_policy("summarize", summary={"source": source}), summarizer)
        assert summarizer.tasks[0].entries[2].content == source_text


def test_when_no_summary_comes_the_excerpts_stay_and_the_reason_is_told() -> None:
    before = Transcript(entries=long_read(), summary="Earlier.")
    outcome = compact(before, ORIGINALS, Summarizer(fails="The model is away."))
    assert (outcome.status, outcome.summary, outcome.summary_error) == (
        "applied",
        "Earlier.",
        "The model is away.",
    )
    assert [edit.seq for edit in outcome.edits] == [3]
    assert outcome.stages_used == ("excerpt",)


def test_a_summary_that_will_not_do_is_a_failed_one() -> None:
    outcome = compact(long_read(), ORIGINALS, Summarizer("  "))
    assert (outcome.summary, outcome.summary_error) == (None, "The summary is empty.")


def test_when_no_other_stage_made_room_a_failed_summary_fails_the_pass() -> None:
    outcome = compact(
        talk(50),
        build_policy("prune_tool_outputs", "summarize"),
        Summarizer(fails="The model is away."),
    )
    assert (outcome.status, outcome.reason, outcome.edits) == ("failed", "The model is away.", ())


def test_a_later_stage_is_not_kept_from_its_turn_by_a_failed_summary() -> None:
    outcome = compact(
        talk(50), build_policy("summarize", "slide_window", "excerpt"), Summarizer(fails="No.")
    )
    assert outcome.stages_used == ("slide_window",)


def test_an_excerpt_too_small_to_pay_for_a_summary_gives_way_to_the_boundary() -> None:
    entries = (*talk(8, 1_000), user(20), answer(21))
    outcome = compact(entries, ORIGINALS, Summarizer("x" * 400), force=True)
    assert (outcome.status, outcome.boundary_seq) == ("applied", 20)


# Some stages only, by hand


def test_only_the_stages_asked_for_run() -> None:
    summarizer = Summarizer()
    outcome = compact(long_read(), ORIGINALS, summarizer, only_stages=("excerpt",))
    assert (outcome.stages_used, summarizer.tasks) == (("excerpt",), [])
    assert compact(talk(50), ORIGINALS, only_stages=("strip_images",)).status == "skipped"


def test_each_stage_asked_for_runs_although_the_target_is_met() -> None:
    both = compact(long_read(), SHOWN, only_stages=("excerpt", "summarize"), force=True)
    assert both.stages_used == ("excerpt", "summarize")


# What became of each message


def test_each_message_that_changed_or_went_is_told_with_its_size() -> None:
    outcome = compact(
        (user(1, images=1), *long_read(2), *talk(20, first=7)),
        build_policy("strip_images", "excerpt", protect=TAIL),
    )
    targets = [(t.seq, t.role, t.tool, t.method, t.chars_before) for t in outcome.targets]
    assert targets == [
        (1, "user", "", "images_stripped", 11),
        (4, "tool", "tool", "excerpted", len(BOOK)),
    ]
    assert outcome.targets[1].chars_after == len(outcome.edits[1].replacement)
    assert outcome.messages_compacted == 2


def test_what_was_changed_and_then_summarized_is_told_once_as_summarized() -> None:
    outcome = compact((*long_read(), *talk(40, 700, first=6)), ORIGINALS)
    assert {target.method for target in outcome.targets} == {"summarized"}
    assert [target.seq for target in outcome.targets] == list(range(1, 44))
    assert outcome.messages_compacted == 43


def test_of_very_many_messages_the_largest_two_hundred_are_told() -> None:
    entries = tuple(
        (user if seq % 2 else answer)(seq, "x" * (100 + seq)) for seq in range(1, 1_001)
    )
    outcome = compact(entries, build_policy("summarize", protect=TAIL))
    assert (len(outcome.targets), outcome.messages_compacted) == (200, 998)
    assert [target.seq for target in outcome.targets] == list(range(799, 999))


# Measured by the same budget as the trigger


def test_stages_stop_at_the_target_in_real_tokens() -> None:
    entries = (
        answer(1, calls="ab"),
        *(result(2 + n, each, "x" * 12_000) for n, each in enumerate("ab")),
        *talk(4, 400, first=5),
    )
    once = build_policy("excerpt", protect=TAIL, target={"ratio": 0.5})
    assert compact(entries, once, measurement=Measurement(tokens=6_400)).status == "skipped"
    doubled_outcome = compact(
        entries, once, measurement=Measurement(tokens=12_800, token_ratio=2.0)
    )
    assert len(doubled_outcome.edits) == 2
    assert doubled_outcome.tokens_after == pytest.approx(12_800 * 2_200 / 6_400, rel=0.2)


def test_a_summary_that_takes_more_than_it_frees_fails_and_what_was_cut_stays_cut() -> None:
    # The first messages are told of and stay, so a summary of them frees almost nothing.
    lasting = tuple(
        TranscriptEntry(seq=seq, role="user", content="x" * 5_000, pinned=seq > 3)
        for seq in range(1, 8)
    )
    few = build_policy(
        "strip_images", "summarize", protect=TAIL | {"first": 3}, target={"ratio": 0.1}
    )
    outcome = compact(
        (*lasting, user(8), user(9, "y", images=1), user(10), answer(11)),
        few,
        Summarizer("s" * 6_000),
    )
    assert (outcome.stages_used, outcome.summary) == (("strip_images",), None)
    assert outcome.summary_error == "With the summary the context is not smaller than it was."


def test_what_the_summarizer_proposes_travels_in_the_outcome_with_its_summary() -> None:
    proposals = {"lota": "They read a book."}
    outcome = compact(talk(50), summarizer=Summarizer(proposals=proposals))
    assert outcome.proposals == proposals


def test_of_a_summary_that_is_not_used_nothing_is_proposed() -> None:
    proposals = {"lota": "They read a book."}
    empty = compact(long_read(), ORIGINALS, Summarizer("  ", proposals=proposals))
    assert (empty.stages_used, empty.proposals) == (("excerpt",), {})
