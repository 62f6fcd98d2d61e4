"""The calls that write a run's summary: cut to the summarizer's window, retried after a wait, each answer checked and paid for."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db import close_old_connections
from django.db.models import DecimalField, F, Value
from django.db.models.functions import Coalesce

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import STORED_CHARS_PER_TOKEN, CallFailed, CallResult, Prompt
from compaction.core.features import estimate_by_features
from compaction.core.stages.base import SummaryFailed
from compaction.core.transcript import TranscriptEntry
from compaction.models import CompactionRun
from compaction.runs import leases
from compaction.sizing.session_context import SessionContext
from compaction.summaries import prompt as summary_prompt_module
from compaction.summaries import state_delta, unwrapping, validation
from compaction.summaries.prompt import SummaryOptions

logger = logging.getLogger(__name__)

TEMPERATURE = 0.1
WINDOW_SHARE = 4  # the answer may take a quarter of the window
WINDOW_MARGIN = 0.10  # of the window, for what an estimate gets wrong
WORDS_PER_TOKEN = (
    0.55  # a cautious share, so that a summary of the asked length ends before its token limit
)
MIN_SUMMARY_WORDS = 20
MIN_CHUNK_CHARS = 200  # characters; a window in which no more fits cannot summarize anything
SAMPLE_COUNT, SAMPLE_CHARS = 16, 512
DELTA_TOKENS = 1_024  # for the delta of the structured state, beside the summary

sleep = time.sleep


@dataclass(frozen=True, kw_only=True)
class SummaryJob:
    """What each call of a series is asked for, and what else its answer must be. `objection`: what is wrong with the last one, if anything.

    `grows`: it need not be smaller than what it replaces.
    """

    options: SummaryOptions
    max_tokens: int
    min_words: int
    max_words: int
    find_objection: Callable[[str], str | None] = lambda _: None
    may_grow: bool = False


@dataclass(frozen=True)
class SummaryResult:
    """A checked answer; `block` holds the delta of the structured state, as the model wrote it."""

    summary: str
    delta_block: str | None = None


class _SummaryMissing(SummaryFailed):
    """An answer that holds the delta of the structured state, and no summary beside it."""

    def __init__(self, delta_block: str) -> None:
        super().__init__("The model wrote only how the state changes, and no summary.")
        self.delta_block = delta_block


@dataclass(frozen=True)
class _Chunk:
    """What one call summarizes: the summary so far, and lines of the transcript. `replaced`: characters of the chunks before."""

    previous_summary: str | None
    lines: str
    earlier_chars: int

    @property
    def characters(self) -> int:
        return len(self.previous_summary or "") + len(self.lines)


class SummaryClient:
    """The summarizing model, as one run uses it. `scale`: how many real tokens one of the policy's estimate stands for."""

    def __init__(self, run: CompactionRun, context: SessionContext, token_ratio: float) -> None:
        self.run, self.token_ratio, self.knobs = run, token_ratio, context.policy.summary
        self.temperature: float | None = TEMPERATURE
        self.density, self.brevity = 1 / STORED_CHARS_PER_TOKEN, 1
        summary_model = backend_registry.get_backend().choose_summary_model(
            run.session_id, policies.resolve_summary_model(self.knobs.model)
        )
        session_window = context.budget.window if context.budget else 0
        self.model, self.window, self.max_output_tokens = (
            summary_model.model,
            summary_model.window or session_window,
            summary_model.max_output_tokens,
        )
        self.echoes_headings = summary_model.echoes_headings
        if summary_model.model == context.facts.model:  # what a refusal told of it counts
            self.window = session_window or self.window

    def calibrate_density(self, entries: Iterable[TranscriptEntry], lines: Sequence[str]) -> None:
        """How many tokens a character takes: as the text looks (in Chinese one, in English a quarter), or as the provider counted it."""
        characters = max(1, sum(map(len, lines)))
        provider_density = (
            sum(entry.tokens for entry in entries if not entry.images)
            * self.token_ratio
            / characters
            if self.token_ratio > 1
            else 0
        )
        self.density, self.token_ratio = (
            max(self.density, estimate_density(lines), provider_density),
            1.0,
        )

    def limit_output_tokens(self, max_tokens: int) -> int:
        """The length an answer may have."""
        return max(
            1, min(max_tokens, self.window // WINDOW_SHARE, self.max_output_tokens or max_tokens)
        )

    def measure_room(self, job: SummaryJob, previous_summary: str | None) -> int:
        """Characters of transcript that one call takes beside everything else; too few, or none, in a window that is too small."""
        free_tokens = (self.window * (1 - WINDOW_MARGIN) - job.max_tokens) / self.token_ratio
        empty_message = summary_prompt_module.build_message(
            job.options, previous_summary=previous_summary, lines="", min_words=0, max_words=0
        )
        room = (
            int(free_tokens / self.density)
            - len(summary_prompt_module.SYSTEM_PROMPT)
            - len(empty_message)
        )
        return min(room, self.knobs.chunk_chars or room)

    def summarize_next_chunk(
        self,
        job: SummaryJob,
        previous_summary: str | None,
        pending_lines: deque[str],
        *,
        earlier_chars: int = 0,
    ) -> SummaryResult:
        """One chunk off the rest, with its retries. A call refused for its length is retried with a shorter chunk.

        One that was answered by the delta of the state alone, as small models do, is retried for the summary alone; the delta is kept.
        Raises SummaryFailed, and Lost when another worker took the run over while this one waited.
        """
        failure, delta_block = SummaryFailed("No call was made."), None
        for attempt in range(1 + self.knobs.retries):
            if attempt:
                self._wait_before_retry(attempt)
            chunk = _Chunk(
                previous_summary,
                take_chunk(pending_lines, self._require_room(job, previous_summary)),
                earlier_chars,
            )
            try:
                result = self._summarize_chunk(job, chunk, is_last=not pending_lines)
                return replace(result, delta_block=result.delta_block or delta_block)
            except SummaryFailed as error:
                failure = error
                pending_lines.appendleft(chunk.lines)
                if isinstance(error, _SummaryMissing):
                    job, delta_block = (
                        replace(job, options=replace(job.options, state=None)),
                        error.delta_block,
                    )
        raise failure

    def _require_room(self, job: SummaryJob, previous_summary: str | None) -> int:
        room = self.measure_room(job, previous_summary)
        if room < MIN_CHUNK_CHARS:
            raise SummaryFailed("The model's window is too small to summarize in.")
        return room

    def _wait_before_retry(self, attempt: int) -> None:
        """Before a retry. The run's lease is kept by a thread of its own meanwhile; no connection is."""
        delays = self.knobs.backoff
        if not delays:
            return
        close_old_connections()
        sleep(delays[min(attempt, len(delays)) - 1])
        if not leases.select_claimed_run(self.run).exists():
            raise leases.RunLeaseLost

    def _summarize_chunk(self, job: SummaryJob, chunk: _Chunk, *, is_last: bool) -> SummaryResult:
        call_prompt = self._build_prompt(job, chunk)
        try:
            answer = backend_registry.get_backend().call_summary_model(
                self.run.session_id, call_prompt
            )
        except CallFailed as error:
            record_call(self.run, None)
            self._adapt_to_failure(error, call_prompt)
            raise SummaryFailed(str(error)) from None
        record_call(self.run, answer)
        self.brevity *= (
            2 if answer.finish == "length" else 1
        )  # the retry of one that was cut off asks for half of the words
        answer, delta_block = (
            _split_answer(answer) if job.options.state is not None else (answer, None)
        )
        if delta_block and not answer.text:
            raise _SummaryMissing(delta_block)
        summary = self._validate_answer(job, chunk, answer, call_prompt)
        if not job.may_grow and len(summary) >= chunk.earlier_chars + chunk.characters:
            raise SummaryFailed("The summary is not smaller than what it replaces.")
        if is_last and (complaint := job.find_objection(summary)):
            raise SummaryFailed(complaint)
        return SummaryResult(summary, delta_block)

    def _validate_answer(
        self, job: SummaryJob, chunk: _Chunk, answer: CallResult, call_prompt: Prompt
    ) -> str:
        may_copy = job.options.merges_parts or job.options.template.rewrites_summaries
        instruction = (
            call_prompt.system + "\n" + summary_prompt_module.extract_instruction(call_prompt.text)
        )
        return validation.extract_summary(
            answer,
            instruction=instruction,
            transcript="" if may_copy else chunk.lines,
            headings=job.options.template.headings,
        )

    def _build_prompt(self, job: SummaryJob, chunk: _Chunk) -> Prompt:
        source_words = chunk.characters // STORED_CHARS_PER_TOKEN * WORDS_PER_TOKEN / 2
        summary_token_limit = job.max_tokens - (
            DELTA_TOKENS
            if job.options.state is not None and job.max_tokens > 2 * DELTA_TOKENS
            else 0
        )
        max_words = max(
            MIN_SUMMARY_WORDS,
            int(
                min(job.max_words, summary_token_limit * WORDS_PER_TOKEN, source_words)
                / self.brevity
            ),
        )
        min_words = min(job.min_words, max_words // 2)
        message_text = summary_prompt_module.build_message(
            job.options,
            previous_summary=chunk.previous_summary,
            lines=chunk.lines,
            min_words=min_words,
            max_words=max_words,
        )
        return Prompt(
            system=summary_prompt_module.SYSTEM_PROMPT,
            text=message_text,
            max_tokens=job.max_tokens,
            temperature=self.temperature,
            model=self.model,
            timeout=self.knobs.timeout,
        )

    def _adapt_to_failure(self, error: CallFailed, call_prompt: Prompt) -> None:
        """What the retry does otherwise: no temperature where the model takes none; and shorter, by the provider's numbers or by half."""
        if error.temperature:
            self.temperature = None
        if error.too_long:
            token_estimate = max(
                1.0, (len(call_prompt.system) + len(call_prompt.text)) * self.density
            )
            self.token_ratio = max(
                error.tokens / token_estimate if error.tokens else self.token_ratio * 2,
                self.token_ratio,
            )
            self.window = min(error.window or self.window, self.window)


def _split_answer(answer: CallResult) -> tuple[CallResult, str | None]:
    """An answer cut off in its delta has a whole summary all the same."""
    text, delta_block = state_delta.split_delta(unwrapping.strip_thoughts(answer.text))
    finish = (
        "stop" if answer.finish == "length" and delta_block is not None and text else answer.finish
    )
    return replace(answer, text=text, finish=finish), delta_block


def estimate_density(lines: Sequence[str]) -> float:
    """Tokens a character, from samples spread over the text."""
    sample = "".join(line[:SAMPLE_CHARS] for line in lines[:: max(1, len(lines) // SAMPLE_COUNT)])
    return estimate_by_features(sample) / len(sample) if sample else 0


def take_chunk(pending_lines: deque[str], room: int) -> str:
    """The next messages that fit `room` characters together, at least half of it: where they end before, a part of the next."""
    pieces: list[str] = []
    free_chars = room
    while pending_lines and free_chars > 0:
        piece = pending_lines.popleft()
        if len(piece) > free_chars:
            if free_chars < room / 2:
                pending_lines.appendleft(piece)
                break
            pending_lines.appendleft(piece[free_chars:])
            piece = piece[:free_chars]
        pieces.append(piece)
        free_chars -= len(piece) + 2
    return "\n\n".join(pieces)


def record_call(run: CompactionRun, answer: CallResult | None) -> None:
    """Add a call to the run, at once and whoever holds it: what was spent stays spent (None: a call without an answer)."""
    run_query = CompactionRun.objects.filter(pk=run.pk)
    run_query.update(provider_calls=F("provider_calls") + 1)
    if answer is None:
        return
    run_query.update(
        model=answer.model,
        input_tokens=F("input_tokens") + answer.input_tokens,
        output_tokens=F("output_tokens") + answer.output_tokens,
    )
    if answer.input_price is not None and answer.output_price is not None:
        cost = (
            answer.input_tokens * answer.input_price + answer.output_tokens * answer.output_price
        ) / Decimal(1_000_000)
        run_query.update(
            cost=Coalesce("cost", Value(Decimal(0)), output_field=DecimalField()) + cost
        )
