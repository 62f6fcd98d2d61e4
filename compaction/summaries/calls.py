"""Call the summary model: cut the transcript to its window, retry, check and record each answer."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.db.models import DecimalField, F, Value
from django.db.models.functions import Coalesce

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import STORED_CHARS_PER_TOKEN, CallFailed, CallResult, Prompt
from compaction.core.features import estimate_by_features
from compaction.core.stages.base import SummaryFailed
from compaction.core.transcript import TranscriptEntry
from compaction.models import CompactionRun
from compaction.sizing.session_context import SessionContext
from compaction.summaries import prompt as summary_prompt
from compaction.summaries import state_delta, unwrapping, validation
from compaction.summaries.prompt import SummaryOptions

TEMPERATURE = 0.1
WINDOW_SHARE = 4  # the answer may take a quarter of the window
WINDOW_MARGIN = 0.10  # of the window, for errors of the estimate
# A cautious share, so that a summary of the requested length ends before its token limit.
WORDS_PER_TOKEN = 0.55
MIN_SUMMARY_WORDS = 20
MIN_CHUNK_CHARS = 200  # a window in which no more characters fit cannot summarize anything
SAMPLE_COUNT = 16
SAMPLE_CHARS = 512
DELTA_TOKENS = 1_024  # for the delta of the structured state, in addition to the summary


@dataclass(frozen=True, kw_only=True)
class SummaryJob:
    """What every call of a series asks for, and which answers it accepts.

    `find_objection` returns what is wrong with the last summary of the series, or None. With
    `may_grow` an answer need not be shorter than the text that it replaces.
    """

    options: SummaryOptions
    max_tokens: int
    min_words: int
    max_words: int
    find_objection: Callable[[str], str | None] = lambda _: None
    may_grow: bool = False


@dataclass(frozen=True)
class SummaryResult:
    """A checked answer; `delta_block` is the delta of the structured state in the model's words."""

    summary: str
    delta_block: str | None = None


class _SummaryMissing(SummaryFailed):
    """An answer that holds the delta of the structured state and no summary."""

    def __init__(self, delta_block: str) -> None:
        super().__init__("The model wrote only how the state changes, and no summary.")
        self.delta_block = delta_block


@dataclass(frozen=True)
class _Chunk:
    """The text of one call: the earlier summary and lines of the transcript.

    `earlier_chars` counts the characters of the chunks that the earlier summary already replaces.
    """

    previous_summary: str | None
    lines: str
    earlier_chars: int

    @property
    def characters(self) -> int:
        return len(self.previous_summary or "") + len(self.lines)


class SummaryClient:
    """The summary model as one run uses it, and what the run has learned about its limits.

    `token_ratio` is the number of real tokens for one token of the policy's estimate. `wait` waits
    so many seconds before a retry, and raises when the run was lost meanwhile.
    """

    def __init__(
        self,
        run: CompactionRun,
        context: SessionContext,
        token_ratio: float,
        *,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.run = run
        self.wait = wait
        self.knobs = context.policy.summary
        self.token_ratio = token_ratio
        self.temperature: float | None = TEMPERATURE
        self.density = 1 / STORED_CHARS_PER_TOKEN  # tokens a character
        self.brevity = 1  # the summary is asked to be so many times shorter
        summary_model = backend_registry.get_backend().choose_summary_model(
            run.session_id, policies.resolve_summary_model(self.knobs.model)
        )
        session_window = context.budget.window if context.budget else 0
        self.model = summary_model.model
        self.max_output_tokens = summary_model.max_output_tokens
        self.echoes_headings = summary_model.echoes_headings
        self.window = summary_model.window or session_window
        if summary_model.model == context.facts.model:
            # The session's budget knows the window that a refusal stated, if there was one.
            self.window = session_window or self.window

    def calibrate_density(self, entries: Iterable[TranscriptEntry], lines: Sequence[str]) -> None:
        """Estimate the tokens of a character from the text itself and from the provider's counts.

        English has about a quarter of a token a character, Chinese a whole one. The larger of the
        estimates is used, so that no call is refused for its length.
        """
        characters = max(1, sum(map(len, lines)))
        provider_density = 0.0
        if self.token_ratio > 1:
            estimated_tokens = sum(entry.tokens for entry in entries if not entry.images)
            provider_density = estimated_tokens * self.token_ratio / characters
        self.density = max(self.density, estimate_density(lines), provider_density)
        self.token_ratio = 1.0

    def limit_output_tokens(self, max_tokens: int) -> int:
        """Return how many tokens an answer may have: `max_tokens` or what the model allows."""
        output_limit = self.max_output_tokens or max_tokens
        return max(1, min(max_tokens, self.window // WINDOW_SHARE, output_limit))

    def measure_room(self, job: SummaryJob, previous_summary: str | None) -> int:
        """Return how many characters of transcript fit into one call; zero or less for none."""
        free_tokens = (self.window * (1 - WINDOW_MARGIN) - job.max_tokens) / self.token_ratio
        empty_message = summary_prompt.build_message(
            job.options, previous_summary=previous_summary, lines="", min_words=0, max_words=0
        )
        fixed_chars = len(summary_prompt.SYSTEM_PROMPT) + len(empty_message)
        room = int(free_tokens / self.density) - fixed_chars
        return min(room, self.knobs.chunk_chars or room)

    def summarize_next_chunk(
        self,
        job: SummaryJob,
        previous_summary: str | None,
        pending_lines: deque[str],
        *,
        earlier_chars: int = 0,
    ) -> SummaryResult:
        """Take one chunk off the pending lines and summarize it, with retries.

        A call that was refused for its length is retried with a shorter chunk. One that returned
        the delta of the state alone, as small models do, is retried for the summary alone, and the
        delta is used. Raises SummaryFailed after the last retry, and what `wait` raises.
        """
        failure = SummaryFailed("No call was made.")
        delta_block: str | None = None
        for attempt in range(1 + self.knobs.retries):
            if attempt:
                self._wait_before_retry(attempt)
            room = self._require_room(job, previous_summary)
            chunk = _Chunk(previous_summary, take_chunk(pending_lines, room), earlier_chars)
            try:
                result = self._summarize_chunk(job, chunk, is_last=not pending_lines)
                return replace(result, delta_block=result.delta_block or delta_block)
            except _SummaryMissing as error:
                failure = error
                delta_block = error.delta_block
                job = replace(job, options=replace(job.options, state=None))
                pending_lines.appendleft(chunk.lines)
            except SummaryFailed as error:
                failure = error
                pending_lines.appendleft(chunk.lines)
        raise failure

    def _require_room(self, job: SummaryJob, previous_summary: str | None) -> int:
        room = self.measure_room(job, previous_summary)
        if room < MIN_CHUNK_CHARS:
            raise SummaryFailed("The model's window is too small to summarize in.")
        return room

    def _wait_before_retry(self, attempt: int) -> None:
        delays = self.knobs.backoff
        if delays:
            self.wait(delays[min(attempt, len(delays)) - 1])

    def _summarize_chunk(self, job: SummaryJob, chunk: _Chunk, *, is_last: bool) -> SummaryResult:
        call_prompt = self._build_prompt(job, chunk)
        answer = self._call_model(call_prompt)
        delta_block: str | None = None
        if job.options.state is not None:
            answer, delta_block = _split_answer(answer)
        if delta_block and not answer.text:
            raise _SummaryMissing(delta_block)
        summary = self._validate_answer(job, chunk, answer, call_prompt)
        if not job.may_grow and len(summary) >= chunk.earlier_chars + chunk.characters:
            raise SummaryFailed("The summary is not smaller than what it replaces.")
        if is_last and (objection := job.find_objection(summary)):
            raise SummaryFailed(objection)
        return SummaryResult(summary, delta_block)

    def _call_model(self, call_prompt: Prompt) -> CallResult:
        """Make one call and record it. Record a failed one too, because it may cost money."""
        try:
            answer = backend_registry.get_backend().call_summary_model(
                self.run.session_id, call_prompt
            )
        except CallFailed as error:
            record_call(self.run, None)
            self._adapt_to_failure(error, call_prompt)
            raise SummaryFailed(str(error)) from None
        record_call(self.run, answer)
        if answer.finish == "length":
            # The answer was cut off, so a retry asks for half of the words.
            self.brevity *= 2
        return answer

    def _validate_answer(
        self, job: SummaryJob, chunk: _Chunk, answer: CallResult, call_prompt: Prompt
    ) -> str:
        # A summary of summaries may repeat much of its text; one of messages must not.
        may_copy = job.options.merges_parts or job.options.template.rewrites_summaries
        instruction = summary_prompt.extract_instruction(call_prompt.text)
        return validation.extract_summary(
            answer,
            instruction=f"{call_prompt.system}\n{instruction}",
            transcript="" if may_copy else chunk.lines,
            headings=job.options.template.headings,
        )

    def _build_prompt(self, job: SummaryJob, chunk: _Chunk) -> Prompt:
        max_words = self._limit_words(job, chunk)
        message_text = summary_prompt.build_message(
            job.options,
            previous_summary=chunk.previous_summary,
            lines=chunk.lines,
            min_words=min(job.min_words, max_words // 2),
            max_words=max_words,
        )
        return Prompt(
            system=summary_prompt.SYSTEM_PROMPT,
            text=message_text,
            max_tokens=job.max_tokens,
            temperature=self.temperature,
            model=self.model,
            timeout=self.knobs.timeout,
        )

    def _limit_words(self, job: SummaryJob, chunk: _Chunk) -> int:
        """Return the most words that fit the token limit and are shorter than the source."""
        token_limit = job.max_tokens
        if job.options.state is not None and job.max_tokens > 2 * DELTA_TOKENS:
            token_limit -= DELTA_TOKENS
        half_of_source = chunk.characters // STORED_CHARS_PER_TOKEN * WORDS_PER_TOKEN / 2
        words = min(job.max_words, token_limit * WORDS_PER_TOKEN, half_of_source)
        return max(MIN_SUMMARY_WORDS, int(words / self.brevity))

    def _adapt_to_failure(self, error: CallFailed, call_prompt: Prompt) -> None:
        """Change what the retry does differently: no temperature, or a shorter chunk.

        The chunk is shortened by the provider's numbers where it gave any, and by half otherwise.
        """
        if error.temperature:
            self.temperature = None
        if not error.too_long:
            return
        characters = len(call_prompt.system) + len(call_prompt.text)
        token_estimate = max(1.0, characters * self.density)
        token_ratio = error.tokens / token_estimate if error.tokens else self.token_ratio * 2
        self.token_ratio = max(token_ratio, self.token_ratio)
        self.window = min(error.window or self.window, self.window)


def _split_answer(answer: CallResult) -> tuple[CallResult, str | None]:
    """Split an answer into the summary and the delta of the state; None for no delta.

    An answer that was cut off within its delta holds a complete summary, so it counts as finished.
    """
    text, delta_block = state_delta.split_delta(unwrapping.strip_thoughts(answer.text))
    if answer.finish == "length" and delta_block is not None and text:
        return replace(answer, text=text, finish="stop"), delta_block
    return replace(answer, text=text), delta_block


def estimate_density(lines: Sequence[str]) -> float:
    """Return the estimated tokens a character, from samples spread over the text; 0 for no text."""
    step = max(1, len(lines) // SAMPLE_COUNT)
    sample = "".join(line[:SAMPLE_CHARS] for line in lines[::step])
    return estimate_by_features(sample) / len(sample) if sample else 0


def take_chunk(pending_lines: deque[str], room: int) -> str:
    """Take the next messages that fit into `room` characters together off the pending lines.

    A message that is too long is divided where the chunk would otherwise be less than half full.
    """
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
    """Add the tokens and the cost of a call to the run; None for a call without an answer.

    This is written at once, and without checking the claim: what was spent is spent, also when
    another worker has taken the run over meanwhile. The sums are made in the database, because
    both workers may add to them.
    """
    run_row = CompactionRun.objects.filter(pk=run.pk)
    run_row.update(provider_calls=F("provider_calls") + 1)
    if answer is None:
        return
    run_row.update(
        model=answer.model,
        input_tokens=F("input_tokens") + answer.input_tokens,
        output_tokens=F("output_tokens") + answer.output_tokens,
    )
    if answer.input_price is not None and answer.output_price is not None:
        input_cost = answer.input_tokens * answer.input_price
        output_cost = answer.output_tokens * answer.output_price
        cost = (input_cost + output_cost) / Decimal(1_000_000)
        earlier_cost = Coalesce("cost", Value(Decimal(0)), output_field=DecimalField())
        run_row.update(cost=earlier_cost + cost)
