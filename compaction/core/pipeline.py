"""One pass: a summary takes the place of what is older than the protected tail."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from compaction.core import invariants
from compaction.core.budget import Budget
from compaction.core.estimate import Measurement, count_entry_tokens, estimate_transcript
from compaction.core.outcome import MessageOutcome, Method, Outcome
from compaction.core.pass_context import PassContext, list_sources, replace_entries
from compaction.core.policy import Policy
from compaction.core.protection import PassLimits, find_protected, find_splits
from compaction.core.summary import Summarize, SummaryFailed, SummaryOutcome
from compaction.core.systems import find_system
from compaction.core.transcript import Transcript, TranscriptEdit, TranscriptEntry

STAGE = "summarize"
MAX_TARGETS = 200
# Of the threshold; more pinned messages than that leave too little room for others.
MAX_PINNED_SHARE = 0.5
NOT_SMALLER = "With the summary the context is not smaller than it was."
WINDOW_UNKNOWN = "The model's context window is not known."
WITHIN_THRESHOLD = "The context is within its threshold."


def run(
    transcript: Transcript,
    policy: Policy,
    budget: Budget | None,
    measurement: Measurement,
    summarize: Summarize,
    *,
    instructions: str = "",
    up_to_seq: int | None = None,
    is_rewrite: bool = False,
    only_stages: Collection[str] = (),
    force: bool = False,
    growth_tokens: int = 0,
) -> Outcome:
    """Propose a smaller context. Nothing changes here: the caller installs an applied outcome.

    A context that is not over its threshold is skipped; with `force`, whatever is older than the
    protected tail is compacted all the same. `only_stages` runs each of these stages and no other,
    whether the target is met or not. No message newer than `up_to_seq` is compacted.
    An `is_rewrite` is a summary in the place of the one in force, however little it saves.
    `growth_tokens` is what the reference text beside the summary will have grown by.

    `summarize` is called once at most and is the only way out of the core, see `Summarize`. An
    outcome that is not applied says why in `reason`.
    """
    if budget is None:
        return _build_unchanged(transcript, measurement, "skipped", WINDOW_UNKNOWN)
    is_over_threshold = budget.is_over(measurement.tokens)
    if not is_over_threshold and not force:
        return _build_unchanged(transcript, measurement, "skipped", WITHIN_THRESHOLD)

    # Counted once here, so that everything that is compared later was counted in the same way.
    counted_transcript = count_entry_tokens(transcript, policy)
    pass_context = PassContext(
        limits=PassLimits(
            policy=policy,
            budget=budget,
            token_ratio=measurement.token_ratio,
            is_over_threshold=is_over_threshold,
            is_asked_for=force and not is_over_threshold,
            up_to_seq=up_to_seq,
            is_rewrite=is_rewrite,
        ),
        measurement=measurement,
        estimate=estimate_transcript(counted_transcript, policy),
        summarize=summarize,
        instructions=instructions,
        only_stages=only_stages,
        growth_tokens=growth_tokens,
    )
    system = find_system(policy)
    compact = system.compact if system else compact_old_messages
    try:
        outcome = compact(counted_transcript, pass_context)
    except SummaryFailed as error:
        outcome = _build_unchanged(transcript, measurement, "failed", error.reason)
        return replace(outcome, is_final=error.is_final)
    if outcome is None:
        reason = _explain_no_work(transcript, up_to_seq)
        return _build_unchanged(transcript, measurement, "skipped", reason)
    return _refuse_damage(transcript, measurement, outcome)


def _refuse_damage(transcript: Transcript, measurement: Measurement, outcome: Outcome) -> Outcome:
    """Return the outcome, or a failed one in the place of one that would damage a conversation."""
    violations = invariants.find_violations(transcript, outcome)
    if not violations:
        return outcome
    reason = outcome.summary_error or " ".join(violations)
    return _build_unchanged(transcript, measurement, "failed", reason)


def compact_old_messages(transcript: Transcript, pass_context: PassContext) -> Outcome | None:
    """Replace what is older than the tail by one summary, which includes the earlier one.

    Returns None if nothing is older, or too little. Raises SummaryFailed.
    """
    if pass_context.only_stages and STAGE not in pass_context.only_stages:
        return None
    grown_transcript = pass_context.add_growth(transcript)
    splits = find_splits(grown_transcript, pass_context.limits)
    found = pass_context.find_worthwhile_split(grown_transcript, splits)
    if found is None:
        return None
    split, old_seqs = found
    sources, untold_seqs = list_sources(grown_transcript, split)
    summary = pass_context.request_summary(grown_transcript, sources, target_count=len(old_seqs))
    last_seq = grown_transcript.last_summarized_seq
    next_transcript = replace(
        replace_entries(grown_transcript, split, summary.text, last_seq=last_seq),
        untold_seqs=untold_seqs,
    )
    # A summary that is longer than what it replaces was paid for, but must not be installed.
    if not pass_context.is_smaller(next_transcript):
        raise SummaryFailed(NOT_SMALLER)
    return build_outcome(
        pass_context,
        next_transcript,
        summary,
        protected_seqs=find_protected(transcript, pass_context.limits),
        stages_used=(STAGE,),
        targets=list_targets(transcript, {}, dict.fromkeys(old_seqs, "summarized")),
        messages_compacted=len(old_seqs),
    )


def build_outcome(
    pass_context: PassContext,
    transcript: Transcript,
    summary: SummaryOutcome,
    *,
    protected_seqs: frozenset[int],
    stages_used: tuple[str, ...],
    targets: tuple[MessageOutcome, ...],
    messages_compacted: int,
    edits: tuple[TranscriptEdit, ...] = (),
    summary_error: str = "",
) -> Outcome:
    """Return the outcome of a pass that has made this transcript."""
    boundary_seq = transcript.boundary_seq or 0
    return Outcome(
        status="applied",
        reason=_explain_pins(transcript, pass_context),
        summary=transcript.summary,
        summary_error=summary_error or summary.extract_reason,
        is_extract=bool(summary.extract_reason),
        refused_seqs=summary.refused_seqs,
        summarized_up_to=transcript.summarized_up_to,
        untold_seqs=tuple(sorted(transcript.untold_seqs)),
        boundary_seq=transcript.boundary_seq,
        edits=edits,
        entries=transcript.entries,
        exempt_seqs=tuple(entry.seq for entry in transcript.entries if entry.seq < boundary_seq),
        protected_seqs=protected_seqs,
        marker=transcript.marker,
        stages_used=stages_used,
        targets=targets,
        messages_compacted=messages_compacted,
        tokens_before=pass_context.measurement.tokens,
        tokens_after=pass_context.measure_tokens(transcript),
        proposals=summary.proposals,
        proposed_segments=summary.proposed_segments,
    )


def _explain_pins(transcript: Transcript, pass_context: PassContext) -> str:
    """Return a sentence about pins that leave so little room that a summary follows each turn."""
    threshold, window = pass_context.budget.threshold, pass_context.budget.window
    pinned_tokens = sum(entry.tokens for entry in transcript.entries if entry.pinned)
    real_tokens = pass_context.measurement.token_ratio * pinned_tokens
    if real_tokens <= MAX_PINNED_SHARE * threshold:
        return ""
    return (
        f"Pinned messages take about {real_tokens / window:.0%} of the window, so the rest is "
        "summarized often. It helps to unpin some."
    )


def _build_unchanged(
    transcript: Transcript,
    measurement: Measurement,
    status: Literal["skipped", "failed"],
    reason: str,
) -> Outcome:
    return Outcome(
        status=status,
        reason=reason,
        summary=transcript.summary,
        entries=transcript.entries,
        tokens_before=measurement.tokens,
        tokens_after=measurement.tokens,
    )


def _explain_no_work(transcript: Transcript, up_to_seq: int | None) -> str:
    if not transcript.entries:
        return "There are no messages to compact."
    if up_to_seq is not None:
        return (
            f"There is too little to compact up to message {up_to_seq}: a summary would hardly be "
            "shorter."
        )
    return (
        "There is too little to compact: pinned messages and the newest ones are protected, and a "
        "summary of the others would hardly be shorter."
    )


def list_targets(
    original: Transcript,
    entries_after: Mapping[int, TranscriptEntry],
    methods: Mapping[int, Method],
) -> tuple[MessageOutcome, ...]:
    """Return one outcome for each message that was changed or removed, in order.

    `entries_after` has those that are still sent. If there are more than 200, only the largest are
    returned.
    """
    entries: Sequence[TranscriptEntry] = [
        entry for entry in original.entries if entry.seq in methods
    ]
    if len(entries) > MAX_TARGETS:
        by_size = sorted(entries, key=lambda entry: entry.character_count, reverse=True)
        entries = sorted(by_size[:MAX_TARGETS], key=lambda entry: entry.seq)
    return tuple(
        _build_target(entry, methods[entry.seq], entries_after.get(entry.seq)) for entry in entries
    )


def _build_target(
    entry: TranscriptEntry, method: Method, entry_after: TranscriptEntry | None
) -> MessageOutcome:
    chars_before = entry.character_count
    chars_after = entry_after.character_count if entry_after else 0
    return MessageOutcome(
        seq=entry.seq,
        role=entry.role,
        tool=entry.tool_name,
        method=method,
        chars_before=chars_before,
        chars_after=chars_after,
        percent_saved=round(100 * (chars_before - chars_after) / max(1, chars_before)),
    )
