"""The fallback: make a request fit by leaving out its oldest messages, without storing anything."""

from collections.abc import Sequence
from itertools import accumulate

from compaction.core.sliding import find_slide_index
from compaction.core.tool_pairs import find_safe_cuts, split_entries
from compaction.core.transcript import TranscriptEntry


def drop_oldest_to_fit(
    entries: Sequence[TranscriptEntry],
    *,
    limit_tokens: int,
    overhead_tokens: int = 0,
    token_ratio: float = 1.0,
) -> tuple[TranscriptEntry, ...]:
    """Return the entries without the oldest, so that the overhead and the rest fit in the limit.

    `limit_tokens` and `overhead_tokens`, which includes the summary, are real tokens; `token_ratio`
    is how many of them one estimated token of an entry stands for.

    Calls go with their results. The newest user message always stays, and so does the newest
    message with its pair; if these alone are over the limit they are returned all the same, and the
    caller decides. If the rest would begin inside a turn, that turn goes completely, unless it is
    one of the last two. (FEAT-011, Failure Handling Rules)
    """
    pieces = split_entries(entries)
    user_indices = [
        index for index, piece in enumerate(pieces) if any(entry.role == "user" for entry in piece)
    ]
    newest_index = user_indices[-1] if user_indices else -1
    previous_index = user_indices[-2] if len(user_indices) > 1 else -1
    total = sum(entry.tokens for entry in entries) * token_ratio + overhead_tokens
    removals: set[int] = set()
    for index, piece in enumerate(pieces[:-1]):
        # A turn without its question confuses the model, so the rest of it goes too.
        is_inside_turn = bool(removals) and piece[0].role != "user" and index < previous_index
        if total <= limit_tokens and not is_inside_turn:
            break
        if index != newest_index:
            removals.add(index)
            total -= sum(entry.tokens for entry in piece) * token_ratio
    return tuple(
        entry for index, piece in enumerate(pieces) if index not in removals for entry in piece
    )


def slide_to_fit(
    entries: Sequence[TranscriptEntry],
    *,
    limit_tokens: int,
    first_count: int,
    fraction: float,
    overhead_tokens: int = 0,
    token_ratio: float = 1.0,
) -> tuple[TranscriptEntry, ...]:
    """Return the entries without shares of the oldest after the first ones, until the rest fits.

    The numbers mean the same as in `drop_oldest_to_fit`. Calls go with their results; pinned
    messages, the newest user message and the newest message stay. What cannot be made to fit is
    returned as small as it gets, and the caller decides.
    (NeuroLink, Stage 4: Sliding Window Truncation)
    """
    cuts = find_safe_cuts(entries)
    protected_seqs = _find_protected_seqs(entries, first_count)
    removable_tokens = [0 if entry.seq in protected_seqs else entry.tokens for entry in entries]
    savings = list(accumulate(removable_tokens, initial=0))
    total = sum(entry.tokens for entry in entries)
    removable_indices = (
        index for index, entry in enumerate(entries) if entry.seq not in protected_seqs
    )

    def fits(index: int) -> bool:
        return (total - savings[index]) * token_ratio + overhead_tokens <= limit_tokens

    start_index = find_slide_index(
        cuts,
        start=next(removable_indices, len(entries)),
        stop=cuts[-1] if cuts else 0,
        length=len(entries),
        fraction=fraction,
        fits=fits,
    )
    return tuple(
        entry
        for index, entry in enumerate(entries)
        if index >= start_index or entry.seq in protected_seqs
    )


def _find_protected_seqs(entries: Sequence[TranscriptEntry], first_count: int) -> frozenset[int]:
    """Return the seqs of the first messages, the pinned ones and the newest user message.

    Each comes with the calls or results that it pairs with.
    """
    seqs: set[int] = set()
    message_count = 0
    newest_user_seq = max((entry.seq for entry in entries if entry.role == "user"), default=None)
    for piece in split_entries(entries):
        is_first = message_count < first_count
        if is_first or any(entry.pinned or entry.seq == newest_user_seq for entry in piece):
            seqs |= {entry.seq for entry in piece}
        message_count += len(piece)
    return frozenset(seqs)
