"""Write the leaves of one run: each from the messages of its span, none from a summary."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from compaction.core.estimate import estimate_summary
from compaction.core.leaf import Leaf, NumberedLine
from compaction.core.policy import Policy
from compaction.core.stages.base import SummaryFailed, SummaryTask
from compaction.memory.core.leaves.composition import (
    OUTLINE_TOKENS,
    compose_summary,
    fold_oldest_leaves,
)
from compaction.memory.core.leaves.spans import Span, plan_leaves
from compaction.memory.leaves import store as leaf_store
from compaction.models import ModelCall
from compaction.sessions.fingerprint import compute_fingerprint
from compaction.summaries.call_log import CallPlace
from compaction.summaries.calls import MIN_CHUNK_CHARS, SummaryClient, SummaryJob, SummaryResult

LEAF_SHARE = 4  # a leaf may take a quarter of the room of a summary
MIN_LEAF_TOKENS = 512  # but it need not be shorter than this


@dataclass(frozen=True, kw_only=True)
class LeafWriter:
    """Writes new leaves with a summary model, and composes the summary of all of them.

    `token_ratio` is the number of real tokens for one token of the policy's estimate. `build_job`
    returns what the calls for a task ask for; `apply_delta` is told what each of them returned.
    """

    session_id: UUID
    policy: Policy
    client: SummaryClient
    token_ratio: float
    build_job: Callable[[SummaryTask], SummaryJob]
    apply_delta: Callable[[SummaryJob, SummaryResult], SummaryJob]

    def extend_leaves(
        self,
        task: SummaryTask,
        lines: Sequence[NumberedLine],
        *,
        announce_start: Callable[[], None],
    ) -> tuple[Leaf, ...]:
        """Return the leaves of the earlier summary and of these lines, the oldest first.

        A leaf that exists of the same messages is used again. `announce_start` is called before
        the first call of a model. Raises SummaryFailed, and what a retry's wait raises.
        """
        earlier_leaves = leaf_store.load_leaves(
            self.session_id, task.previous, covered_seq=task.covered_seq
        )
        plan = self._plan_leaves(task, lines)
        spans = [step for step in plan if isinstance(step, Span)]
        if spans:
            characters = sum(span.characters for span in spans)
            self.client.store_expected_seconds(self._build_leaf_job(task), characters)
            announce_start()
        new_leaves = [
            self._write_leaf(task, step) if isinstance(step, Span) else step for step in plan
        ]
        return fold_oldest_leaves([*earlier_leaves, *new_leaves], self._count_tokens)

    def compose(self, task: SummaryTask, leaves: Sequence[Leaf]) -> str:
        """Return the summary that the leaves make, within the room that the task gives it."""
        source_tokens = self._count_tokens(task.previous or "")
        source_tokens += sum(entry.tokens for entry in task.entries)
        return compose_summary(
            leaves,
            room=int(self._measure_room(task) / self.token_ratio),
            limit=max(OUTLINE_TOKENS, source_tokens - 1),
            count_tokens=self._count_tokens,
            newest_text="\n".join(entry.content for entry in task.newest_entries),
        )

    def _plan_leaves(self, task: SummaryTask, lines: Sequence[NumberedLine]) -> list[Span | Leaf]:
        if not lines:
            return []
        # A call that also asks how the structured state changes has to be made in any case.
        span_leaves = (
            []
            if self.policy.summary.state_delta
            else leaf_store.load_span_leaves(
                self.session_id, first_seq=lines[0].seq, last_seq=lines[-1].seq
            )
        )
        room = self.client.measure_room(self._build_leaf_job(task), None)
        return plan_leaves(
            lines,
            span_leaves,
            compute_fingerprint=partial(self._compute_fingerprint, task),
            room=max(MIN_CHUNK_CHARS, room),
        )

    def _write_leaf(self, task: SummaryTask, span: Span) -> Leaf:
        """Return the leaf of a span. A message that is too long for one call is divided.

        What is very short already stands in the leaf as it is.
        """
        job = self._build_leaf_job(task)
        try:
            text = self._summarize_span(job, span)
            fingerprint = self._compute_fingerprint(task, span)
        except SummaryFailed as failure:
            # Without a fingerprint, so that a later run summarizes the same messages anew.
            fingerprint = ""
            text = self.client.verifier.write_extract(
                failure, previous=None, lines=span.lines, max_tokens=job.max_tokens
            )
        return Leaf(
            first_seq=span.first_seq,
            last_seq=span.last_seq,
            text=text,
            fingerprint=fingerprint,
        )

    def _summarize_span(self, job: SummaryJob, span: Span) -> str:
        pending_lines = deque(span.texts)
        parts: list[str] = []
        if span.characters <= MIN_CHUNK_CHARS:
            parts.append("\n".join(pending_lines))
            pending_lines.clear()
        while pending_lines:
            result = self.client.summarize_next_chunk(job, None, pending_lines)
            job = self.apply_delta(job, result)
            parts.append(result.summary)
        return "\n".join(parts).strip()

    def _build_leaf_job(self, task: SummaryTask) -> SummaryJob:
        room = self._measure_room(task)
        leaf_tokens = max(room // LEAF_SHARE, min(room, MIN_LEAF_TOKENS))
        # The task's objection is about the whole summary, which is composed later.
        return replace(
            self.build_job(replace(task, max_tokens=leaf_tokens)),
            find_objection=lambda _: None,
            place=CallPlace(kind=ModelCall.Kind.LEAF),
        )

    def _measure_room(self, task: SummaryTask) -> int:
        """Return the most tokens that the summary may take."""
        limit = self.policy.summary.rollup_tokens
        return task.max_tokens if limit is None else min(task.max_tokens, limit)

    def _compute_fingerprint(self, task: SummaryTask, span: Span) -> str:
        """Return a fingerprint of all that decides what a leaf says."""
        return compute_fingerprint(self.policy.summary.template, task.instructions, *span.texts)

    def _count_tokens(self, text: str) -> int:
        return estimate_summary(text, self.policy)
