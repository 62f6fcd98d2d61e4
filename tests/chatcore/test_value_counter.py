"""Values of JSON are counted as they come, whatever is in texts and wherever a piece ends."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatcore.base.net.guarded_transport import ValueCounter

TEXTS = st.text(st.sampled_from('a,{["\\]} '), max_size=8)
VALUES = st.recursive(
    TEXTS | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def count_signs(value: Any) -> int:
    """Each list and each object has a bracket, and commas between its members."""
    if not isinstance(value, list | dict):
        return 0
    members = list(value.values() if isinstance(value, dict) else value)
    return 1 + max(0, len(members) - 1) + sum(map(count_signs, members))


@given(VALUES, st.integers(1, 7))
def test_it_counts_what_stands_outside_of_texts(value: Any, size: int) -> None:
    raw = json.dumps(value).encode()
    counter = ValueCounter()
    counts = [counter.count(raw[start : start + size]) for start in range(0, len(raw), size)]
    assert counts[-1] == count_signs(value)
