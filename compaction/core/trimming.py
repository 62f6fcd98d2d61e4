"""The fallback: a request made to fit by leaving out its oldest messages, while what is stored stays as it is."""

from collections.abc import Sequence
from itertools import accumulate

from compaction.core.sliding import slide_to
from compaction.core.tool_pairs import groups, safe_cuts
from compaction.core.transcript import Entry


def drop_oldest(
    entries: Sequence[Entry], *, limit_tokens: int, overhead: int = 0, scale: float = 1.0
) -> tuple[Entry, ...]:
    """The entries without the oldest, until `overhead` and the rest (an estimated token standing for `scale` real ones) fit.

    `overhead` is in real tokens, summary included. Calls go with their results. The newest user message always stays, and so does
    the newest message with its pair: when these alone are over the limit they come back all the same, and the caller decides.
    A tail that would begin inside a turn loses the rest of that turn, unless it is one of the last two. FEAT-011, Failure Handling.
    """
    pieces = groups(entries)
    asking = [
        index for index, piece in enumerate(pieces) if any(entry.role == "user" for entry in piece)
    ]
    second, newest = [-1, -1, *asking][-2:]
    total = sum(entry.tokens for entry in entries) * scale + overhead
    dropped: set[int] = set()
    for index, piece in enumerate(pieces[:-1]):
        inside_a_turn = bool(dropped) and piece[0].role != "user" and index < second
        if total <= limit_tokens and not inside_a_turn:
            break
        if index != newest:
            dropped.add(index)
            total -= sum(entry.tokens for entry in piece) * scale
    return tuple(
        entry for index, piece in enumerate(pieces) if index not in dropped for entry in piece
    )


def slide(
    entries: Sequence[Entry],
    *,
    limit_tokens: int,
    first: int,
    fraction: float,
    overhead: int = 0,
    scale: float = 1.0,
) -> tuple[Entry, ...]:
    """The entries without a share of the oldest after the `first` ones, time and again until the rest fits (NeuroLink, Stage 4).

    Calls go with their results; pinned messages, the newest user message and the newest message stay. Numbers are `drop_oldest`'s. What
    does not fit comes back as small as it gets, and the caller decides.
    """
    cuts, stays, total = (
        safe_cuts(entries),
        _staying(entries, first),
        sum(entry.tokens for entry in entries),
    )
    less = list(
        accumulate((0 if entry.seq in stays else entry.tokens for entry in entries), initial=0)
    )
    place = slide_to(
        cuts,
        start=next(
            (index for index, entry in enumerate(entries) if entry.seq not in stays), len(entries)
        ),
        stop=cuts[-1] if cuts else 0,
        length=len(entries),
        fraction=fraction,
        fits=lambda place: (total - less[place]) * scale + overhead <= limit_tokens,
    )
    return tuple(
        entry for index, entry in enumerate(entries) if index >= place or entry.seq in stays
    )


def _staying(entries: Sequence[Entry], first: int) -> frozenset[int]:
    """The seqs of the first messages, of pinned ones and of the newest user message, pairs whole."""
    found, seen = set[int](), 0
    asked = max((entry.seq for entry in entries if entry.role == "user"), default=None)
    for piece in groups(entries):
        if seen < first or any(entry.pinned or entry.seq == asked for entry in piece):
            found |= {entry.seq for entry in piece}
        seen += len(piece)
    return frozenset(found)
