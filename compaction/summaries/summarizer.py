"""Writes the summary of a pass: in as many calls as it takes, merged as the policy says, and rolled up where it is too long."""

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from compaction.backends.base import STORED_CHARS_PER_TOKEN
from compaction.core.estimate import summary_tokens
from compaction.core.stages.base import SummaryFailed, SummaryTask
from compaction.core.stages.summarize import objection
from compaction.core.state import SECTIONS, merge, numbered
from compaction.models import CompactionRun
from compaction.runs import lifecycle
from compaction.sizing.session_context import Situation
from compaction.summaries import memory, prompt, state_delta
from compaction.summaries import source as summary_source_module
from compaction.summaries import state as summary_state
from compaction.summaries.calls import DELTA_TOKENS, Calls, Job, Written
from compaction.summaries.prompt import Asked
from compaction.summaries.templates import MEMORY, ROLLUP, TEMPLATES

logger = logging.getLogger(__name__)

NOTHING_TOLD = (
    "The earlier messages held nothing but tool calls and results that are left out of summaries."
)
STATE_SHARE = 4  # the state that a call is shown may take a quarter of its room
MEMORY_TOKENS = 1_024
MEMORY_WORDS = 300


class Summarizer:
    """Summarizes for one run, as `pipeline.run` asks; what becomes of state and memory is left with the run. `scale`: as `Calls` says."""

    def __init__(self, run: CompactionRun, situation: Situation, scale: float) -> None:
        self.run, self.policy = run, situation.policy
        self.calls = Calls(run, situation, scale)
        template = TEMPLATES[self.policy.summary.template]
        self.template = (
            replace(template, asks=template.bare)
            if self.calls.echoes and template.bare
            else template
        )
        self.working = summary_state.read(run.session_id)
        run.state_after = {}

    def __call__(self, task: SummaryTask) -> str:
        """The new summary, the one before merged in. Raises SummaryFailed, and Lost when another worker took over."""
        lines = summary_source_module.told(
            task.entries, self.policy.summary, numbered=self.template.numbered
        )
        if not lines:
            return task.previous or NOTHING_TOLD
        lifecycle.started(self.run, messages=len(task.entries), force=self.run.forced)
        self.calls.weigh(task.entries, lines)
        summary = self._rolled_up(self._merged(self._job(task), task, deque(lines)), task)
        self.working = memory.folded(self.working, self.policy.memory, self._blended)
        summary_state.propose(self.run, self.working)
        return summary

    def _job(self, task: SummaryTask) -> Job:
        wanted = self.policy.summary
        asked = Asked(template=self.template, focus=task.instructions)
        job = Job(
            asked=asked,
            max_tokens=self.calls.most_tokens(task.max_tokens),
            min_words=wanted.min_words,
            max_words=wanted.max_words,
            objection=lambda summary: objection(summary, task, self.policy),
        )
        return self._with_state(job) if wanted.state_delta else job

    def _with_state(self, job: Job) -> Job:
        """The same, asking for a delta of the state too; without one where the window has no room for it."""
        state, most = (
            numbered(self.working, self.policy.state),
            self.calls.most_tokens(job.max_tokens + DELTA_TOKENS),
        )
        if most <= DELTA_TOKENS or len(state) > self.calls.room(job, None) / STATE_SHARE:
            logger.warning(
                "the summarizer's window has no room for the state of session %s",
                self.run.session_id,
            )
            return job
        sections = tuple(name for name in SECTIONS if getattr(self.policy.state, name))
        asked = replace(
            job.asked, state=state, sections=sections, memory=bool(self.policy.memory.entries)
        )
        return replace(job, asked=asked, max_tokens=most)

    def _merged(self, job: Job, task: SummaryTask, rest: deque[str]) -> str:
        previous = task.previous
        if (
            previous and len(previous) > self.calls.room(job, None) / 2
        ):  # it leaves no room to merge it: it is told like the rest
            rest.appendleft(prompt.EARLIER.format(summary=previous))
            previous = None
        return (
            self._in_parts(job, previous, rest)
            if self.policy.summary.merging == "parts"
            else self._in_sequence(job, previous, rest)
        )

    def _in_sequence(self, job: Job, previous: str | None, rest: deque[str]) -> str:
        """Chunk after chunk, each merged into the summary so far."""
        summary, whole = previous, _characters(rest)
        while rest:
            written = self.calls.next(job, summary, rest, replaced=whole - _characters(rest))
            job, summary = self._learned(job, written), written.summary
        return summary or ""

    def _in_parts(self, job: Job, previous: str | None, rest: deque[str]) -> str:
        """What fits one call is one call. Else each part is summarized by itself, and the summaries are merged, in the same way."""
        if _characters(rest) <= self.calls.room(job, previous):
            return self._in_sequence(job, previous, rest)
        parts: list[str] = []
        while rest:
            written = self.calls.next(replace(job, objection=lambda _: None), None, rest)
            job = self._learned(job, written)
            parts.append(prompt.PART.format(number=len(parts) + 1, summary=written.summary))
        merging = replace(job, asked=replace(job.asked, parts=True, state=None))
        if len(parts) == 1:  # nothing more is gained by taking it apart again
            return self._in_sequence(merging, previous, deque(parts))
        return self._in_parts(merging, previous, deque(parts))

    def _learned(self, job: Job, written: Written) -> Job:
        """Merge the delta of a call, and show the next one what came of it."""
        if job.asked.state is None or written.block is None:
            return job
        delta = state_delta.parsed(written.block, self.working)
        self.working = merge(
            self.working, delta, self.policy.state, memory=bool(self.policy.memory.entries)
        )
        return replace(
            job, asked=replace(job.asked, state=numbered(self.working, self.policy.state))
        )

    def _rolled_up(self, summary: str, task: SummaryTask) -> str:
        """A summary above the limit, itself summarized. One that cannot be stays as it is until the next run."""
        limit = self.policy.summary.rollup_tokens
        if limit is None or summary_tokens(summary, self.policy) <= limit:
            return summary
        wanted = self.policy.summary
        most = self.calls.most_tokens(min(task.max_tokens, limit))
        job = Job(
            asked=Asked(template=ROLLUP),
            max_tokens=most,
            min_words=wanted.min_words,
            max_words=wanted.max_words,
        )
        try:
            return self._in_sequence(job, None, deque([summary]))
        except SummaryFailed as failure:
            logger.warning(
                "the summary of session %s was not rolled up: %s",
                self.run.session_id,
                failure.reason,
            )
            return summary

    def _blended(self, previous: str, entries: Iterable[str]) -> str:
        """Entries of the memory block as one text, with the one before. Raises SummaryFailed."""
        most = self.calls.most_tokens(MEMORY_TOKENS)
        job = Job(
            asked=Asked(template=MEMORY),
            max_tokens=most,
            min_words=1,
            max_words=MEMORY_WORDS,
            grows=True,
        )
        return self._in_sequence(job, previous or None, deque(entries))


def _characters(lines: Iterable[str]) -> int:
    return sum(len(line) + 2 for line in lines)


def imagined(task: SummaryTask) -> str:
    """For a dry run: a text of the length a summary would have, at most half of what it replaces."""
    source = sum(entry.tokens for entry in task.entries)
    return "x" * (STORED_CHARS_PER_TOKEN * max(1, min(task.max_tokens, source // 2)))
