"""The fallback: a request made to fit by leaving out its oldest messages, while what is stored stays as it is."""

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
    """The entries without the oldest, until `overhead` and the rest (an estimated token standing for `scale` real ones) fit.

    `overhead` is in real tokens, summary included. Calls go with their results. The newest user message always stays, and so does
    the newest message with its pair: when these alone are over the limit they come back all the same, and the caller decides.
    A tail that would begin inside a turn loses the rest of that turn, unless it is one of the last two. FEAT-011, Failure Handling.
    """
    pieces = split_entries(entries)
    user_indices = [
        index for index, piece in enumerate(pieces) if any(entry.role == "user" for entry in piece)
    ]
    previous_index, newest_index = [-1, -1, *user_indices][-2:]
    total = sum(entry.tokens for entry in entries) * token_ratio + overhead_tokens
    removals: set[int] = set()
    for index, piece in enumerate(pieces[:-1]):
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
    """The entries without a share of the oldest after the `first` ones, time and again until the rest fits (NeuroLink, Stage 4).

    Calls go with their results; pinned messages, the newest user message and the newest message stay. Numbers are `drop_oldest`'s. What
    does not fit comes back as small as it gets, and the caller decides.
    """
    cuts, protected_seqs, total = (
        find_safe_cuts(entries),
        _find_protected_seqs(entries, first_count),
        sum(entry.tokens for entry in entries),
    )
    savings = list(
        accumulate(
            (0 if entry.seq in protected_seqs else entry.tokens for entry in entries), initial=0
        )
    )
    start_index = find_slide_index(
        cuts,
        start=next(
            (index for index, entry in enumerate(entries) if entry.seq not in protected_seqs),
            len(entries),
        ),
        stop=cuts[-1] if cuts else 0,
        length=len(entries),
        fraction=fraction,
        fits=lambda start_index: (
            (total - savings[start_index]) * token_ratio + overhead_tokens <= limit_tokens
        ),
    )
    return tuple(
        entry
        for index, entry in enumerate(entries)
        if index >= start_index or entry.seq in protected_seqs
    )


def _find_protected_seqs(entries: Sequence[TranscriptEntry], first_count: int) -> frozenset[int]:
    """The seqs of the first messages, of pinned ones and of the newest user message, pairs whole."""
    seqs, message_count = set[int](), 0
    newest_user_seq = max((entry.seq for entry in entries if entry.role == "user"), default=None)
    for piece in split_entries(entries):
        if message_count < first_count or any(
            entry.pinned or entry.seq == newest_user_seq for entry in piece
        ):
            seqs |= {entry.seq for entry in piece}
        message_count += len(piece)
    return frozenset(seqs)
