"""Where the protected tail begins: the newest messages, by tokens, by number, by role or by turn, and never inside a tool call's answer."""

from collections import Counter
from collections.abc import Sequence

from compaction.core.budget import share
from compaction.core.groups.stages import Protect
from compaction.core.tool_pairs import safe_cuts
from compaction.core.transcript import Entry


def choose(
    entries: Sequence[Entry], *, protected: int, scale: float = 1.0, up_to_seq: int | None = None
) -> int | None:
    """The seq of the first message to keep as it is, or None when there is nothing before it.

    Walks back from the newest message while all fits in `protected` tokens, an estimated token standing for `scale` real ones
    (FEAT-011, Process). The newest message always stays, with the calls or results it pairs with, even when it alone is larger.
    All that fits stays, so the tail may begin with an answer; never with a tool result. `up_to_seq`: nothing newer than that is given up.
    """
    cuts = safe_cuts(entries)
    first = limited(entries, cuts, within(entries, cuts, protected, scale), up_to_seq)
    return entries[first].seq if first else None


def within(entries: Sequence[Entry], cuts: Sequence[int], tokens: int, scale: float = 1.0) -> int:
    """The index of the oldest safe place from which all fits in so many real tokens; the newest one when not even that fits."""
    fits = _first_that_fits(entries, tokens, scale)
    return next((cut for cut in cuts if cut >= fits), cuts[-1] if cuts else 0)


def wanted(
    entries: Sequence[Entry],
    cuts: Sequence[int],
    protect: Protect,
    *,
    protected: int,
    scale: float = 1.0,
) -> int:
    """The index of the safe place where the policy's tail begins: by tokens at most `protected`, by number never fewer than it says."""
    if protect.kind == "token_ratio":
        return within(entries, cuts, protected, scale)
    start = min(newest(entries, protect), default=len(entries))
    return max((cut for cut in cuts if cut <= start), default=0)


def newest(entries: Sequence[Entry], protect: Protect) -> Sequence[int]:
    """The indices of the messages that a policy which counts messages protects; by role they need not be neighbors."""
    if protect.kind == "per_role":
        return _newest_of_each_role(entries, protect.count)
    if protect.kind == "user_turns":
        asked = [index for index, entry in enumerate(entries) if entry.role == "user"]
        start = (
            0 if protect.count > len(asked) else [*asked, len(entries)][len(asked) - protect.count]
        )
    else:
        kept = (
            protect.count
            if protect.kind == "count"
            else max(protect.minimum, share(protect.ratio, len(entries)))
        )
        start = max(0, len(entries) - kept)
    return range(start, len(entries))


def limited(
    entries: Sequence[Entry], cuts: Sequence[int], first: int, up_to_seq: int | None
) -> int:
    """The newest safe place not after `first` that gives up nothing newer than `up_to_seq`."""
    if up_to_seq is None or not first:
        return first
    return max(
        (cut for cut in cuts if 0 < cut <= first and entries[cut - 1].seq <= up_to_seq), default=0
    )


def _newest_of_each_role(entries: Sequence[Entry], count: int) -> list[int]:
    seen: Counter[str] = Counter()
    found: list[int] = []
    for index in range(len(entries) - 1, -1, -1):
        seen[entries[index].role] += 1
        if seen[entries[index].role] <= count:
            found.append(index)
    return found


def _first_that_fits(entries: Sequence[Entry], protected: int, scale: float) -> int:
    total = 0
    for index in range(len(entries) - 1, -1, -1):
        total += entries[index].tokens
        if total * scale > protected:
            return index + 1
    return 0
