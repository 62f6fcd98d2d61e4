"""Where the protected tail begins: the newest messages, whole, within a number of tokens."""

from collections.abc import Sequence

from compaction.core.tool_pairs import safe_cuts
from compaction.core.transcript import Entry


def choose(entries: Sequence[Entry], *, protected: int, scale: float = 1.0, up_to_seq: int | None = None) -> int | None:
    """The seq of the first message to keep as it is, or None when there is nothing before it.

    Walks back from the newest message while all fits in `protected` tokens, an estimated token standing for `scale` real ones
    (FEAT-011, Process). The newest message always stays, with the calls or results it pairs with, even when it alone is larger.
    All that fits stays, so the tail may begin with an answer; never with a tool result. `up_to_seq`: nothing newer than that is given up.
    """
    cuts = safe_cuts(entries)
    if not cuts:
        return None
    fits = _first_that_fits(entries, protected, scale)
    first = next((cut for cut in cuts if cut >= fits), cuts[-1])
    if up_to_seq is not None:
        first = max(cut for cut in cuts if cut == 0 or (cut <= first and entries[cut - 1].seq <= up_to_seq))
    return entries[first].seq if first else None


def _first_that_fits(entries: Sequence[Entry], protected: int, scale: float) -> int:
    total = 0
    for index in range(len(entries) - 1, -1, -1):
        total += entries[index].tokens
        if total * scale > protected:
            return index + 1
    return 0
