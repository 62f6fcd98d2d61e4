"""Overlaps of two histories: the fast algorithm finds what a plain search finds."""

from hypothesis import given
from hypothesis import strategies as st

from chatcore.contrib.compat.chat_completions.matching import find_overlaps

words = st.lists(st.sampled_from("ab"), max_size=12)


@given(words, words)
def test_every_overlap_is_found_the_longest_first(first: list[str], then: list[str]) -> None:
    plain = [
        length
        for length in range(min(len(first), len(then)), 0, -1)
        if first[:length] == then[-length:]
    ]
    assert list(find_overlaps(first, then)) == plain
