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
from compaction.backends.base import STORED_CHARS_PER_TOKEN, Answer, CallFailed, Prompt
from compaction.core.features import tokens_in
from compaction.core.stages.base import SummaryFailed
from compaction.core.transcript import Entry
from compaction.models import CompactionRun
from compaction.runs import leases
from compaction.sizing.session_context import Situation
from compaction.summaries import prompt as summary_prompt_module
from compaction.summaries import state_delta, unwrapping, validation
from compaction.summaries.prompt import Asked

logger = logging.getLogger(__name__)

TEMPERATURE = 0.1
WINDOW_SHARE = 4  # the answer may take a quarter of the window
MARGIN = 0.10  # of the window, for what an estimate gets wrong
WORDS_A_TOKEN = (
    0.55  # a cautious share, so that a summary of the asked length ends before its token limit
)
FEWEST_WORDS = 20
SMALLEST_PIECE = 200  # characters; a window in which no more fits cannot summarize anything
SAMPLES, SAMPLE_CHARS = 16, 512
DELTA_TOKENS = 1_024  # for the delta of the structured state, beside the summary

sleep = time.sleep


@dataclass(frozen=True, kw_only=True)
class Job:
    """What each call of a series is asked for, and what else its answer must be. `objection`: what is wrong with the last one, if anything.

    `grows`: it need not be smaller than what it replaces.
    """

    asked: Asked
    max_tokens: int
    min_words: int
    max_words: int
    objection: Callable[[str], str | None] = lambda _: None
    grows: bool = False


@dataclass(frozen=True)
class Written:
    """A checked answer; `block` holds the delta of the structured state, as the model wrote it."""

    summary: str
    block: str | None = None


class _OnlyDelta(SummaryFailed):
    """An answer that holds the delta of the structured state, and no summary beside it."""

    def __init__(self, block: str) -> None:
        super().__init__("The model wrote only how the state changes, and no summary.")
        self.block = block


@dataclass(frozen=True)
class _Chunk:
    """What one call summarizes: the summary so far, and lines of the transcript. `replaced`: characters of the chunks before."""

    previous: str | None
    lines: str
    replaced: int

    @property
    def characters(self) -> int:
        return len(self.previous or "") + len(self.lines)


class Calls:
    """The summarizing model, as one run uses it. `scale`: how many real tokens one of the policy's estimate stands for."""

    def __init__(self, run: CompactionRun, situation: Situation, scale: float) -> None:
        self.run, self.scale, self.wanted = run, scale, situation.policy.summary
        self.temperature: float | None = TEMPERATURE
        self.density, self.brevity = 1 / STORED_CHARS_PER_TOKEN, 1
        writer = backend_registry.get().writer(
            run.session_id, policies.summary_model(self.wanted.model)
        )
        own = situation.budget.window if situation.budget else 0
        self.model, self.window, self.most_output = (
            writer.model,
            writer.window or own,
            writer.max_output,
        )
        self.echoes = writer.echoes
        if writer.model == situation.subject.model:  # what a refusal told of it counts
            self.window = own or self.window

    def weigh(self, entries: Iterable[Entry], lines: Sequence[str]) -> None:
        """How many tokens a character takes: as the text looks (in Chinese one, in English a quarter), or as the provider counted it."""
        characters = max(1, sum(map(len, lines)))
        counted = (
            sum(entry.tokens for entry in entries if not entry.images) * self.scale / characters
            if self.scale > 1
            else 0
        )
        self.density, self.scale = max(self.density, density(lines), counted), 1.0

    def most_tokens(self, wanted: int) -> int:
        """The length an answer may have."""
        return max(1, min(wanted, self.window // WINDOW_SHARE, self.most_output or wanted))

    def room(self, job: Job, previous: str | None) -> int:
        """Characters of transcript that one call takes beside everything else; too few, or none, in a window that is too small."""
        tokens = (self.window * (1 - MARGIN) - job.max_tokens) / self.scale
        around = summary_prompt_module.text(
            job.asked, previous=previous, lines="", min_words=0, max_words=0
        )
        room = int(tokens / self.density) - len(summary_prompt_module.SYSTEM) - len(around)
        return min(room, self.wanted.chunk_chars or room)

    def next(
        self, job: Job, previous: str | None, rest: deque[str], *, replaced: int = 0
    ) -> Written:
        """One chunk off the rest, with its retries. A call refused for its length is retried with a shorter chunk.

        One that was answered by the delta of the state alone, as small models do, is retried for the summary alone; the delta is kept.
        Raises SummaryFailed, and Lost when another worker took the run over while this one waited.
        """
        failure, block = SummaryFailed("No call was made."), None
        for attempt in range(1 + self.wanted.retries):
            if attempt:
                self._wait(attempt)
            chunk = _Chunk(previous, take(rest, self._needed(job, previous)), replaced)
            try:
                written = self._written(job, chunk, last=not rest)
                return replace(written, block=written.block or block)
            except SummaryFailed as error:
                failure = error
                rest.appendleft(chunk.lines)
                if isinstance(error, _OnlyDelta):
                    job, block = replace(job, asked=replace(job.asked, state=None)), error.block
        raise failure

    def _needed(self, job: Job, previous: str | None) -> int:
        room = self.room(job, previous)
        if room < SMALLEST_PIECE:
            raise SummaryFailed("The model's window is too small to summarize in.")
        return room

    def _wait(self, attempt: int) -> None:
        """Before a retry. The run's lease is kept by a thread of its own meanwhile; no connection is."""
        waits = self.wanted.backoff
        if not waits:
            return
        close_old_connections()
        sleep(waits[min(attempt, len(waits)) - 1])
        if not leases.mine(self.run).exists():
            raise leases.Lost

    def _written(self, job: Job, chunk: _Chunk, *, last: bool) -> Written:
        prompt = self._prompt(job, chunk)
        try:
            answer = backend_registry.get().ask(self.run.session_id, prompt)
        except CallFailed as error:
            account(self.run, None)
            self._learn(error, prompt)
            raise SummaryFailed(str(error)) from None
        account(self.run, answer)
        self.brevity *= (
            2 if answer.finish == "length" else 1
        )  # the retry of one that was cut off asks for half of the words
        answer, block = _without_delta(answer) if job.asked.state is not None else (answer, None)
        if block and not answer.text:
            raise _OnlyDelta(block)
        summary = self._checked(job, chunk, answer, prompt)
        if not job.grows and len(summary) >= chunk.replaced + chunk.characters:
            raise SummaryFailed("The summary is not smaller than what it replaces.")
        if last and (complaint := job.objection(summary)):
            raise SummaryFailed(complaint)
        return Written(summary, block)

    def _checked(self, job: Job, chunk: _Chunk, answer: Answer, prompt: Prompt) -> str:
        rewrites = job.asked.parts or job.asked.template.rewrites
        asked = prompt.system + "\n" + summary_prompt_module.without_data(prompt.text)
        return validation.usable(
            answer,
            asked=asked,
            told="" if rewrites else chunk.lines,
            headings=job.asked.template.headings,
        )

    def _prompt(self, job: Job, chunk: _Chunk) -> Prompt:
        source_words = chunk.characters // STORED_CHARS_PER_TOKEN * WORDS_A_TOKEN / 2
        spoken = job.max_tokens - (
            DELTA_TOKENS if job.asked.state is not None and job.max_tokens > 2 * DELTA_TOKENS else 0
        )
        max_words = max(
            FEWEST_WORDS,
            int(min(job.max_words, spoken * WORDS_A_TOKEN, source_words) / self.brevity),
        )
        min_words = min(job.min_words, max_words // 2)
        words = summary_prompt_module.text(
            job.asked,
            previous=chunk.previous,
            lines=chunk.lines,
            min_words=min_words,
            max_words=max_words,
        )
        return Prompt(
            system=summary_prompt_module.SYSTEM,
            text=words,
            max_tokens=job.max_tokens,
            temperature=self.temperature,
            model=self.model,
            timeout=self.wanted.timeout,
        )

    def _learn(self, error: CallFailed, prompt: Prompt) -> None:
        """What the retry does otherwise: no temperature where the model takes none; and shorter, by the provider's numbers or by half."""
        if error.temperature:
            self.temperature = None
        if error.too_long:
            estimate = max(1.0, (len(prompt.system) + len(prompt.text)) * self.density)
            self.scale = max(
                error.tokens / estimate if error.tokens else self.scale * 2, self.scale
            )
            self.window = min(error.window or self.window, self.window)


def _without_delta(answer: Answer) -> tuple[Answer, str | None]:
    """An answer cut off in its delta has a whole summary all the same."""
    text, block = state_delta.split(unwrapping.without_thoughts(answer.text))
    finish = "stop" if answer.finish == "length" and block is not None and text else answer.finish
    return replace(answer, text=text, finish=finish), block


def density(lines: Sequence[str]) -> float:
    """Tokens a character, from samples spread over the text."""
    sample = "".join(line[:SAMPLE_CHARS] for line in lines[:: max(1, len(lines) // SAMPLES)])
    return tokens_in(sample) / len(sample) if sample else 0


def take(rest: deque[str], room: int) -> str:
    """The next messages that fit `room` characters together, at least half of it: where they end before, a part of the next."""
    taken: list[str] = []
    left = room
    while rest and left > 0:
        piece = rest.popleft()
        if len(piece) > left:
            if left < room / 2:
                rest.appendleft(piece)
                break
            rest.appendleft(piece[left:])
            piece = piece[:left]
        taken.append(piece)
        left -= len(piece) + 2
    return "\n\n".join(taken)


def account(run: CompactionRun, answer: Answer | None) -> None:
    """Add a call to the run, at once and whoever holds it: what was spent stays spent (None: a call without an answer)."""
    spent = CompactionRun.objects.filter(pk=run.pk)
    spent.update(provider_calls=F("provider_calls") + 1)
    if answer is None:
        return
    spent.update(
        model=answer.model,
        input_tokens=F("input_tokens") + answer.input_tokens,
        output_tokens=F("output_tokens") + answer.output_tokens,
    )
    if answer.input_price is not None and answer.output_price is not None:
        price = (
            answer.input_tokens * answer.input_price + answer.output_tokens * answer.output_price
        ) / Decimal(1_000_000)
        spent.update(cost=Coalesce("cost", Value(Decimal(0)), output_field=DecimalField()) + price)
