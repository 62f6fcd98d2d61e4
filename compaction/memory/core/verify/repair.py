"""Repair a summary: remove the sentences that are untrue, if enough is left."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.verify.checks import count_words, find_untruths
from compaction.memory.core.verify.report import Finding, Verification, build_record
from compaction.memory.core.verify.sources import SourceIndex

LEAST_SHARE = 0.4  # of a summary's words must be left when untrue sentences are removed
LEAST_WORDS = 4
_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*•–+]|\(?\d{1,3}[.)])[ \t]*$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def verify_summary(
    summary: str,
    index: SourceIndex,
    *,
    may_repair: bool,
    ledger_lines: Sequence[LedgerLine] = (),
) -> Verification:
    """Check a summary and, if allowed, remove what is untrue.

    The objection of the result says in one sentence why the summary cannot be used.
    """
    findings = find_untruths(summary, index, ledger_lines=ledger_lines)
    if not findings:
        return Verification(summary=summary)
    rest = remove_sentences(summary, findings)
    words_left = count_words(rest)
    is_enough = words_left >= max(LEAST_WORDS, LEAST_SHARE * count_words(summary))
    if may_repair and is_enough and not find_untruths(rest, index, ledger_lines=ledger_lines):
        return Verification(summary=rest, records=_build_records(findings, "dropped"))
    return Verification(
        summary=summary,
        records=_build_records(findings, "refused"),
        objection=findings[0].reason,
    )


def remove_sentences(text: str, findings: Iterable[Finding]) -> str:
    """Return a text without these sentences, and without the items of lists that they leave."""
    rest = text
    for finding in sorted(findings, key=lambda finding: finding.start, reverse=True):
        rest = rest[: finding.start] + rest[finding.end :]
    rest = _EMPTY_ITEM.sub("", rest)
    rest = re.sub(r"(?<![ \t])[ \t]++$", "", rest, flags=re.MULTILINE)
    return _BLANK_LINES.sub("\n\n", rest).strip()


def _build_records(findings: Iterable[Finding], action: Any) -> tuple[dict[str, object], ...]:
    return tuple(build_record(finding.check, finding.text, action) for finding in findings)
