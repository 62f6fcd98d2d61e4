"""Where a protected tail begins that is counted by messages, by role or by turn."""

from collections.abc import Sequence

from compaction.core.boundary import find_last_cut
from compaction.core.budget import take_share
from compaction.core.policy import Policy
from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.settings import TailKnobs


def find_tail_start(entries: Sequence[TranscriptEntry], cuts: Sequence[int], policy: Policy) -> int:
    """Return the cut at which the policy's tail begins.

    It never has fewer messages than the policy says.
    """
    return find_last_cut(cuts, min(find_newest_indices(entries, policy), default=len(entries)))


def find_newest_indices(entries: Sequence[TranscriptEntry], policy: Policy) -> Sequence[int]:
    """Return the indices of the messages that a policy protects by number.

    By role they need not be neighbors, and come newest first.
    """
    protect, count = policy.get(TailKnobs), len(entries)
    if protect.kind == "per_role":
        return _find_newest_of_each_role(entries, protect.count)
    if protect.kind == "user_turns":
        return range(_find_turn_start(entries, protect.count), count)
    if protect.kind == "count":
        tail_length = protect.count
    else:
        tail_length = max(protect.minimum, take_share(policy.protect.ratio, count, round_up=True))
    return range(max(0, count - tail_length), count)


def _find_turn_start(entries: Sequence[TranscriptEntry], turn_count: int) -> int:
    """Return the index where the newest `turn_count` turns begin, or 0 if there are fewer."""
    turn_starts = [index for index, entry in enumerate(entries) if entry.role == "user"]
    if turn_count == 0:
        return len(entries)
    return turn_starts[-turn_count] if turn_count <= len(turn_starts) else 0


def _find_newest_of_each_role(entries: Sequence[TranscriptEntry], count: int) -> list[int]:
    role_counts: dict[str, int] = {}
    indices: list[int] = []
    for index in range(len(entries) - 1, -1, -1):
        role = entries[index].role
        role_count = role_counts.get(role, 0)
        if role_count < count:
            role_counts[role] = role_count + 1
            indices.append(index)
    return indices
