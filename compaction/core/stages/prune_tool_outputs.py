"""Replace old tool results by a placeholder, and keep the newest ones up to a number of tokens."""

from collections.abc import Iterator

from compaction.core.stages.base import Draft, Work, saved, show
from compaction.core.transcript import Entry


def prune_tool_outputs(draft: Draft, work: Work) -> Draft:
    """Goes from the newest result back, as NeuroLink's stage 1 and BaseAgent's first pass do; all or nothing, by what it saves.

    Tokens are real ones. What a placeholder takes is not saved.
    """
    knobs = work.policy.prune
    texts = {entry.seq: knobs.placeholder for entry in _beyond(draft, work) if _may_go(entry, work)}
    pruned = show(draft, work, "pruned", texts)
    savings = sum(saved(draft, pruned).values()) * work.measure.scale
    enough = savings > knobs.minimum_savings if knobs.strict else savings >= knobs.minimum_savings
    return pruned if enough else draft


def _beyond(draft: Draft, work: Work) -> Iterator[Entry]:
    """The results older than the protected number of tokens; the one that crosses it is kept, or is the first to go."""
    knobs, total, turns = work.policy.prune, 0.0, 0
    for entry in reversed(draft.transcript.entries):
        turns += entry.role == "user"
        if entry.role != "tool" or turns < knobs.skip_user_turns:
            continue
        before, total = total, total + entry.tokens * work.measure.scale
        if before >= knobs.protect_tokens or (
            knobs.crossing_item == "prune" and total > knobs.protect_tokens
        ):
            yield entry


def _may_go(entry: Entry, work: Work) -> bool:
    return entry.tool_name not in work.policy.prune.protected_tools and not work.protection.covers(
        entry
    )
