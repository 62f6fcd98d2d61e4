"""Writes the summary of a pass: in as many calls as it takes, merged as the policy says, and rolled up where it is too long."""

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from compaction.backends.base import STORED_CHARS_PER_TOKEN
from compaction.core.estimate import estimate_summary
from compaction.core.stages.base import SummaryFailed, SummaryOutcome, SummaryTask
from compaction.core.stages.summarize import find_objection
from compaction.core.state import SECTIONS, merge_delta, number_sections
from compaction.models import CompactionRun
from compaction.runs import lifecycle
from compaction.sizing.session_context import SessionContext
from compaction.summaries import memory, prompt, state_delta
from compaction.summaries import source as summary_source_module
from compaction.summaries import state as summary_state
from compaction.summaries.calls import DELTA_TOKENS, SummaryClient, SummaryJob, SummaryResult
from compaction.summaries.prompt import SummaryOptions
from compaction.summaries.templates import MEMORY_TEMPLATE, ROLLUP_TEMPLATE, SUMMARY_TEMPLATES

logger = logging.getLogger(__name__)

NO_CONTENT_SUMMARY = (
    "The earlier messages held nothing but tool calls and results that are left out of summaries."
)
STATE_SHARE = 4  # the state that a call is shown may take a quarter of its room
MAX_MEMORY_TOKENS = 1_024
MAX_MEMORY_WORDS = 300


class Summarizer:
    """Summarizes for one run, as `pipeline.run` asks; what becomes of state and memory is left with the run. `scale`: as `Calls` says."""

    def __init__(self, run: CompactionRun, context: SessionContext, token_ratio: float) -> None:
        self.run, self.policy = run, context.policy
        self.client = SummaryClient(run, context, token_ratio)
        template = SUMMARY_TEMPLATES[self.policy.summary.template]
        self.template = (
            replace(template, instruction=template.bare_instruction)
            if self.client.echoes_headings and template.bare_instruction
            else template
        )
        self.structured_state = summary_state.load_structured_state(run.session_id)
        run.state_after = {}

    def __call__(self, task: SummaryTask) -> SummaryOutcome:
        """The new summary, the one before merged in. Raises SummaryFailed, and Lost when another worker took over."""
        lines = summary_source_module.render_lines(
            task.entries, self.policy.summary, with_numbers=self.template.numbers_messages
        )
        if not lines:
            return SummaryOutcome(text=task.previous or NO_CONTENT_SUMMARY)
        lifecycle.announce_start(
            self.run, message_count=len(task.entries), force=self.run.is_forced
        )
        self.client.calibrate_density(task.entries, lines)
        summary = self._roll_up_summary(
            self._summarize_lines(self._build_job(task), task, deque(lines)), task
        )
        self.structured_state = memory.fold_oldest_entries(
            self.structured_state, self.policy.memory, self._blend_memory
        )
        summary_state.propose_structured_state(self.run, self.structured_state)
        return SummaryOutcome(text=summary, proposed_state=self.structured_state)

    def _build_job(self, task: SummaryTask) -> SummaryJob:
        knobs = self.policy.summary
        options = SummaryOptions(template=self.template, focus=task.instructions)
        job = SummaryJob(
            options=options,
            max_tokens=self.client.limit_output_tokens(task.max_tokens),
            min_words=knobs.min_words,
            max_words=knobs.max_words,
            find_objection=lambda summary: find_objection(summary, task, self.policy),
        )
        return self._add_state_delta(job) if knobs.state_delta else job

    def _add_state_delta(self, job: SummaryJob) -> SummaryJob:
        """The same, asking for a delta of the state too; without one where the window has no room for it."""
        state_text, max_tokens = (
            number_sections(self.structured_state, self.policy.state),
            self.client.limit_output_tokens(job.max_tokens + DELTA_TOKENS),
        )
        if (
            max_tokens <= DELTA_TOKENS
            or len(state_text) > self.client.measure_room(job, None) / STATE_SHARE
        ):
            logger.warning(
                "the summarizer's window has no room for the state of session %s",
                self.run.session_id,
            )
            return job
        sections = tuple(name for name in SECTIONS if getattr(self.policy.state, name))
        options = replace(
            job.options,
            state=state_text,
            sections=sections,
            allows_memory=bool(self.policy.memory.entries),
        )
        return replace(job, options=options, max_tokens=max_tokens)

    def _summarize_lines(
        self, job: SummaryJob, task: SummaryTask, pending_lines: deque[str]
    ) -> str:
        previous_summary = task.previous
        if (
            previous_summary and len(previous_summary) > self.client.measure_room(job, None) / 2
        ):  # it leaves no room to merge it: it is told like the rest
            pending_lines.appendleft(prompt.EARLIER_SUMMARY.format(summary=previous_summary))
            previous_summary = None
        return (
            self._summarize_in_parts(job, previous_summary, pending_lines)
            if self.policy.summary.merging == "parts"
            else self._summarize_in_sequence(job, previous_summary, pending_lines)
        )

    def _summarize_in_sequence(
        self, job: SummaryJob, previous_summary: str | None, pending_lines: deque[str]
    ) -> str:
        """Chunk after chunk, each merged into the summary so far."""
        summary, total_chars = previous_summary, _count_characters(pending_lines)
        while pending_lines:
            result = self.client.summarize_next_chunk(
                job,
                summary,
                pending_lines,
                earlier_chars=total_chars - _count_characters(pending_lines),
            )
            job, summary = self._apply_delta(job, result), result.summary
        return summary or ""

    def _summarize_in_parts(
        self, job: SummaryJob, previous_summary: str | None, pending_lines: deque[str]
    ) -> str:
        """What fits one call is one call. Else each part is summarized by itself, and the summaries are merged, in the same way."""
        if _count_characters(pending_lines) <= self.client.measure_room(job, previous_summary):
            return self._summarize_in_sequence(job, previous_summary, pending_lines)
        parts: list[str] = []
        while pending_lines:
            result = self.client.summarize_next_chunk(
                replace(job, find_objection=lambda _: None), None, pending_lines
            )
            job = self._apply_delta(job, result)
            parts.append(prompt.PART_SUMMARY.format(number=len(parts) + 1, summary=result.summary))
        merge_job = replace(job, options=replace(job.options, merges_parts=True, state=None))
        if len(parts) == 1:  # nothing more is gained by taking it apart again
            return self._summarize_in_sequence(merge_job, previous_summary, deque(parts))
        return self._summarize_in_parts(merge_job, previous_summary, deque(parts))

    def _apply_delta(self, job: SummaryJob, result: SummaryResult) -> SummaryJob:
        """Merge the delta of a call, and show the next one what came of it."""
        if job.options.state is None or result.delta_block is None:
            return job
        delta = state_delta.parse_delta(result.delta_block, self.structured_state)
        self.structured_state = merge_delta(
            self.structured_state, delta, self.policy.state, memory=bool(self.policy.memory.entries)
        )
        return replace(
            job,
            options=replace(
                job.options, state=number_sections(self.structured_state, self.policy.state)
            ),
        )

    def _roll_up_summary(self, summary: str, task: SummaryTask) -> str:
        """A summary above the limit, itself summarized. One that cannot be stays as it is until the next run."""
        limit = self.policy.summary.rollup_tokens
        if limit is None or estimate_summary(summary, self.policy) <= limit:
            return summary
        knobs = self.policy.summary
        max_tokens = self.client.limit_output_tokens(min(task.max_tokens, limit))
        job = SummaryJob(
            options=SummaryOptions(template=ROLLUP_TEMPLATE),
            max_tokens=max_tokens,
            min_words=knobs.min_words,
            max_words=knobs.max_words,
        )
        try:
            return self._summarize_in_sequence(job, None, deque([summary]))
        except SummaryFailed as failure:
            logger.warning(
                "the summary of session %s was not rolled up: %s",
                self.run.session_id,
                failure.reason,
            )
            return summary

    def _blend_memory(self, previous_text: str, entries: Iterable[str]) -> str:
        """Entries of the memory block as one text, with the one before. Raises SummaryFailed."""
        max_tokens = self.client.limit_output_tokens(MAX_MEMORY_TOKENS)
        job = SummaryJob(
            options=SummaryOptions(template=MEMORY_TEMPLATE),
            max_tokens=max_tokens,
            min_words=1,
            max_words=MAX_MEMORY_WORDS,
            may_grow=True,
        )
        return self._summarize_in_sequence(job, previous_text or None, deque(entries))


def _count_characters(lines: Iterable[str]) -> int:
    return sum(len(line) + 2 for line in lines)


def simulate_summary(task: SummaryTask) -> SummaryOutcome:
    """For a dry run: a text of the length a summary would have, at most half of what it replaces."""
    source_tokens = sum(entry.tokens for entry in task.entries)
    text_tokens = max(1, min(task.max_tokens, source_tokens // 2))
    return SummaryOutcome(text="x" * (STORED_CHARS_PER_TOKEN * text_tokens))
