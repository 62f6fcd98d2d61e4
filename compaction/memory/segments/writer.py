"""Write the segments of one run: each from the messages of its span, none from a summary."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from compaction.core.estimate import estimate_summary
from compaction.core.outcome import NumberedLine, Segment
from compaction.core.policy import Policy
from compaction.core.summary import SummaryFailed, SummaryTask
from compaction.core.systems import describe_traits
from compaction.memory.core.segments.composition import (
    OUTLINE_TOKENS,
    compose_summary,
    join_oldest_segments,
)
from compaction.memory.core.segments.spans import Span, plan_segments
from compaction.memory.segments import store as segment_store
from compaction.models import ModelCall
from compaction.sessions.fingerprint import compute_fingerprint
from compaction.sessions.source_messages import load_days
from compaction.summaries.call_log import CallPlace
from compaction.summaries.calls import MIN_CHUNK_CHARS, SummaryClient, SummaryJob, SummaryResult
from compaction.summaries.refused_calls import add_note
from compaction.summaries.source import join_days

SEGMENT_SHARE = 4  # a segment may take a quarter of the room of a summary
MIN_SEGMENT_TOKENS = 512  # but it need not be shorter than this


@dataclass(frozen=True, kw_only=True)
class SegmentWriter:
    """Writes new segments with a summary model, and composes the summary of all of them.

    `token_ratio` is the number of real tokens for one token of the policy's estimate. `build_job`
    returns what the calls for a task ask for; `take_answer` gets what each of them returned.
    """

    session_id: UUID
    policy: Policy
    client: SummaryClient
    token_ratio: float
    build_job: Callable[[SummaryTask], SummaryJob]
    take_answer: Callable[[SummaryJob, SummaryResult], SummaryJob]

    def extend_segments(
        self,
        task: SummaryTask,
        lines: Sequence[NumberedLine],
        *,
        announce_start: Callable[[], None],
    ) -> tuple[Segment, ...]:
        """Return the segments of the earlier summary and of these lines, the oldest first.

        A segment that exists of the same messages is used again. `announce_start` is called before
        the first call of a model. Raises SummaryFailed, and what a retry's wait raises.
        """
        earlier_segments = segment_store.load_segments(
            self.session_id, task.previous, covered_seq=task.covered_seq
        )
        plan = self._plan_segments(task, lines)
        spans = [step for step in plan if isinstance(step, Span)]
        if spans:
            characters = sum(span.characters for span in spans)
            self.client.store_expected_seconds(self._build_segment_job(task), characters)
            announce_start()
        new_segments = [
            self._write_segment(task, step) if isinstance(step, Span) else step for step in plan
        ]
        return join_oldest_segments([*earlier_segments, *new_segments], self._count_tokens)

    def compose(self, task: SummaryTask, segments: Sequence[Segment]) -> str:
        """Return the summary that the segments make, within the room that the task gives it."""
        segments = self._add_days(segments)
        source_tokens = self._count_tokens(task.previous or "")
        source_tokens += sum(entry.tokens for entry in task.entries)
        return compose_summary(
            segments,
            space=int(self._measure_space(task) / self.token_ratio),
            limit=max(OUTLINE_TOKENS, source_tokens - 1),
            count_tokens=self._count_tokens,
            newest_text="\n".join(entry.content for entry in task.newest_entries),
        )

    def _add_days(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the segments with the days of their first and last messages."""
        edges = {seq for segment in segments for seq in (segment.first_seq, segment.last_seq)}
        days = load_days(self.session_id, edges)
        dated_segments: list[Segment] = []
        for segment in segments:
            known = [days[seq] for seq in (segment.first_seq, segment.last_seq) if seq in days]
            period = (min(known), max(known)) if known else None
            dated_segments.append(replace(segment, days=period))
        return dated_segments

    def _plan_segments(
        self, task: SummaryTask, lines: Sequence[NumberedLine]
    ) -> list[Span | Segment]:
        if not lines:
            return []
        job = self._build_segment_job(task)
        # A call that also asks for something else has to be made in any case.
        span_segments = (
            []
            if job.options.addition and job.options.addition.is_needed
            else segment_store.load_span_segments(
                self.session_id, first_seq=lines[0].seq, last_seq=lines[-1].seq
            )
        )
        space = self.client.measure_space(job, None)
        return plan_segments(
            lines,
            span_segments,
            compute_fingerprint=partial(self._compute_fingerprint, task),
            space=max(MIN_CHUNK_CHARS, space),
        )

    def _write_segment(self, task: SummaryTask, span: Span) -> Segment:
        """Return the segment of a span. A message that is too long for one call is divided.

        What is very short already stands in the segment as it is.
        """
        job = self._build_segment_job(task)
        try:
            text = self._summarize_span(job, span)
            fingerprint = self._compute_fingerprint(task, span)
        except SummaryFailed as failure:
            # Without a fingerprint, so that a later run summarizes the same messages anew.
            fingerprint = ""
            text = self.client.verifier.write_extract(
                failure, previous=None, lines=span.lines, max_tokens=job.summary_tokens
            )
        return Segment(
            first_seq=span.first_seq,
            last_seq=span.last_seq,
            text=text,
            fingerprint=fingerprint,
        )

    def _summarize_span(self, job: SummaryJob, span: Span) -> str:
        pending_lines = deque(join_days(span.lines))
        parts: list[str] = []
        if span.characters <= MIN_CHUNK_CHARS:
            parts.append("\n".join(span.texts))
            pending_lines.clear()
        while pending_lines:
            result = self.client.summarize_next_chunk(job, None, pending_lines)
            job = self.take_answer(job, result)
            parts.append(result.summary)
        seqs = {line.seq for line in span.lines}
        self.client.refused.require_rest(seqs)
        refused_seqs = seqs & {*self.client.refused.left_out_seqs}
        return add_note("\n".join(parts).strip(), sorted(refused_seqs))

    def _build_segment_job(self, task: SummaryTask) -> SummaryJob:
        space = self._measure_space(task)
        segment_tokens = max(space // SEGMENT_SHARE, min(space, MIN_SEGMENT_TOKENS))
        # The task's objection is about the whole summary, which is composed later.
        return replace(
            self.build_job(replace(task, max_tokens=segment_tokens)),
            find_objection=lambda _: None,
            place=CallPlace(kind=ModelCall.Kind.LEAF),
        )

    def _measure_space(self, task: SummaryTask) -> int:
        """Return the most tokens that the summary may take."""
        limit = describe_traits(self.policy).rollup_tokens
        return task.max_tokens if limit is None else min(task.max_tokens, limit)

    def _compute_fingerprint(self, task: SummaryTask, span: Span) -> str:
        """Return a fingerprint of all that decides what a segment says."""
        return compute_fingerprint(
            describe_traits(self.policy).template, task.instructions, *span.texts
        )

    def _count_tokens(self, text: str) -> int:
        return estimate_summary(text, self.policy)
