"""The splitter of sentences: abbreviations, decimals, lists, quotations, code and logs."""

import pytest

from compaction.memory.core.ledger.sentences import split_sentences


def split(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Use a fruit, e.g. an apple, for the cake.",
        "Das gilt z. B. für Dr. Meier bzw. Fr. Klein.",
        "The price is 3.50 and version 2.14.1 is out.",
        "Open https://example.com/a.b?c=d.e and read /etc/hosts.allow today.",
        "Am 3. März kommt die Lieferung.",
        "Mr. Smith and J. R. R. Tolkien met at 5 p.m. sharp.",
        "He said “Really? Yes.” and left.",
    ],
)
def test_a_sentence_is_not_cut_within(sentence: str) -> None:
    assert split(f"{sentence} Then we left.") == [sentence, "Then we left."]


def test_lower_case_sentences_are_split_too() -> None:
    assert split("ok thanks. the port is 80. never push") == [
        "ok thanks.",
        "the port is 80.",
        "never push",
    ]


def test_the_items_of_a_list_are_sentences() -> None:
    assert split("We need:\n1. Bread\n2) Milk\n- Salt") == ["We need:", "Bread", "Milk", "Salt"]


def test_a_wrapped_line_goes_on_in_the_next() -> None:
    text = "This is a line of a mail that somebody wrapped at some\nwidth, as mails are. Next."
    assert split(text)[0].endswith("at some width, as mails are.")


def test_code_logs_tables_and_quotations_are_left_out() -> None:
    text = """Look at this:
```python
x = 1  # never change this
```
> never quote me
| never | always |
2026-01-02 10:00:00 ERROR must never happen
Traceback (most recent call last)
const answer = never();
That is all."""
    assert split(text) == ["Look at this:", "That is all."]


def test_a_fence_that_is_never_closed_hides_the_rest() -> None:
    assert split("Hello there.\n```\nnever do this") == ["Hello there."]


def test_a_quotation_is_masked_and_stays_in_the_text() -> None:
    (sentence,) = split_sentences('Bob said "never push on Friday" to me.')
    assert "never" in sentence.text
    assert "never" not in sentence.words
    assert len(sentence.words) == len(sentence.text)


def test_a_long_text_without_marks_is_cut_between_clauses() -> None:
    text = ", and ".join(f"the value of thing number {number} is unclear" for number in range(40))
    pieces = split(text)
    assert max(map(len, pieces)) <= 400
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
