"""Replace old tool results by a placeholder; the newest ones stay, up to a number of tokens.

For example, `protect_tokens` 40,000 and results of 30,000, 25,000 and 8,000 tokens, newest first:
the second one crosses the limit (55,000). It stays if `crossing_item` is `keep`, and the third one
is pruned; if `crossing_item` is `prune`, both are.
"""

from collections.abc import Iterator

from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext, apply_edits, count_savings
from compaction.systems.kit.settings import PruneKnobs


def prune_tool_outputs(draft: ContextDraft, context: StageContext) -> ContextDraft:
    """Prune all old results, or none if that saves fewer real tokens than the policy's minimum.

    The tokens of the placeholders are subtracted from what is saved.
    (NeuroLink, Stage 1: Tool Output Pruning; BaseAgent, Pruning)
    """
    knobs = context.policy.get(PruneKnobs)
    texts = {
        entry.seq: knobs.placeholder
        for entry in _find_old_results(draft, context)
        if _can_prune(entry, context)
    }
    next_draft = apply_edits(draft, context, "pruned", texts)
    estimated_savings = sum(count_savings(draft, next_draft).values())
    savings = estimated_savings * context.measurement.token_ratio
    if savings > knobs.minimum_savings:
        return next_draft
    if savings == knobs.minimum_savings and not knobs.strict:
        return next_draft
    return draft


def _find_old_results(draft: ContextDraft, context: StageContext) -> Iterator[TranscriptEntry]:
    """Yield the results that are older than the protected number of tokens, newest first."""
    knobs = context.policy.get(PruneKnobs)
    total = 0.0
    turn_count = 0
    for entry in reversed(draft.transcript.entries):
        if entry.role == "user":
            turn_count += 1
        if entry.role != "tool" or turn_count < knobs.skip_user_turns:
            continue
        is_after_limit = total >= knobs.protect_tokens
        total += entry.tokens * context.measurement.token_ratio
        crosses_limit = total > knobs.protect_tokens
        if is_after_limit or (crosses_limit and knobs.crossing_item == "prune"):
            yield entry


def _can_prune(entry: TranscriptEntry, context: StageContext) -> bool:
    if entry.tool_name in context.policy.get(PruneKnobs).protected_tools:
        return False
    return not context.protection.covers(entry)
