"""Rank the lines of the ledger by what a reader would miss most."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from compaction.memory.core.ledger.lines import KINDS, LedgerLine
from compaction.memory.core.ledger.names import find_names
from compaction.memory.core.ledger.values import find_values

_WORD = re.compile(r"[^\W\d_]+")


def rank_lines(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """Return the lines, those first that are to be kept if there is room for few.

    Pinned lines come first, then the kinds in the order of KINDS. Within a kind those with an exact
    value come before those without one. Then come those whose values stand in several lines, and
    then the newest.
    """
    all_lines = list(lines)
    counts = Counter(value for line in all_lines for value in set(_list_values(line.text)))
    return sorted(all_lines, key=lambda line: _build_rank(line, counts))


def _build_rank(line: LedgerLine, counts: Mapping[str, int]) -> tuple[int, ...]:
    values = _list_values(line.text)
    most_mentions = max((counts[value] for value in values), default=0)
    has_value = bool(values) or any(find_names(line.text, set(_WORD.findall(line.text.lower()))))
    return (
        not line.pinned,
        KINDS.index(line.kind),
        line.status != "current",
        not has_value,
        -min(most_mentions, 3),
        -line.seq,
    )


# A pass renders the same lines several times, and looking for values takes most of it.
@lru_cache(maxsize=4_096)
def _list_values(text: str) -> tuple[str, ...]:
    return tuple(value.text for value in find_values(text))
