"""Writes the summary of a pass: in as many calls as the summarizer's own window asks for, each retried once, each answer checked."""

from collections import deque
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import DecimalField, F, Value
from django.db.models.functions import Coalesce

from compaction import backends, endings, summary_checks, summary_prompt
from compaction.backends.base import STORED_CHARS_PER_TOKEN, Answer, CallFailed, Prompt
from compaction.core.pipeline import SummaryFailed, SummaryTask
from compaction.core.stages.summarize import objection
from compaction.models import CompactionRun
from compaction.situation import Situation

TEMPERATURE = 0.1
WINDOW_SHARE = 4  # the answer may take a quarter of the window
MARGIN = 0.10  # of the window, for what an estimate gets wrong
WORDS_A_TOKEN = 0.55  # a cautious share, so that a summary of the asked length ends before its token limit
FEWEST_WORDS = 20
SMALLEST_PIECE = 200  # characters; a window in which no more fits cannot summarize anything


@dataclass
class _Chunk:
    """What one call summarizes: the summary so far, and lines of the transcript. `replaced`: characters of the chunks before."""

    previous: str | None
    lines: str
    replaced: int

    @property
    def characters(self) -> int:
        return len(self.previous or "") + len(self.lines)


class Summarizer:
    """Summarizes for one run, as `pipeline.run` asks. `scale`: how many real tokens an estimated one stands for."""

    def __init__(self, run: CompactionRun, situation: Situation, scale: float) -> None:
        self.run, self.policy, self.scale = run, situation.policy, scale
        self.temperature: float | None = TEMPERATURE
        subject, window = situation.subject, situation.budget.window if situation.budget else 0
        self.window = window if subject.summary_model == subject.model else (subject.summary_window or window)

    def __call__(self, task: SummaryTask) -> str:
        """Chunk after chunk, each merged into the summary so far. Raises SummaryFailed, and Lost when another worker took over."""
        endings.started(self.run, messages=len(task.entries), force=self.run.trigger == CompactionRun.Trigger.MANUAL)
        max_tokens = max(1, min(task.max_tokens, self.window // WINDOW_SHARE))
        rest = deque(summary_prompt.rendered(entry) for entry in task.entries)
        summary, whole = task.previous, sum(map(len, rest))
        while rest:
            summary = self._merged(task, summary, rest, max_tokens, replaced=whole - sum(map(len, rest)))
        return summary or ""

    def _merged(self, task: SummaryTask, previous: str | None, rest: deque[str], max_tokens: int, *, replaced: int) -> str:
        """One chunk off the rest, with its retries. A call refused for its length is retried with a shorter chunk."""
        failure = SummaryFailed("No call was made.")
        for _ in range(1 + self.policy.summary.retries):
            chunk = _Chunk(previous, take(rest, self._room(previous, task.instructions, max_tokens)), replaced)
            try:
                return self._written(task, chunk, max_tokens, last=not rest)
            except SummaryFailed as error:
                failure = error
                rest.appendleft(chunk.lines)
        raise failure

    def _written(self, task: SummaryTask, chunk: _Chunk, max_tokens: int, *, last: bool) -> str:
        try:
            answer = backends.get().ask(self.run.session_id, self._prompt(task, chunk, max_tokens))
        except CallFailed as error:
            account(self.run, None)
            self._learn(error, chunk)
            raise SummaryFailed(str(error)) from None
        account(self.run, answer)
        summary = summary_checks.usable(answer)
        if len(summary) >= chunk.replaced + chunk.characters:
            raise SummaryFailed("The summary is not smaller than what it replaces.")
        if last and (complaint := objection(summary, task, self.policy)):
            raise SummaryFailed(complaint)
        return summary

    def _prompt(self, task: SummaryTask, chunk: _Chunk, max_tokens: int) -> Prompt:
        wanted = self.policy.summary
        source_words = chunk.characters // STORED_CHARS_PER_TOKEN * WORDS_A_TOKEN / 2
        max_words = max(FEWEST_WORDS, int(min(wanted.max_words, max_tokens * WORDS_A_TOKEN, source_words)))
        words = summary_prompt.text(
            previous=chunk.previous,
            lines=chunk.lines,
            min_words=min(wanted.min_words, max_words // 2),
            max_words=max_words,
            focus=task.instructions,
        )
        return Prompt(system=summary_prompt.SYSTEM, text=words, max_tokens=max_tokens, temperature=self.temperature)

    def _room(self, previous: str | None, focus: str, max_tokens: int) -> int:
        """Characters of transcript that fit beside everything else. Raises SummaryFailed when next to nothing does."""
        tokens = (self.window * (1 - MARGIN) - max_tokens) / self.scale
        around = len(summary_prompt.SYSTEM) + len(summary_prompt.text(previous=previous, lines="", min_words=0, max_words=0, focus=focus))
        room = int(tokens * STORED_CHARS_PER_TOKEN) - around
        if room < SMALLEST_PIECE:
            raise SummaryFailed("The model's window is too small to summarize in.")
        return room

    def _learn(self, error: CallFailed, chunk: _Chunk) -> None:
        """What the retry does otherwise: no temperature where the model takes none; and shorter, by the provider's numbers or by half."""
        if error.temperature:
            self.temperature = None
        if error.too_long:
            estimate = max(1, (len(summary_prompt.SYSTEM) + chunk.characters) // STORED_CHARS_PER_TOKEN)
            self.scale = max(error.tokens / estimate if error.tokens else self.scale * 2, self.scale)
            self.window = min(error.window or self.window, self.window)


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
        model=answer.model, input_tokens=F("input_tokens") + answer.input_tokens, output_tokens=F("output_tokens") + answer.output_tokens
    )
    if answer.input_price is not None and answer.output_price is not None:
        price = (answer.input_tokens * answer.input_price + answer.output_tokens * answer.output_price) / Decimal(1_000_000)
        spent.update(cost=Coalesce("cost", Value(Decimal(0)), output_field=DecimalField()) + price)


def imagined(task: SummaryTask) -> str:
    """For a dry run: a text of the length a summary would have, at most half of what it replaces."""
    source = sum(entry.tokens for entry in task.entries)
    return "x" * (STORED_CHARS_PER_TOKEN * max(1, min(task.max_tokens, source // 2)))
