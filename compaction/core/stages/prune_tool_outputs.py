"""Replace old tool results by a placeholder, and keep the newest ones up to a number of tokens."""

from collections.abc import Iterator

from compaction.core.stages.base import ContextDraft, PassContext, apply_edits, count_savings
from compaction.core.transcript import TranscriptEntry


def prune_tool_outputs(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """Goes from the newest result back, as NeuroLink's stage 1 and BaseAgent's first pass do; all or nothing, by what it saves.

    Tokens are real ones. What a placeholder takes is not saved.
    """
    knobs = pass_context.policy.prune
    texts = {
        entry.seq: knobs.placeholder
        for entry in _find_old_results(draft, pass_context)
        if _can_prune(entry, pass_context)
    }
    next_draft = apply_edits(draft, pass_context, "pruned", texts)
    savings = sum(count_savings(draft, next_draft).values()) * pass_context.measurement.token_ratio
    is_enough = (
        savings > knobs.minimum_savings if knobs.strict else savings >= knobs.minimum_savings
    )
    return next_draft if is_enough else draft


def _find_old_results(draft: ContextDraft, pass_context: PassContext) -> Iterator[TranscriptEntry]:
    """The results older than the protected number of tokens; the one that crosses it is kept, or is the first to go."""
    knobs, total, turns = pass_context.policy.prune, 0.0, 0
    for entry in reversed(draft.transcript.entries):
        turns += entry.role == "user"
        if entry.role != "tool" or turns < knobs.skip_user_turns:
            continue
        previous_total, total = total, total + entry.tokens * pass_context.measurement.token_ratio
        if previous_total >= knobs.protect_tokens or (
            knobs.crossing_item == "prune" and total > knobs.protect_tokens
        ):
            yield entry


def _can_prune(entry: TranscriptEntry, pass_context: PassContext) -> bool:
    return (
        entry.tool_name not in pass_context.policy.prune.protected_tools
        and not pass_context.protection.covers(entry)
    )
