"""One pass of the pipeline: what it compacts, what it asks for, and when it changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compaction.core import policy as policy_module
from compaction.core.budget import Budget, plan
from compaction.core.estimate import LastUsage, Measurement, measure
from compaction.core.invariants import find_violations
from compaction.core.outcome import Outcome
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.summary import (
    Summarize,
    SummaryFailed,
    SummaryOutcome,
    SummaryTask,
    find_objection,
)
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext
from compaction.systems.kit.pipeline import STAGES

WINDOW = 8_192


class Summarizer:
    """Answers at once with a fixed text, and remembers what it was asked."""

    def __init__(self, text: str = "They spoke of the weather.") -> None:
        self.text = text
        self.tasks: list[SummaryTask] = []

    def __call__(self, task: SummaryTask) -> SummaryOutcome:
        self.tasks.append(task)
        return SummaryOutcome(text=self.text)


def talk(messages: int, characters: int = 800, first: int = 1) -> tuple[TranscriptEntry, ...]:
    """Users and answers by turns, 200 tokens each."""
    return tuple(
        TranscriptEntry(
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=f"{seq} ".ljust(characters, "x"),
        )
        for seq in range(first, first + messages)
    )


def compact(
    transcript: Transcript,
    summarize: Summarize | None = None,
    *,
    policy: Policy = ONECLAW,
    **options: Any,
) -> Outcome:
    budget: Budget | None = options.pop("budget", plan(policy, WINDOW))
    measured: Measurement = options.pop("measured", measure(transcript, policy))
    outcome = run(transcript, policy, budget, measured, summarize or Summarizer(), **options)
    assert find_violations(transcript, outcome) == []
    return outcome


def test_what_is_older_than_the_newest_quarter_becomes_one_summary() -> None:
    summarizer = Summarizer()
    outcome = compact(Transcript(entries=talk(40)), summarizer)
    assert outcome.status == "applied"
    assert outcome.boundary_seq == 31
    assert [entry.seq for entry in outcome.entries] == list(range(31, 41))
    assert [entry.seq for entry in summarizer.tasks[0].entries] == list(range(1, 31))
    assert (outcome.messages_compacted, outcome.stages_used) == (30, ("summarize",))
    assert (outcome.tokens_before, outcome.tokens_after) == (8_000, 2_000 + 6)


def test_the_summary_is_stored_without_the_space_around_it() -> None:
    assert compact(Transcript(entries=talk(40)), Summarizer("\n  Said.\n")).summary == "Said."


def test_exactly_at_the_threshold_nothing_happens() -> None:
    entries = (*talk(34), TranscriptEntry(seq=35, role="user", tokens=163))
    summarizer = Summarizer()
    outcome = compact(Transcript(entries=entries), summarizer)
    assert (outcome.tokens_before, outcome.status, summarizer.tasks) == (6_963, "skipped", [])
    assert outcome.reason
    assert compact(Transcript(entries=entries, overhead_tokens=1)).status == "applied"


def test_an_unknown_window_compacts_nothing_even_when_forced() -> None:
    outcome = compact(Transcript(entries=talk(400)), budget=plan(ONECLAW, None), force=True)
    assert (outcome.status, outcome.reason) == (
        "skipped",
        "The model's context window is not known.",
    )


def test_the_summary_so_far_is_handed_over_once_to_be_merged() -> None:
    summarizer = Summarizer("Old and new.")
    outcome = compact(Transcript(entries=talk(40), summary="Old."), summarizer)
    assert [task.previous for task in summarizer.tasks] == ["Old."]
    assert not any("Old." in entry.content for entry in summarizer.tasks[0].entries)
    assert outcome.summary == "Old and new."


def test_the_instructions_and_the_length_reach_the_summarizer() -> None:
    summarizer = Summarizer()
    compact(Transcript(entries=talk(40)), summarizer, instructions="Keep the numbers.")
    assert (summarizer.tasks[0].instructions, summarizer.tasks[0].max_tokens) == (
        "Keep the numbers.",
        2_048,
    )
    short = Policy.parse({"summary": {"max_tokens": 100}}, ONECLAW)
    compact(Transcript(entries=talk(40)), summarizer, policy=short)
    assert summarizer.tasks[1].max_tokens == 100


def test_twice_is_once() -> None:
    first = compact(Transcript(entries=talk(40)))
    summarizer = Summarizer()
    second = compact(Transcript(entries=first.entries, summary=first.summary), summarizer)
    assert (second.status, second.summary, summarizer.tasks) == ("skipped", first.summary, [])


def test_after_a_success_another_short_turn_needs_no_summarizer() -> None:
    first = compact(Transcript(entries=talk(40), overhead_tokens=300))
    summarizer = Summarizer()
    grown = Transcript(
        entries=(*first.entries, *talk(2, first=41)), summary=first.summary, overhead_tokens=300
    )
    assert compact(grown, summarizer).status == "skipped"
    assert summarizer.tasks == []


def test_the_boundary_moves_forward_over_many_cycles() -> None:
    transcript, boundaries = Transcript(), []
    for cycle in range(12):
        transcript = replace(
            transcript, entries=(*transcript.entries, *talk(10, first=1 + 10 * cycle))
        )
        outcome = compact(transcript, Summarizer(f"Summary {cycle}."))
        transcript = replace(transcript, entries=outcome.entries, summary=outcome.summary)
        boundaries += [outcome.boundary_seq] if outcome.boundary_seq else []
    assert len(boundaries) >= 3
    assert boundaries == sorted(set(boundaries))


def test_the_tail_is_measured_by_the_same_scale_as_the_trigger() -> None:
    transcript = Transcript(entries=talk(20))
    measured = measure(transcript, ONECLAW, LastUsage(tokens=8_000, after_seq=20))
    outcome = compact(transcript, measured=measured)
    assert (measured.source, measured.token_ratio, outcome.boundary_seq) == ("provider", 2.0, 16)
    assert (outcome.tokens_before, outcome.tokens_after) == (8_000, 8_000 * (1_000 + 6) // 4_000)


def test_when_even_the_newest_message_is_too_large_the_rest_is_compacted() -> None:
    outcome = compact(
        Transcript(entries=(*talk(4), TranscriptEntry(seq=5, role="user", tokens=7_000)))
    )
    assert (outcome.status, outcome.boundary_seq) == ("applied", 5)


def test_over_the_threshold_there_is_something_to_do_although_all_messages_are_protected() -> None:
    transcript = Transcript(entries=talk(6), overhead_tokens=6_000)
    outcome = compact(transcript)
    assert (outcome.tokens_before, outcome.status) == (7_200, "applied")
    assert outcome.boundary_seq == 5


def test_over_the_threshold_an_overlong_summary_is_written_anew() -> None:
    outcome = compact(Transcript(entries=talk(4), summary="s" * 28_000))
    assert (outcome.status, outcome.boundary_seq) == ("applied", 4)


def test_only_a_single_message_over_the_threshold_leaves_nothing_to_do() -> None:
    outcome = compact(
        Transcript(entries=(TranscriptEntry(seq=1, role="user", tokens=8_000),)), force=True
    )
    assert (outcome.status, outcome.boundary_seq) == ("skipped", None)
    assert "too little" in outcome.reason


def test_by_hand_what_is_older_than_the_tail_is_compacted_under_the_threshold_too() -> None:
    transcript = Transcript(entries=talk(20))
    assert compact(transcript).status == "skipped"
    assert compact(transcript, force=True).boundary_seq == 11


def test_by_hand_a_talk_smaller_than_the_tail_keeps_a_quarter_of_itself_and_only_once() -> None:
    first = compact(Transcript(entries=talk(10)), force=True)
    assert (first.status, first.boundary_seq, first.tokens_before) == ("applied", 9, 2_000)
    again = Transcript(entries=first.entries, summary=first.summary)
    assert compact(again, force=True).status == "skipped"
    grown = replace(again, entries=(*first.entries, *talk(4, first=11)))
    assert compact(grown, force=True).status == "skipped"
    assert compact(grown, force=True, up_to_seq=12).boundary_seq == 13


def test_by_hand_the_tail_begins_where_the_caller_says() -> None:
    assert compact(Transcript(entries=talk(20)), up_to_seq=18, force=True).boundary_seq == 19
    assert compact(Transcript(entries=talk(20)), up_to_seq=20, force=True).boundary_seq == 20


@pytest.mark.parametrize("entries", [(), talk(1), talk(2)])
def test_by_hand_too_little_is_skipped_and_says_why(entries: tuple[TranscriptEntry, ...]) -> None:
    outcome = compact(Transcript(entries=entries), force=True)
    assert outcome.status == "skipped"
    assert outcome.reason.endswith(".")
    assert outcome.tokens_after == outcome.tokens_before


def test_by_hand_it_stops_where_it_is_told() -> None:
    summarizer = Summarizer()
    outcome = compact(Transcript(entries=talk(40)), summarizer, up_to_seq=6, force=True)
    assert outcome.boundary_seq == 7
    assert [entry.seq for entry in summarizer.tasks[0].entries] == [1, 2, 3, 4, 5, 6]
    nothing = compact(Transcript(entries=talk(40)), up_to_seq=0, force=True)
    assert (nothing.status, "up to message 0" in nothing.reason) == ("skipped", True)


def test_by_hand_no_model_is_asked_for_a_summary_that_would_save_nothing() -> None:
    summarizer = Summarizer()
    transcript = Transcript(entries=talk(40), summary="They spoke before.")
    outcome = compact(transcript, summarizer, up_to_seq=2, force=True)
    assert outcome.status == "skipped"
    assert outcome.reason == (
        "There is too little to compact up to message 2: a summary would hardly be shorter."
    )
    assert not summarizer.tasks
    assert compact(transcript, summarizer, up_to_seq=3, force=True).status == "applied"
    rewritten = compact(transcript, summarizer, up_to_seq=2, force=True, is_rewrite=True)
    assert rewritten.status == "applied", "another summary in the place of one is still made"


@pytest.mark.parametrize("text", ["", " \n\t ", "x" * 24_000, "x" * 60_000])
def test_a_blank_or_oversized_summary_fails_and_changes_nothing(text: str) -> None:
    transcript = Transcript(entries=talk(40))
    outcome = compact(transcript, Summarizer(text))
    assert (outcome.status, outcome.summary, outcome.boundary_seq, outcome.entries) == (
        "failed",
        None,
        None,
        transcript.entries,
    )
    assert outcome.reason.startswith("The summary")


def test_a_summarizer_that_gives_up_leaves_the_old_summary() -> None:
    def gives_up(task: SummaryTask) -> SummaryOutcome:
        raise SummaryFailed("The model answered with an error twice.")

    outcome = compact(Transcript(entries=talk(40), summary="Old."), gives_up)
    assert (outcome.status, outcome.summary, outcome.reason) == (
        "failed",
        "Old.",
        "The model answered with an error twice.",
    )
    assert outcome.tokens_after == outcome.tokens_before


def test_it_calls_the_summarizer_once_and_leaves_trying_again_to_it() -> None:
    summarizer = Summarizer("")
    compact(Transcript(entries=talk(40)), summarizer)
    assert len(summarizer.tasks) == 1


def test_a_summarizer_can_ask_beforehand_whether_its_text_will_do() -> None:
    task = SummaryTask(
        previous="p" * 40,
        entries=(TranscriptEntry(seq=1, role="user", tokens=10),),
        instructions="",
        max_tokens=100,
    )
    assert find_objection("x" * 79, task, ONECLAW) is None
    assert "not smaller" in (find_objection("x" * 80, task, ONECLAW) or "")
    assert find_objection(" ", task, ONECLAW) == "The summary is empty."


def test_a_call_and_its_results_stay_on_one_side() -> None:
    def round_of(seq: int) -> tuple[TranscriptEntry, ...]:
        call = TranscriptEntry(
            seq=seq,
            role="assistant",
            tokens=300,
            calls=(TranscriptCall(id="call_0", name="t"), TranscriptCall(id="call_1", name="t")),
        )
        return (
            call,
            *(
                TranscriptEntry(seq=seq + 1 + n, role="tool", tokens=400, call_id=f"call_{1 - n}")
                for n in range(2)
            ),
        )

    entries = (
        TranscriptEntry(seq=1, role="user", tokens=100),
        *(e for n in range(8) for e in round_of(2 + 3 * n)),
    )
    outcome = compact(Transcript(entries=entries))
    assert (outcome.status, outcome.boundary_seq) == ("applied", 23)


def test_pinned_messages_stay_verbatim_with_what_they_pair_with() -> None:
    pinned = TranscriptEntry(
        seq=3, role="user", content="Never forget this.".ljust(80), pinned=True
    )
    call = TranscriptEntry(
        seq=4, role="assistant", tokens=20, calls=(TranscriptCall(id="a", name="t"),)
    )
    result = TranscriptEntry(seq=5, role="tool", tokens=20, call_id="a", pinned=True)
    entries = (*talk(2), pinned, call, result, *talk(40, first=7))
    outcome = compact(Transcript(entries=entries))
    assert outcome.exempt_seqs == (3, 4, 5)
    assert [entry.seq for entry in outcome.entries[:3]] == [3, 4, 5]
    assert outcome.entries[3].seq == outcome.boundary_seq
    assert outcome.messages_compacted == len(entries) - len(outcome.entries)


def test_when_only_pinned_messages_are_older_there_is_nothing_to_do() -> None:
    entries = (*(replace(entry, pinned=True) for entry in talk(10)), *talk(10, first=11))
    outcome = compact(Transcript(entries=entries), force=True)
    assert (outcome.status, "pinned" in outcome.reason) == ("skipped", True)


def test_after_an_overflow_it_makes_room_under_the_usual_threshold() -> None:
    transcript = Transcript(entries=talk(6), overhead_tokens=4_700)
    assert compact(transcript).status == "skipped"
    budget = plan(ONECLAW, WINDOW)
    assert budget is not None
    assert compact(transcript, budget=budget.reduce_for_recovery()).status == "applied"


def test_a_tiny_window_keeps_its_newest_quarter_too() -> None:
    outcome = compact(
        Transcript(entries=talk(40, characters=200), overhead_tokens=300),
        budget=plan(ONECLAW, 2_048),
    )
    assert (outcome.status, outcome.boundary_seq) == ("applied", 31)


def test_stages_after_the_target_is_met_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(draft: ContextDraft, work: StageContext) -> ContextDraft:
        raise AssertionError("The target was met before this stage.")

    run_with_second_stage(monkeypatch, refuse, Summarizer())


def test_stages_go_on_until_the_target_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(draft: ContextDraft, work: StageContext) -> ContextDraft:
        seen.append(draft.transcript.summary)
        return draft

    run_with_second_stage(monkeypatch, look, Summarizer("x" * 12_000))
    assert seen == ["x" * 12_000]


def run_with_second_stage(
    monkeypatch: pytest.MonkeyPatch,
    stage: Callable[[ContextDraft, StageContext], ContextDraft],
    summarizer: Summarizer,
) -> None:
    monkeypatch.setattr(policy_module, "STAGES", ("summarize", "second"))
    monkeypatch.setitem(STAGES, "second", stage)
    policy = Policy.parse({"stages": ["summarize", "second"]}, ONECLAW)
    assert compact(Transcript(entries=talk(40)), summarizer, policy=policy).stages_used == (
        "summarize",
    )


@pytest.mark.parametrize("remaining", [slice(1, None, 2), slice(0)])
def test_a_stage_that_breaks_an_invariant_installs_nothing(
    remaining: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(draft: ContextDraft, work: StageContext) -> ContextDraft:
        return replace(
            draft,
            transcript=replace(draft.transcript, entries=draft.transcript.entries[remaining]),
            compacted_seqs=(1,),
        )

    monkeypatch.setitem(STAGES, "summarize", forgetful)
    policy = Policy.parse({"stages": ["strip_images", "summarize"]}, ONECLAW)
    outcome = compact(Transcript(entries=talk(40)), policy=policy)
    assert outcome.status == "failed"
    assert "The summary is empty." in outcome.reason
