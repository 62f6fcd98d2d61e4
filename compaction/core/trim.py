"""The fallback: a request made to fit by leaving out its oldest messages, while what is stored stays as it is."""

from collections.abc import Sequence

from compaction.core.tool_pairs import groups
from compaction.core.transcript import Entry


def drop_oldest(entries: Sequence[Entry], *, limit_tokens: int, overhead: int = 0, scale: float = 1.0) -> tuple[Entry, ...]:
    """The entries without the oldest, until `overhead` and the rest (an estimated token standing for `scale` real ones) fit.

    `overhead` is in real tokens, summary included. Calls go with their results. The newest user message always stays, and so does
    the newest message with its pair: when these alone are over the limit they come back all the same, and the caller decides.
    A tail that would begin inside a turn loses the rest of that turn, unless it is one of the last two. FEAT-011, Failure Handling.
    """
    pieces = groups(entries)
    asking = [index for index, piece in enumerate(pieces) if any(entry.role == "user" for entry in piece)]
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
    return tuple(entry for index, piece in enumerate(pieces) if index not in dropped for entry in piece)
