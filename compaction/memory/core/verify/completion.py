"""Add to a summary, word for word, the rules and exact values that it leaves out."""

from collections.abc import Sequence

from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.core.ledger.recognition import recognize_lines
from compaction.memory.core.verify.figures import FigureCheck
from compaction.memory.core.verify.polarity import find_opposite, parse_clauses
from compaction.memory.core.verify.report import build_record
from compaction.memory.core.verify.sources import Source, SourceIndex
from compaction.memory.core.verify.words import list_stems

VERBATIM_HEADING = "Word for word:"
RULE_MATCH = 0.7  # of a rule's words must stand in the summary
_ORDER = {"rule": 0, "preference": 1, "decision": 2, "commitment": 3, "fact": 4, "value": 5}


def add_missing_lines(
    summary: str, sources: Sequence[Source], *, max_chars: int
) -> tuple[str, tuple[dict[str, object], ...]]:
    """Return a summary with what it leaves out of the sources, and the records of that.

    What an earlier summary has word for word is carried over. At most `max_chars` characters are
    added, rules first.
    """
    lines = merge_lines((), _list_lines(sources))
    sent_text = SummaryText(summary)
    missing_lines = [
        line for line in lines if line.status == "current" and not sent_text.says(line)
    ]
    missing_lines.sort(key=lambda line: _ORDER[line.kind])
    space = max_chars - len(VERBATIM_HEADING) - 2
    texts: list[str] = []
    for line in missing_lines:
        text = f"- {line.text}"
        if text not in texts and len(text) < space:
            space -= len(text) + 1
            texts.append(text)
    if not texts:
        return summary, ()
    records = tuple(build_record("missing", text.removeprefix("- "), "added") for text in texts)
    return "\n".join([f"{summary}\n\n{VERBATIM_HEADING}", *texts]), records


def _list_lines(sources: Sequence[Source]) -> list[LedgerLine]:
    lines: list[LedgerLine] = []
    for position, source in enumerate(sources):
        text = source.text
        if source.role == "summary":
            text = text.partition(VERBATIM_HEADING)[2]
        if source.role in ("user", "summary"):
            lines += recognize_lines(text, role="user", seq=position)
    return lines


class SummaryText:
    """What the model sees in place of messages, ready to be asked for many lines."""

    def __init__(self, text: str) -> None:
        self._index = SourceIndex([Source("summary", text)])
        self._clauses = parse_clauses(text)

    def says(self, line: LedgerLine) -> bool:
        """Return whether the text says what a line says: its figures, and a rule's words too."""
        text = line.text
        if text.casefold().rstrip(".!") in self._index.text:
            return True
        stems = list_stems(text)
        figures = FigureCheck(self._index, self._index.align([stems]))
        if any(True for _ in figures.find_places(text)):
            return False
        if line.kind == "value":
            return True
        common_stems = stems & self._index.stems
        has_words = len(common_stems) >= RULE_MATCH * len(stems)
        return has_words and not find_opposite(parse_clauses(text), self._clauses)
