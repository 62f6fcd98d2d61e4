"""Write the summary of a pass: in as many calls as it takes, merged, and shortened if too long."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from compaction.core.estimate import estimate_summary
from compaction.core.outcome import NumberedLine, Segment
from compaction.core.policy import Policy
from compaction.core.summary import SummaryFailed, SummaryOutcome, SummaryTask, find_objection
from compaction.core.systems import describe_traits
from compaction.models import CompactionRun, ModelCall
from compaction.sessions.memory_app import get_memory
from compaction.sessions.own_sentences import load_own_sentences, restore_sentences
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import list_memories
from compaction.sessions.source_messages import load_days
from compaction.summaries import source
from compaction.summaries.call_log import CallPlace, ProviderBusy
from compaction.summaries.calls import Progress, SummaryClient, SummaryJob, SummaryResult
from compaction.summaries.prompt import SummaryOptions
from compaction.summaries.refused_calls import add_note
from compaction.summaries.templates import ROLLUP_TEMPLATE, SUMMARY_TEMPLATES, SummaryTemplate

logger = logging.getLogger(__name__)

NO_CONTENT_SUMMARY = (
    "The earlier messages held nothing but tool calls and results that are left out of summaries."
)


class StartAnnouncement(Protocol):
    """A function that announces that a summary of so many messages is begun.

    `target_count` is how many of them the pass changes.
    """

    def __call__(self, *, message_count: int, target_count: int | None) -> None: ...


class Summarizer:
    """The `Summarize` function of one run. It installs nothing: see SummaryOutcome.

    `token_ratio` is the number of real tokens for one token of the policy's estimate.
    """

    def __init__(
        self,
        run: CompactionRun,
        context: SessionContext,
        token_ratio: float,
        *,
        announce_start: StartAnnouncement,
        wait: Callable[[float], None],
        progress: Progress,
    ) -> None:
        self.session_id = run.session_id
        self.policy = context.policy
        self.traits = describe_traits(context.policy)
        self.announce_start = announce_start
        self.token_ratio = token_ratio
        self.client = SummaryClient(run, context, token_ratio, wait=wait, progress=progress)
        self.template = self._choose_template()
        self.changes: tuple[str, ...] = ()
        companions = {memory.name: memory.join_summary(self) for memory in list_memories()}
        self.companions = {name: each for name, each in companions.items() if each}

    def __call__(self, task: SummaryTask) -> SummaryOutcome:
        """Return the new summary, which includes the earlier one, and the state after it.

        Raises SummaryFailed, and RunLeaseLost when another worker has taken the run over.
        """
        self.changes = tuple(get_memory().list_changes(self.session_id))
        outcome = self._write_summary(task)
        if not self.changes:
            return outcome
        text = get_memory().finish_summary(
            self.session_id, outcome.text, has_ledger=bool(self.policy.ledger.ratio)
        )
        if text != outcome.text:
            text = restore_sentences(text, load_own_sentences(self.session_id))
        return replace(outcome, text=text)

    def _write_summary(self, task: SummaryTask) -> SummaryOutcome:
        numbered_lines = source.render_numbered_lines(
            task.entries,
            self.traits,
            with_numbers=self.template.numbers_messages,
            days=load_days(self.session_id, [entry.seq for entry in task.entries]),
        )
        lines = source.join_days(numbered_lines)
        self.client.seqs_by_line = {line.text: line.seq for line in numbered_lines}
        self.client.calibrate_density(task.entries, lines)
        if self.policy.summary.spans == "frozen":
            return self._summarize_spans(task, numbered_lines)
        if not lines:
            return SummaryOutcome(text=task.previous or NO_CONTENT_SUMMARY)
        job = self._build_job(task)
        self.client.store_expected_seconds(job, _count_characters(lines))
        self._announce_task(task)
        if task.previous:
            # It may have come by hand or under another policy, and be longer than any answer.
            task = replace(task, previous=self._roll_up_summary(task.previous, task))
        try:
            summary = self._summarize_lines(job, task, deque(lines))
            self.client.refused.require_rest({line.seq for line in numbered_lines})
        except SummaryFailed as failure:
            return self._write_extract(failure, task, numbered_lines)
        summary = self._roll_up_summary(summary or task.previous or NO_CONTENT_SUMMARY, task)
        summary = restore_sentences(summary, load_own_sentences(self.session_id))
        refused_seqs = self.client.refused.left_out_seqs
        return SummaryOutcome(
            text=add_note(summary, refused_seqs),
            proposals=self._propose(),
            refused_seqs=tuple(refused_seqs),
        )

    def _announce_task(self, task: SummaryTask) -> None:
        self.announce_start(message_count=len(task.entries), target_count=task.target_count or None)

    def _write_extract(
        self, failure: SummaryFailed, task: SummaryTask, lines: Sequence[NumberedLine]
    ) -> SummaryOutcome:
        """Return an extract, or raise the failure again where the policy writes none."""
        verifier = self.client.verifier
        text = verifier.write_extract(
            failure,
            previous=task.previous,
            lines=lines,
            max_tokens=task.max_tokens,
        )
        text = restore_sentences(text, load_own_sentences(self.session_id))
        return SummaryOutcome(text=text, extract_reason=verifier.extract_reason)

    def _choose_template(self) -> SummaryTemplate:
        template = SUMMARY_TEMPLATES[self.traits.template]
        if self.client.echoes_headings and template.bare_instruction:
            return replace(template, instruction=template.bare_instruction)
        return template

    def _build_job(self, task: SummaryTask) -> SummaryJob:
        knobs = self.policy.summary
        job = SummaryJob(
            options=SummaryOptions(
                template=self.template, focus=task.instructions, taken_back=self.changes
            ),
            max_tokens=self.client.limit_output_tokens(task.max_tokens),
            min_words=knobs.min_words,
            max_words=knobs.max_words,
            find_objection=lambda summary: find_objection(summary, task, self.policy),
        )
        for companion in self.companions.values():
            job = companion.extend_job(job)
        return job

    def _summarize_lines(
        self, job: SummaryJob, task: SummaryTask, pending_lines: deque[str]
    ) -> str:
        previous_summary = task.previous
        if previous_summary and len(previous_summary) > self.client.measure_space(job, None) / 2:
            # Beside such a long summary there is no room for messages, so that merging it would
            # never end. It is summarized like a message instead.
            pending_lines.appendleft(source.render_earlier_summary(previous_summary))
            previous_summary = None
        if self.traits.merges_parts:
            return self._summarize_in_parts(job, previous_summary, pending_lines)
        return self.summarize_in_sequence(job, previous_summary, pending_lines)

    def _summarize_spans(self, task: SummaryTask, lines: Sequence[NumberedLine]) -> SummaryOutcome:
        """Summarize only what no segment covers, and compose the summary of all segments."""
        writer = get_memory().build_span_writer(
            self.client,
            self.policy,
            token_ratio=self.token_ratio,
            build_job=self._build_job,
            take_answer=self._take_answer,
        )
        segments = writer.extend_segments(
            task, lines, announce_start=partial(self._announce_task, task)
        )
        if not segments:
            first_seq, last_seq = task.entries[0].seq, task.entries[-1].seq
            segments = (Segment(first_seq=first_seq, last_seq=last_seq, text=NO_CONTENT_SUMMARY),)
        refused_seqs = self.client.refused.left_out_seqs
        return SummaryOutcome(
            text=add_note(writer.compose(task, segments), refused_seqs),
            refused_seqs=tuple(refused_seqs),
            proposals=self._propose(),
            proposed_segments=segments,
            extract_reason=self.client.verifier.extract_reason,
        )

    def _propose(self) -> dict[str, object]:
        return {name: companion.propose() for name, companion in self.companions.items()}

    def summarize_in_sequence(
        self, job: SummaryJob, previous_summary: str | None, pending_lines: deque[str]
    ) -> str:
        """Summarize chunk after chunk, each together with the summary of the chunks before."""
        summary = previous_summary
        total_chars = _count_characters(pending_lines)
        while pending_lines:
            result = self.client.summarize_next_chunk(
                job,
                summary,
                pending_lines,
                earlier_chars=total_chars - _count_characters(pending_lines),
            )
            job = self._take_answer(job, result)
            summary = result.summary
        return summary or ""

    def _summarize_in_parts(
        self, job: SummaryJob, previous_summary: str | None, pending_lines: deque[str]
    ) -> str:
        """Summarize each part by itself, and then the summaries together, in the same way.

        What fits into one call is summarized in one call.
        """
        if _count_characters(pending_lines) <= self.client.measure_space(job, previous_summary):
            return self.summarize_in_sequence(job, previous_summary, pending_lines)
        part_job = replace(job, find_objection=lambda _: None)
        parts: list[str] = []
        while pending_lines:
            result = self.client.summarize_next_chunk(part_job, None, pending_lines)
            part_job = self._take_answer(part_job, result)
            parts.append(source.render_part_summary(len(parts) + 1, result.summary))
        merge_job = replace(
            job,
            options=replace(job.options, merges_parts=True, addition=None),
            place=CallPlace(kind=ModelCall.Kind.MERGE, level=job.place.level + 1),
        )
        if len(parts) == 1:
            # One part cannot become fewer parts: dividing it again would never end.
            return self.summarize_in_sequence(merge_job, previous_summary, deque(parts))
        return self._summarize_in_parts(merge_job, previous_summary, deque(parts))

    def _take_answer(self, job: SummaryJob, result: SummaryResult) -> SummaryJob:
        for companion in self.companions.values():
            job = companion.take_answer(job, result)
        return job

    def _roll_up_summary(self, summary: str, task: SummaryTask) -> str:
        """Summarize a summary that is above the policy's limit.

        Where that fails the summary stays as it is, and the next run tries again.
        """
        knobs = self.policy.summary
        limit = self.traits.rollup_tokens
        if limit is None or estimate_summary(summary, self.policy) <= limit:
            return summary
        job = SummaryJob(
            options=SummaryOptions(template=ROLLUP_TEMPLATE),
            max_tokens=self.client.limit_output_tokens(min(task.max_tokens, limit)),
            min_words=knobs.min_words,
            max_words=knobs.max_words,
            place=CallPlace(kind=ModelCall.Kind.ROLLUP),
        )
        try:
            return self.summarize_in_sequence(job, None, deque([source.escape_headers(summary)]))
        except (SummaryFailed, ProviderBusy) as failure:
            logger.warning(
                "the summary of session %s was not rolled up: %s", self.session_id, failure
            )
            return summary


def _count_characters(lines: Collection[str]) -> int:
    return sum(map(len, lines)) + 2 * len(lines)


def simulate_summary(task: SummaryTask, policy: Policy) -> SummaryOutcome:
    """Return a text of a likely length for a preview: at most half of what it replaces.

    Where spans are frozen, it follows the text that the earlier summary is composed of.
    """
    source_tokens = sum(entry.tokens for entry in task.entries)
    text_tokens = max(1, source_tokens // 2)
    if policy.summary.spans == "frozen":
        text_tokens += estimate_summary(task.previous, policy)
    text_tokens = min(task.max_tokens, text_tokens)
    return SummaryOutcome(text="x" * (CHARS_PER_TOKEN_ESTIMATE * text_tokens))
