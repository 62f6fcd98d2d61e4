"""Check what the summary model wrote against the messages, and write an extract in its place."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from compaction.core.estimate import estimate_summary
from compaction.core.outcome import NumberedLine
from compaction.core.policy import Policy
from compaction.core.summary import SummaryFailed
from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.removal import TakenBack
from compaction.memory.core.segments.composition import shorten_by_rank
from compaction.memory.core.verify.checks import verify_summary
from compaction.memory.core.verify.completion import add_missing_lines
from compaction.memory.core.verify.extract import write_extract
from compaction.memory.core.verify.report import build_record, build_report
from compaction.memory.core.verify.sources import Role, Source, SourceIndex
from compaction.memory.forgotten import load_taken_back
from compaction.memory.ledger.store import load_lines
from compaction.models import CompactionRun
from compaction.sessions.memory_app import SummaryVerifier
from compaction.summaries.call_log import UntrueSummary
from compaction.summaries.source import DAY_HEADER, HEADER
from textkit.calendar import parse_day

ADDED_SHARE = 0.15  # of a summary's tokens may be what is added to it word for word
SMALLEST_EXTRACT_CHARS = 200
LENGTH_TOLERANCE = 1.5  # of its tokens; a summary that is longer loses sentences


class LedgerVerifier(SummaryVerifier):
    """The checks of one run's summaries, and the record of what they found."""

    def __init__(self, run: CompactionRun, policy: Policy) -> None:
        self.run = run
        self.policy = policy
        self.extract_reason = ""
        self._records: list[dict[str, object]] = []
        self._lasting: dict[str, int] = {}
        self._index: tuple[tuple[str | None, str], SourceIndex] | None = None

    def verify(
        self, summary: str, *, previous: str | None, lines: str, max_tokens: int, may_grow: bool
    ) -> str:
        """Return the summary as it may be installed: checked, and repaired if the policy allows it.

        `lines` are the messages of the call as the model read them. Raises UntrueSummary.
        """
        knobs = self.policy.verify
        if not knobs.checks:
            return summary
        index = self._build_index(previous, lines)
        verification = verify_summary(
            summary, index, may_repair=knobs.repair, ledger_lines=self._ledger_lines
        )
        self._record(verification.records)
        if verification.objection:
            raise UntrueSummary(verification.objection)
        if may_grow or not knobs.repair:
            return verification.summary
        summary = self._shorten(verification.summary, max_tokens)
        if self.policy.ledger.ratio:
            return summary
        free_chars = (len(lines) + len(previous or "") - len(summary)) // 2
        max_chars = min(int(max_tokens * CHARS_PER_TOKEN_ESTIMATE * ADDED_SHARE), free_chars)
        complete_summary, records = add_missing_lines(summary, index.sources, max_chars=max_chars)
        self._record(records)
        return complete_summary

    def _shorten(self, summary: str, max_tokens: int) -> str:
        """Return a summary that is much too long without its sentences of the lowest rank."""
        if self._count_tokens(summary) <= max_tokens * LENGTH_TOLERANCE:
            return summary
        self._record([build_record("length", summary, "shortened")])
        return shorten_by_rank(summary, max_tokens, self._count_tokens)

    def _count_tokens(self, text: str) -> int:
        return estimate_summary(text, self.policy)

    @cached_property
    def _taken_back(self) -> TakenBack:
        return load_taken_back(self.run.session_id)

    @cached_property
    def _ledger_lines(self) -> list[LedgerLine]:
        """What was said word for word; nothing where the policy keeps no ledger."""
        if not self.policy.ledger.ratio:
            return []
        return load_lines(self.run.session_id)

    def write_extract(
        self,
        failure: SummaryFailed,
        *,
        previous: str | None,
        lines: Sequence[NumberedLine],
        max_tokens: int,
    ) -> str:
        """Return sentences of the messages in place of a summary that could not be written.

        Raises the failure again where the policy writes no extracts.
        """
        if not self.policy.verify.extract:
            raise failure
        self.extract_reason = self.extract_reason or failure.reason
        sources = [
            replace(source, seq=line.seq, day=line.day)
            for line in lines
            for source in parse_sources(None, line.text)
        ]
        source_tokens = sum(estimate_summary(line.text, self.policy) for line in lines)
        source_tokens += estimate_summary(previous, self.policy)
        limit = min(max_tokens, source_tokens // 2)
        max_chars = max_tokens * CHARS_PER_TOKEN_ESTIMATE
        while max_chars >= SMALLEST_EXTRACT_CHARS:
            text = write_extract(
                previous, sources, max_chars=max_chars, taken_back=self._taken_back
            )
            if text and estimate_summary(text, self.policy) <= limit:
                self._record([])
                return text
            max_chars = max_chars * 3 // 4
        raise failure

    def _record(self, records: Sequence[dict[str, object]]) -> None:
        """Keep what was found with the run, whose end writes it to the database."""
        self._records += records
        self.run.verification = build_report(self._records)
        if self._lasting:
            self.run.verification["lasting"] = self._lasting
        if self.extract_reason:
            self.run.verification["extract"] = self.extract_reason

    def note_lasting(self, report: dict[str, int]) -> None:
        """Keep what the summary model said of what lasts, and what it cost."""
        self._lasting = report
        self._record([])

    def _build_index(self, previous: str | None, lines: str) -> SourceIndex:
        if self._index is None or self._index[0] != (previous, lines):
            self._index = (previous, lines), SourceIndex(parse_sources(previous, lines))
        return self._index[1]


def parse_sources(previous: str | None, lines: str) -> list[Source]:
    """Return the messages of a call, and the earlier summary, with who wrote each.

    No message can imitate a header (`summaries/source.py`). The headers of days are left out.
    """
    days = {match.end(): parse_day(match[1]) for match in DAY_HEADER.finditer(lines)}
    sources = [Source("summary", previous)] if previous else []
    marks = list(HEADER.finditer(lines))
    first_text = DAY_HEADER.sub("", lines[: marks[0].start()] if marks else lines)
    if first_text.strip():
        sources.append(Source("summary", first_text.strip()))
    ends = [*(mark.start() for mark in marks[1:]), len(lines)][: len(marks)]
    day: date | None = None
    for mark, end in zip(marks, ends, strict=True):
        day = days.get(mark.start(), day)
        text = DAY_HEADER.sub("", lines[mark.end() : end]).strip("\n").rstrip()
        if text:
            sources.append(Source(_find_role(mark["mark"]), text, day=day))
    return sources


def _find_role(mark: str) -> Role:
    if mark == "user":
        return "user"
    if mark.startswith("summary"):
        return "summary"
    return "tool" if mark.startswith("result") else "assistant"
