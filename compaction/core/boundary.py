"""Where the protected tail begins: the newest messages by tokens, by number, by role or by turn.

A tail begins only at a safe cut (`tool_pairs.find_safe_cuts`), never between a tool call and its
result. For example, 2,048 protected tokens and messages of 500, 700, 900 and 600 tokens, oldest
first: 600 + 900 fit, 600 + 900 + 700 do not, so the tail begins at the message of 900.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from compaction.core.budget import take_share
from compaction.core.knobs import ProtectKnobs
from compaction.core.tool_pairs import find_safe_cuts
from compaction.core.transcript import TranscriptEntry


def find_boundary(
    entries: Sequence[TranscriptEntry],
    *,
    protected_tokens: int,
    token_ratio: float = 1.0,
    up_to_seq: int | None = None,
) -> int | None:
    """Return the seq of the first message of the tail, or None if nothing is older than the tail.

    Goes back from the newest message while everything fits in `protected_tokens`. `token_ratio` is
    the number of real tokens that one estimated token stands for. The newest message always stays,
    with the calls or results that it pairs with, even if it alone is larger. The tail may begin
    with an answer, but never with a tool result. No message newer than `up_to_seq` leaves the tail.
    (FEAT-011, Process)
    """
    cuts = find_safe_cuts(entries)
    start = find_start_within(entries, cuts, protected_tokens, token_ratio)
    start = limit_start(entries, cuts, start, up_to_seq)
    return entries[start].seq if start else None


def find_start_within(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], tokens: int, token_ratio: float = 1.0
) -> int:
    """Return the oldest cut from which everything fits in so many real tokens.

    Returns the newest cut if not even that fits.
    """
    if not cuts:
        return 0
    earliest = _find_first_fitting(entries, tokens, token_ratio)
    return cuts[min(bisect_left(cuts, earliest), len(cuts) - 1)]


def find_tail_start(
    entries: Sequence[TranscriptEntry],
    cuts: Sequence[int],
    protect: ProtectKnobs,
    *,
    protected_tokens: int,
    token_ratio: float = 1.0,
) -> int:
    """Return the cut at which the policy's tail begins.

    A tail by tokens takes at most `protected_tokens`; a tail by number never has fewer messages
    than the policy says.
    """
    if protect.kind == "token_ratio":
        return find_start_within(entries, cuts, protected_tokens, token_ratio)
    start = min(find_newest_indices(entries, protect), default=len(entries))
    return _find_last_cut(cuts, start)


def find_newest_indices(entries: Sequence[TranscriptEntry], protect: ProtectKnobs) -> Sequence[int]:
    """Return the indices of the messages that a policy protects by number.

    By role they need not be neighbors, and come newest first.
    """
    count = len(entries)
    if protect.kind == "per_role":
        return _find_newest_of_each_role(entries, protect.count)
    if protect.kind == "user_turns":
        return range(_find_turn_start(entries, protect.count), count)
    if protect.kind == "count":
        tail_length = protect.count
    else:
        tail_length = max(protect.minimum, take_share(protect.ratio, count, round_up=True))
    return range(max(0, count - tail_length), count)


def limit_start(
    entries: Sequence[TranscriptEntry], cuts: Sequence[int], start: int, up_to_seq: int | None
) -> int:
    """Return the newest cut up to `start` before which no message is newer than `up_to_seq`."""
    if up_to_seq is None or not start:
        return start
    newer_index = bisect_right(entries, up_to_seq, key=lambda entry: entry.seq)
    return _find_last_cut(cuts, min(start, newer_index))


def _find_last_cut(cuts: Sequence[int], index: int) -> int:
    """Return the newest cut up to an index, or 0."""
    place = bisect_right(cuts, index)
    return cuts[place - 1] if place else 0


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


def _find_first_fitting(
    entries: Sequence[TranscriptEntry], protected_tokens: int, token_ratio: float
) -> int:
    """Return the index from which everything fits, whether it is a cut or not."""
    total = 0
    for index in range(len(entries) - 1, -1, -1):
        total += entries[index].tokens
        if total * token_ratio > protected_tokens:
            return index + 1
    return 0
