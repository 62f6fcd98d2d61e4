"""What goes along with a summary: the delta of the state, and the fold of a full memory."""

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from compaction.core.summary import SummaryFailed
from compaction.models import ModelCall
from compaction.summaries import source
from compaction.summaries.call_log import CallPlace, ProviderBusy
from compaction.summaries.calls import SummaryJob, SummaryResult
from compaction.summaries.prompt import Addition, SummaryOptions
from compaction.summaries.summarizer import Summarizer
from compaction.summaries.templates import SummaryTemplate
from compaction.systems.lota import delta, store
from compaction.systems.lota.settings import DeltaKnobs, MemoryKnobs, StateKnobs
from compaction.systems.lota.state import SECTIONS, StructuredState, merge_delta, number_sections

logger = logging.getLogger(__name__)

DELTA_TOKENS = 1_024  # for the delta of the structured state, in addition to the summary
STATE_SHARE = 4  # the state that a call shows may take a quarter of its room
MAX_MEMORY_TOKENS = 1_024
MAX_MEMORY_WORDS = 300

STATE_INSTRUCTION = (
    ".\nThen, after the summary, write one fenced block that begins with ```json and holds one "
    "JSON object: how the conversation changes the lists between the {state_tag} tags. "
    "Its keys are names of these lists: {sections}. The value of each is an object with "
    '"add" (a list of short sentences), '
    '"update" (an object from the number of an item to its new sentence) and '
    '"remove" (a list of the numbers of items that no longer hold).{memory} '
    "Leave out what does not change; where nothing does, write {{}}. "
    "Do not repeat the block in the summary."
)
MEMORY_INSTRUCTION = (
    ' One more key may be "memory": a list of sentences worth remembering for a long time.'
)

MEMORY_TEMPLATE = SummaryTemplate(
    instruction=(
        "Between the transcript tags above are entries of a long-lived memory, the oldest first. "
        "Blend them into one text of at most {max_words} words, in their own language: keep every "
        "fact that may matter later, let a newer entry correct an older one, and say nothing "
        "twice. {merge}Write plain factual sentences"
    ),
    rewrites_summaries=True,
)
"""Lota, Memory Block Compaction."""


class StateOfSummary:
    """The structured state of a session while its summary is written."""

    def __init__(self, summarizer: Summarizer) -> None:
        self.summarizer = summarizer
        self.policy = summarizer.policy
        self.structured_state = store.load_structured_state(summarizer.session_id)

    def extend_job(self, job: SummaryJob) -> SummaryJob:
        """Return a job that asks for a delta of the state too, if the window has room for it."""
        if not self.policy.get(DeltaKnobs).state_delta or job.options.addition:
            return job
        client = self.summarizer.client
        state_text = number_sections(self.structured_state, self.policy.get(StateKnobs))
        max_tokens = client.limit_output_tokens(job.max_tokens + DELTA_TOKENS)
        state_space = client.measure_space(job, None) / STATE_SHARE
        if max_tokens <= DELTA_TOKENS or len(state_text) > state_space:
            logger.warning(
                "the summarizer's window has no room for the state of session %s",
                self.summarizer.session_id,
            )
            return job
        addition = Addition(
            text=state_text,
            ending=self._build_instruction(job.options.template),
            tokens=DELTA_TOKENS,
            split_answer=delta.split_delta,
        )
        options = replace(job.options, addition=addition)
        return replace(job, options=options, max_tokens=max_tokens)

    def _build_instruction(self, template: SummaryTemplate) -> str:
        sections = [name for name in SECTIONS if getattr(self.policy.get(StateKnobs), name)]
        return STATE_INSTRUCTION.format(
            state_tag=template.tags.state,
            sections=", ".join(sections),
            memory=MEMORY_INSTRUCTION if self.policy.get(MemoryKnobs).entries else "",
        )

    def take_answer(self, job: SummaryJob, result: SummaryResult) -> SummaryJob:
        """Merge the delta of a call into the state. Return a job that shows the new state."""
        addition = job.options.addition
        if addition is None or result.added_block is None:
            return job
        self.structured_state = merge_delta(
            self.structured_state,
            delta.parse_delta(result.added_block, self.structured_state),
            self.policy.get(StateKnobs),
            memory=bool(self.policy.get(MemoryKnobs).entries),
        )
        state_text = number_sections(self.structured_state, self.policy.get(StateKnobs))
        new_addition = replace(addition, text=state_text)
        return replace(job, options=replace(job.options, addition=new_addition))

    def propose(self) -> StructuredState:
        """Return the state with a full memory folded; unfolded where that fails.

        The next run tries again.
        """
        try:
            return self.fold_memory()
        except (SummaryFailed, ProviderBusy) as failure:
            logger.warning("the memory was not folded: %s", failure)
            return self.structured_state

    def fold_memory(self) -> StructuredState:
        """Return the state with the oldest `fold` entries of a full memory blended into a text.

        (README.md, "Lota, Memory Block Compaction".) Raises SummaryFailed.
        """
        knobs, state = self.policy.get(MemoryKnobs), self.structured_state
        if not store.is_full(state, knobs):
            return state
        summary = self._blend(state.memory_summary, state.memory[: knobs.fold])
        return replace(state, memory=state.memory[knobs.fold :], memory_summary=summary)

    def _blend(self, previous_text: str, entries: Iterable[str]) -> str:
        """Return the memory's entries and its earlier summary as one text. Raises SummaryFailed."""
        job = SummaryJob(
            options=SummaryOptions(template=MEMORY_TEMPLATE),
            max_tokens=self.summarizer.client.limit_output_tokens(MAX_MEMORY_TOKENS),
            min_words=1,
            max_words=MAX_MEMORY_WORDS,
            may_grow=True,
            place=CallPlace(kind=ModelCall.Kind.MEMORY),
        )
        lines = deque(map(source.escape_headers, entries))
        return self.summarizer.summarize_in_sequence(job, previous_text or None, lines)
