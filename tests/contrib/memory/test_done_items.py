"""Work that newer messages report as finished is not listed as open any more."""

import pytest

from compaction.core.outcome import Segment
from compaction.memory.core.segments.composition import compose_summary


def compose(*texts: str) -> str:
    segments = [
        Segment(first_seq=10 * index + 1, last_seq=10 * index + 10, text=text, kind="span")
        for index, text in enumerate(texts)
    ]
    return compose_summary(
        segments, space=4_000, limit=4_000, count_tokens=lambda text: len(text) // 4
    )


@pytest.mark.parametrize(
    ("still_open", "done"),
    [
        ("The contract still has to be sent to Mr. Weber.", "The contract was sent to Mr. Weber."),
        ("## Next steps\n- Write the invoice for Lisbon.", "The invoice for Lisbon is done."),
        ("Next step: migrate the orders table.", "The orders table migration is finished."),
        ("Der Mietwagen muss noch reserviert werden.", "Der Mietwagen ist erledigt."),
        ("They plan to visit the castle on Sunday.", "The castle visit on Sunday was cancelled."),
    ],
)
def test_a_finished_item_is_told_as_done_only(still_open: str, done: str) -> None:
    summary = compose(f"The trip is in May.\n{still_open}", done)
    assert still_open.splitlines()[-1] not in summary
    assert done in summary
    assert "The trip is in May." in summary


@pytest.mark.parametrize(
    ("still_open", "later"),
    [
        ("The contract still has to be sent to Mr. Weber.", "The contract is not yet sent."),
        ("The contract still has to be sent to Mr. Weber.", "The boat to Porto was booked."),
        ("The deposit must be paid in cash.", "The deposit for Porto was paid."),
        ("The contract was sent to Mr. Weber.", "The contract has to be sent to Mr. Weber again."),
    ],
)
def test_what_is_not_finished_stays_word_for_word(still_open: str, later: str) -> None:
    summary = compose(still_open, later)
    assert still_open in summary
    assert later in summary
