"""Where the protected tail begins: the newest messages, by tokens, by number, by role or by turn, and never inside a tool call's answer."""

from collections import Counter
from collections.abc import Sequence

from compaction.core.budget import take_share
from compaction.core.groups.stages import ProtectKnobs
from compaction.core.tool_pairs import find_safe_cuts
from compaction.core.transcript import TranscriptEntry


def find_boundary(
    entries: Sequence[TranscriptEntry],
    *,
    protected_tokens: int,
    token_ratio: float = 1.0,
    up_to_seq: int | None = None,
) -> int | None:
    """The seq of the first message to keep as it is, or None when there is nothing before it.

    Walks back from the newest message while all fits in `protected` tokens, an estimated token standing for `scale` real ones
    (FEAT-011, Process). The newest message always stays, with the calls or results it pairs with, even when it alone is larger.
    All that fits stays, so the tail may begin with an answer; never with a tool result. `up_to_seq`: nothing newer than that is given up.
    """
    cuts = find_safe_cuts(entries)
    start = limit_start(
        entries, cuts, find_start_within(entries, cuts, protected_tokens, token_ratio), up_to_seq
    )
    return entries[start].seq if start else None


def find_start_within(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], tokens: int, token_ratio: float = 1.0
) -> int:
    """The index of the oldest safe place from which all fits in so many real tokens; the newest one when not even that fits."""
    earliest = _find_first_fitting(entries, tokens, token_ratio)
    return next((cut for cut in cuts if cut >= earliest), cuts[-1] if cuts else 0)


def find_tail_start(
    entries: Sequence[TranscriptEntry],
    cuts: Sequence[int],
    protect: ProtectKnobs,
    *,
    protected_tokens: int,
    token_ratio: float = 1.0,
) -> int:
    """The index of the safe place where the policy's tail begins: by tokens at most `protected`, by number never fewer than it says."""
    if protect.kind == "token_ratio":
        return find_start_within(entries, cuts, protected_tokens, token_ratio)
    start = min(find_newest_indices(entries, protect), default=len(entries))
    return max((cut for cut in cuts if cut <= start), default=0)


def find_newest_indices(entries: Sequence[TranscriptEntry], protect: ProtectKnobs) -> Sequence[int]:
    """The indices of the messages that a policy which counts messages protects; by role they need not be neighbors."""
    if protect.kind == "per_role":
        return _find_newest_of_each_role(entries, protect.count)
    if protect.kind == "user_turns":
        user_indices = [index for index, entry in enumerate(entries) if entry.role == "user"]
        start = (
            0
            if protect.count > len(user_indices)
            else [*user_indices, len(entries)][len(user_indices) - protect.count]
        )
    else:
        tail_length = (
            protect.count
            if protect.kind == "count"
            else max(protect.minimum, take_share(protect.ratio, len(entries)))
        )
        start = max(0, len(entries) - tail_length)
    return range(start, len(entries))


def limit_start(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], start: int, up_to_seq: int | None
) -> int:
    """The newest safe place not after `first` that gives up nothing newer than `up_to_seq`."""
    if up_to_seq is None or not start:
        return start
    return max(
        (cut for cut in cuts if 0 < cut <= start and entries[cut - 1].seq <= up_to_seq), default=0
    )


def _find_newest_of_each_role(entries: Sequence[TranscriptEntry], count: int) -> list[int]:
    role_counts: Counter[str] = Counter()
    indices: list[int] = []
    for index in range(len(entries) - 1, -1, -1):
        role_counts[entries[index].role] += 1
        if role_counts[entries[index].role] <= count:
            indices.append(index)
    return indices


def _find_first_fitting(
    entries: Sequence[TranscriptEntry], protected_tokens: int, token_ratio: float
) -> int:
    total = 0
    for index in range(len(entries) - 1, -1, -1):
        total += entries[index].tokens
        if total * token_ratio > protected_tokens:
            return index + 1
    return 0
