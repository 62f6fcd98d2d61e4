"""Where a pass would split a conversation, of the core's parts."""

from collections.abc import Sequence

from compaction.core.boundary import find_start_within, limit_start
from compaction.core.tool_pairs import find_safe_cuts
from compaction.core.transcript import TranscriptEntry


def find_boundary(
    entries: Sequence[TranscriptEntry],
    *,
    protected_tokens: int,
    token_ratio: float = 1.0,
    up_to_seq: int | None = None,
) -> int | None:
    """Return the seq of the first message of the tail, or None if nothing is older."""
    cuts = find_safe_cuts(entries)
    start = find_start_within(entries, cuts, protected_tokens, token_ratio)
    start = limit_start(entries, cuts, start, up_to_seq)
    return entries[start].seq if start else None
