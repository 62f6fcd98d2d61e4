"""One pass: the stages of a policy in order, until the context is down to its target."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, cast

from compaction.core import invariants
from compaction.core.budget import Budget
from compaction.core.estimate import Measurement, count_entry_tokens, estimate_transcript
from compaction.core.outcome import MessageOutcome, Method, Outcome
from compaction.core.policy import Policy
from compaction.core.protection import PassLimits, build_protection
from compaction.core.stages.base import ContextDraft, PassContext, Stage, Summarize, SummaryFailed
from compaction.core.stages.dedupe_file_reads import dedupe_file_reads
from compaction.core.stages.excerpt import excerpt
from compaction.core.stages.prune_tool_outputs import prune_tool_outputs
from compaction.core.stages.slide_window import slide_window
from compaction.core.stages.strip_images import strip_images
from compaction.core.stages.summarize import needs_original_summary, summarize
from compaction.core.transcript import Transcript, TranscriptEntry

# A new stage is one file in `stages`, one line in this table, and its name in `policy.STAGES`
# (policies are checked before stages are imported). A test compares the two lists.
STAGES: dict[str, Stage] = {
    "strip_images": strip_images,
    "prune_tool_outputs": prune_tool_outputs,
    "dedupe_file_reads": dedupe_file_reads,
    "excerpt": excerpt,
    "summarize": summarize,
    "slide_window": slide_window,
}
MAX_TARGETS = 200
# Of the threshold; more pinned messages than that crowd out the talk.
MAX_PINNED_SHARE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class _StageResults:
    """What the stages made of a context."""

    draft: ContextDraft
    stages_used: tuple[str, ...]
    summary_error: str
    is_final: bool


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

    `summarize` is called once at most and is the only way out of the core, see `Summarize`. If it
    raises SummaryFailed, the stages that follow still run. An outcome that is not applied says why
    in `reason`. (FEAT-011, Compact Rules)
    """
    if budget is None:
        reason = "The model's context window is not known."
        return _build_unchanged(transcript, measurement, "skipped", reason)
    is_over_threshold = budget.is_over(measurement.tokens)
    if not is_over_threshold and not force:
        reason = "The context is within its threshold."
        return _build_unchanged(transcript, measurement, "skipped", reason)

    # Counted once here, so that every stage and the protection compare the same numbers.
    counted_transcript = count_entry_tokens(transcript, policy)
    limits = PassLimits(
        policy=policy,
        budget=budget,
        token_ratio=measurement.token_ratio,
        is_over_threshold=is_over_threshold,
        is_asked_for=force and not is_over_threshold,
        up_to_seq=up_to_seq,
        is_rewrite=is_rewrite,
    )
    pass_context = _build_pass_context(
        counted_transcript, limits, measurement, summarize, instructions
    )
    results = _run_stages(
        _add_overhead(counted_transcript, growth_tokens), pass_context, only_stages
    )
    if results.summary_error and not results.stages_used:
        outcome = _build_unchanged(transcript, measurement, "failed", results.summary_error)
        return replace(outcome, is_final=results.is_final)
    if not results.stages_used:
        reason = _explain_no_work(transcript, up_to_seq)
        return _build_unchanged(transcript, measurement, "skipped", reason)

    # The last line of defense: a stage with a fault must not damage a conversation.
    outcome = _build_outcome(counted_transcript, results, pass_context)
    violations = invariants.find_violations(transcript, outcome)
    if violations:
        reason = results.summary_error or " ".join(violations)
        return _build_unchanged(transcript, measurement, "failed", reason)
    return outcome


def _add_overhead(transcript: Transcript, tokens: int) -> Transcript:
    return replace(transcript, overhead_tokens=transcript.overhead_tokens + tokens)


def _build_pass_context(
    transcript: Transcript,
    limits: PassLimits,
    measurement: Measurement,
    summarize: Summarize,
    instructions: str,
) -> PassContext:
    return PassContext(
        limits=limits,
        measurement=measurement,
        estimate=estimate_transcript(transcript, limits.policy),
        protection=build_protection(transcript, limits),
        summarize=summarize,
        instructions=instructions,
    )


def _run_stages(
    transcript: Transcript, pass_context: PassContext, only_stages: Collection[str]
) -> _StageResults:
    draft = ContextDraft(transcript=transcript)
    stages_used: list[str] = []
    summary_error = ""
    is_final = False
    for name in pass_context.policy.stages:
        if only_stages:
            is_due = name in only_stages
        else:
            is_due = not stages_used or _is_still_due(name, draft, pass_context)
        if not is_due:
            continue
        try:
            next_draft = STAGES[name](draft, pass_context)
        except SummaryFailed as error:
            summary_error, is_final = error.reason, error.is_final
            continue
        if next_draft is draft:
            continue
        # A summary that is longer than what it replaces was paid for, but must not be installed.
        if name == "summarize" and not pass_context.is_smaller(next_draft.transcript):
            summary_error = "With the summary the context is not smaller than it was."
            continue
        draft = next_draft
        stages_used.append(name)
    return _StageResults(
        draft=draft,
        stages_used=tuple(stages_used),
        summary_error=summary_error,
        is_final=is_final,
    )


def _is_still_due(name: str, draft: ContextDraft, pass_context: PassContext) -> bool:
    """Return whether a stage runs after another one has changed something.

    It does until the target is met, by the measure that the trigger uses. A summary that the policy
    writes of excerpted originals is due even then: only it still has their text.
    """
    if not pass_context.fits(draft.transcript):
        return True
    return name == "summarize" and needs_original_summary(draft, pass_context.policy)


def _build_outcome(
    original: Transcript, results: _StageResults, pass_context: PassContext
) -> Outcome:
    draft = results.draft
    transcript = draft.transcript
    remaining_seqs = {entry.seq for entry in transcript.entries}
    # A message that was edited and then removed counts once, as removed.
    edits = tuple(edit for edit in draft.edits if edit.seq in remaining_seqs)
    boundary_seq = transcript.boundary_seq or 0
    final_estimate = estimate_transcript(transcript, pass_context.policy)
    return Outcome(
        status="applied",
        reason=_explain_pins(transcript, pass_context),
        summary=transcript.summary,
        summary_error=results.summary_error or draft.extract_reason,
        is_extract=bool(draft.extract_reason),
        refused_seqs=draft.refused_seqs,
        summarized_up_to=transcript.summarized_up_to,
        untold_seqs=tuple(sorted(transcript.untold_seqs)),
        boundary_seq=transcript.boundary_seq,
        edits=edits,
        entries=transcript.entries,
        exempt_seqs=tuple(entry.seq for entry in transcript.entries if entry.seq < boundary_seq),
        protected_seqs=pass_context.protection.seqs,
        marker=transcript.marker,
        stages_used=results.stages_used,
        targets=list_targets(original, draft),
        messages_compacted=draft.removal_count + len(edits),
        tokens_before=pass_context.measurement.tokens,
        tokens_after=pass_context.to_real_tokens(final_estimate),
        proposals=draft.proposals,
        proposed_segments=draft.proposed_segments,
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


def list_targets(original: Transcript, draft: ContextDraft) -> tuple[MessageOutcome, ...]:
    """Return one outcome for each message that was changed or removed, in order.

    If there are more than 200, only the largest are returned (Wolffish, Compaction Cards).
    """
    entries_after = {entry.seq: entry for entry in draft.transcript.entries}
    methods: dict[int, str] = {edit.seq: edit.kind for edit in draft.edits}
    methods |= dict.fromkeys(draft.compacted_seqs, "summarized")
    methods |= dict.fromkeys(draft.left_out_seqs, "left_out")
    entries = [entry for entry in original.entries if entry.seq in methods]
    if len(entries) > MAX_TARGETS:
        entries.sort(key=lambda entry: entry.character_count, reverse=True)
        largest = entries[:MAX_TARGETS]
        entries = sorted(largest, key=lambda entry: entry.seq)
    return tuple(
        _build_target(entry, cast("Method", methods[entry.seq]), entries_after.get(entry.seq))
        for entry in entries
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
