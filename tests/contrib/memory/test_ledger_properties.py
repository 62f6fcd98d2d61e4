"""Properties of the ledger on any text, hostile ones too."""

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.memory.core.ledger.contradictions import CurrentValues
from compaction.memory.core.ledger.lines import LINE_CHARS, LedgerLine
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.core.ledger.recognition import recognize_lines
from compaction.memory.core.ledger.rendering import render_ledger
from tests.support import ledger_wordings as wordings

PIECES = st.sampled_from(
    """
    never always nie immer must not don't only please bitte ab jetzt 8080 3.50 € $ INV-118 May 3. z.
    B. e.g. Dr. https://a.b/c /etc/x a@b.de “ ” " ' ` ``` > - * | # : ; , . ! ? ( ) [ ] { } the port
    is Ada sister my meine Schwester İ ß ﬁ 日本。 ١٢ 12:30 10% [INFO] I'll send it by Friday make it
    """.split()  # noqa: SIM905
)
GAPS = st.sampled_from([" ", " ", " ", "\n", "\n\n", "", "\u00a0", "\t"])
SENTENCES = st.sampled_from(
    [*wordings.RULES_EN, *wordings.RULES_DE, *wordings.VALUES_EN, *wordings.ORDINARY_DE]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(st.one_of(PIECES, SENTENCES, st.text(max_size=8)), GAPS)))
    return "".join(piece + gap for piece, gap in parts)


@st.composite
def ledgers(draw: st.DrawFn) -> list[LedgerLine]:
    roles = st.sampled_from(["user", "user", "tool"])
    messages = draw(st.lists(st.tuples(texts(), roles, st.integers(1, 9)), max_size=6))
    return [
        line for text, role, seq in messages for line in recognize_lines(text, role=role, seq=seq)
    ]


@given(texts(), st.sampled_from(["user", "tool", "assistant"]))
@settings(max_examples=100, deadline=None)
def test_every_line_is_a_part_of_its_message(text: str, role: str) -> None:
    plain_text = " ".join(text.split())
    for line in recognize_lines(text, role=role, seq=1):
        assert " ".join(line.text.split()) in plain_text
        assert 0 < len(line.text) <= LINE_CHARS
        assert (line.seq, line.role, line.status) == (1, role, "current")


@given(ledgers(), ledgers())
@settings(max_examples=40, deadline=None)
def test_merging_twice_is_merging_once(
    lines: list[LedgerLine], new_lines: list[LedgerLine]
) -> None:
    ledger = merge_lines(merge_lines((), lines), new_lines)
    assert merge_lines(ledger, new_lines) == ledger
    assert merge_lines(ledger, ()) == ledger


@given(ledgers())
@settings(max_examples=40, deadline=None)
def test_a_superseded_line_names_a_newer_one(lines: list[LedgerLine]) -> None:
    for line in merge_lines((), lines):
        assert (line.status == "superseded") == (line.superseded_by is not None)
        assert line.superseded_by is None or line.superseded_by >= line.seq


@given(ledgers(), st.integers(0, 3_000))
@settings(max_examples=40, deadline=None)
def test_the_text_fits_and_has_whole_lines(lines: list[LedgerLine], max_chars: int) -> None:
    ledger = merge_lines((), lines)
    text = render_ledger(ledger, max_chars=max_chars)
    assert len(text) <= max_chars
    starts = tuple(f"- [{line.seq}] {line.text}" for line in ledger)
    assert all(row.startswith(starts) for row in text.split("\n") if row.startswith("- ["))


@given(texts(), ledgers())
@settings(max_examples=40, deadline=None)
def test_a_summary_of_any_text_can_be_compared(summary: str, lines: list[LedgerLine]) -> None:
    CurrentValues(merge_lines((), lines)).contradict(summary)


def test_hostile_repetitions_end() -> None:
    for piece in (
        "nie und ",
        "and please never ",
        "1 ",
        "a.",
        "`a",
        '"a ',
        "((",
        "my sister Ada ",
        "a@b.",
        "x",
    ):
        recognize_lines(piece * 2_000, role="user", seq=1)
