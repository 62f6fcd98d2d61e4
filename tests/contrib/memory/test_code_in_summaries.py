"""Code in a summary is kept whole with its indentation, or left out whole."""

import pytest

from compaction.core.outcome import Segment
from compaction.memory.core.segments.composition import compose_summary, shorten_by_rank
from compaction.memory.core.verify.checks import find_untruths
from compaction.memory.core.verify.extract import write_extract
from compaction.memory.core.verify.sources import Source, SourceIndex

CODE = """```python
def price(rate):
    if rate > 3:
        return rate * 2

    return 7
```"""
TILDES = CODE.replace("```", "~~~")
PROSE = "The rack {0} stands in room {0}. It was bought by Ada in the year {0}. "


def count(text: str) -> int:
    return len(text) // 4


@pytest.mark.parametrize("code", [CODE, TILDES, CODE.replace("python", "")])
@pytest.mark.parametrize("space", range(20, 400, 20))
def test_a_shortened_text_has_a_block_whole_or_not_at_all(code: str, space: int) -> None:
    before = "".join(PROSE.format(number) for number in range(100, 110))
    text = f"{before}\nThey agreed on this:\n{code}\nAfter it came lunch. {before}"
    shorter_text = shorten_by_rank(text, space, count)
    assert code in shorter_text or "rate" not in shorter_text
    segments = [Segment(first_seq=1, last_seq=9, text=text)] * 3
    summary = compose_summary(segments, space=space, limit=2_000, count_tokens=count)
    assert summary.count("rate") == summary.count(code) * code.count("rate")


def test_a_block_that_is_cut_is_left_out() -> None:
    assert shorten_by_rank(CODE, 20, count) == "[code left out]"


def test_code_of_the_messages_is_true_and_ends_a_summary_well() -> None:
    index = SourceIndex([Source("user", f"Use this:\n{CODE}"), Source("assistant", "I will.")])
    assert find_untruths(f"The user wants this function:\n{CODE}", index) == []


def test_an_extract_has_code_as_it_was_written() -> None:
    text = write_extract(None, [Source("user", f"Never change this:\n{CODE}", 4)], max_chars=900)
    assert CODE in text
