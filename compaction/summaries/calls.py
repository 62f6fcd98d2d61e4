"""Call the summary model: cut the transcript to its window, retry, check and record each answer."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from compaction import policies
from compaction.core.summary import SummaryFailed
from compaction.core.systems import describe_traits
from compaction.core.transcript import TranscriptEntry
from compaction.models import CompactionRun
from compaction.sessions.memory_app import get_memory
from compaction.sessions.session_context import SessionContext
from compaction.summaries import prompt as summary_prompt
from compaction.summaries import source, validation
from compaction.summaries.cache_reuse import CacheReuse
from compaction.summaries.cache_reuse import build_text as build_reuse_text
from compaction.summaries.call_log import (
    FROM_MESSAGES,
    CallLog,
    CallPlace,
    Declined,
    Filtered,
    Refused,
    SummaryMissing,
    Throttled,
    UntrueSummary,
    read_times,
)
from compaction.summaries.model_calls import (
    CallFailed,
    CallResult,
    Prompt,
    call_summary_model,
    choose_summary_model,
)
from compaction.summaries.pace import Pace, learn_speed
from compaction.summaries.prompt import Addition, SummaryOptions
from compaction.summaries.refused_calls import (
    MAX_LEFT_OUT,
    ONLY_CALLS,
    SPACE_SHARE,
    RefusedCalls,
    find_refused,
)
from textkit.code_blocks import close_code_block
from textkit.credentials import PLACEHOLDER, remove_unsaid_credentials
from textkit.token_features import estimate_by_features

SAMPLE_COUNT = 16
SAMPLE_CHARS = 512

TEMPERATURE = 0.1
WINDOW_SHARE = 4  # the answer may take a quarter of the window
SEPARATOR = "\n\n"  # between two messages
MIN_ROOM = 128  # tokens; no summary fits into less
MAX_SHORTENED = 3  # times in a run, that its chunks are halved for refusals in unknown words
PROBE_TOKENS = 16  # of an answer that only shows whether a filter lets messages through
SAME_REASON_CHARS = 50  # behind them may stand the number of a request
# Only what refuses every request refuses it.
HARMLESS_LINE = source.render_words("user", "The train to the coast leaves at nine.")
WINDOW_MARGIN = 0.10  # of the window, for errors of the estimate
# A cautious share, so that a summary of the requested length ends before its token limit.
WORDS_PER_TOKEN = 0.55
THOUGHT_SHARE = 2  # thoughts took the room of an answer whose text was cut off before the half
STOPPED_THOUGHT_SHARE = 4  # the least part of the room that thoughts took which a server cut
MIN_SUMMARY_WORDS = 20
MIN_CHUNK_CHARS = 200  # a window in which no more characters fit cannot summarize anything


class Progress(Protocol):
    """What the calls of a summary model report while they are made."""

    def expect_parts(self, count: int) -> None:
        """Expect so many parts from now on."""

    def begin_part(self) -> None:
        """Begin the next part."""

    def begin_call(self) -> None:
        """Begin a call for the part; a retry writes it from its beginning."""

    def report(self, text: str) -> None:
        """Take what the call has written so far. What it raises ends the call."""


def take_pieces(pending_lines: deque[str], space: int) -> list[str]:
    """Take the next messages that fit into `space` characters together off the pending lines.

    A message that is too long is divided where the chunk would otherwise be less than half full.
    """
    pieces: list[str] = []
    free_chars = space
    while pending_lines and free_chars > 0:
        piece = pending_lines.popleft()
        if len(piece) > free_chars:
            if free_chars < space / 2:
                pending_lines.appendleft(piece)
                break
            pending_lines.appendleft(piece[free_chars:])
            piece = piece[:free_chars]
        pieces.append(piece)
        free_chars -= len(piece) + 2
    if pending_lines and not source.DAY_HEADER.match(pending_lines[0]):
        # The next chunk begins within the day with which this one ends.
        pending_lines[0] = source.find_last_day(SEPARATOR.join(pieces)) + pending_lines[0]
    return pieces


def estimate_density(lines: Sequence[str]) -> float:
    """Return the estimated tokens a character, from samples spread over the text; 0 for no text."""
    step = max(1, len(lines) // SAMPLE_COUNT)
    sample = "".join(line[:SAMPLE_CHARS] for line in lines[::step])
    return estimate_by_features(sample) / len(sample) if sample else 0


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
    place: CallPlace = FROM_MESSAGES

    @property
    def summary_tokens(self) -> int:
        """Return the most tokens of the summary alone."""
        addition = self.options.addition
        return self.max_tokens - addition.tokens if addition else self.max_tokens


@dataclass(frozen=True)
class SummaryResult:
    """A checked answer; `added_block` is what its addition asked for, in the model's words."""

    summary: str
    added_block: str | None = None


@dataclass(frozen=True)
class _Chunk:
    """The text of one call: the earlier summary and lines of the transcript.

    `earlier_chars` counts the characters of the chunks that the earlier summary already replaces.
    """

    previous_summary: str | None
    pieces: Sequence[str]
    earlier_chars: int

    @cached_property
    def lines(self) -> str:
        return SEPARATOR.join(self.pieces)

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
        wait: Callable[[float], None],
        progress: Progress,
    ) -> None:
        self.run = run
        self.wait = wait
        self.progress = progress
        self.log = CallLog(run)
        self.knobs = context.policy.summary
        self.traits = describe_traits(context.policy)
        self.verifier = get_memory().build_verifier(run, context.policy)
        self.token_ratio = token_ratio
        self.density = 1 / CHARS_PER_TOKEN_ESTIMATE  # tokens a character
        self.brevity = 1  # the summary is asked to be so many times shorter
        self.final_failure: SummaryFailed | None = None  # after it, no call is made
        summary_model = choose_summary_model(
            run.session_id,
            policies.resolve_summary_model(self.knobs.model),
            chosen_name=run.summary_model,
        )
        session_window = context.budget.request_limit if context.budget else 0
        self.model = summary_model.model
        self.temperature = TEMPERATURE if summary_model.takes_temperature else None
        self.refused = RefusedCalls(
            self.model,
            thought_room=summary_model.thought_room,
            thoughts_exceed=summary_model.thoughts_exceed,
            attempts=run.attempts,
            wait=wait,
        )
        self.refused.tells_of_no_tools = bool(summary_model.calls_without_tools)
        if summary_model.calls_without_tools == "always":
            self.final_failure = SummaryFailed(ONLY_CALLS)
        self.seqs_by_line: dict[str, int] = {}
        self.spent_tokens = 0  # the room of the newest call, where thoughts took all of it
        self.follows_talk = False  # the newest call
        self.was_accepted = False  # by its provider, so that it may be paid for
        self.max_output_tokens = summary_model.max_output_tokens
        self.max_chunk_tokens = summary_model.max_chunk_tokens
        self.echoes_headings = summary_model.echoes_headings
        self.names_lines = summary_model.names_lines
        self.cache_reuse = CacheReuse(run, context, summary_model)
        self.pace = Pace(self.model, floor=max(self.knobs.timeout, summary_model.timeout))
        self.window = summary_model.window or session_window
        if summary_model.model == context.facts.model.name:
            # The session's budget knows the window that a refusal stated, if there was one.
            self.window = session_window or self.window
        exceeded = self.refused.thoughts_exceed
        is_manual = run.trigger == CompactionRun.Trigger.MANUAL
        if exceeded and not is_manual and exceeded >= self._limit_room():
            self.final_failure = self.refused.explain_thoughts(exceeded)

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

    def store_expected_seconds(self, job: SummaryJob, characters: int) -> None:
        """Store with the run how long it takes to summarize so many characters, where known."""
        call_count = -(-characters // max(1, self.measure_space(job, None)))
        answer_chars = min(
            characters / 2, job.max_words / WORDS_PER_TOKEN * CHARS_PER_TOKEN_ESTIMATE
        )
        seconds = self.pace.estimate_seconds(
            self._estimate_tokens("") * call_count + characters * self.density,
            min(job.max_tokens, answer_chars * self.density) * call_count,
        )
        self.progress.expect_parts(call_count)
        if seconds is not None:
            self.run.expected_seconds = seconds
            CompactionRun.objects.filter(pk=self.run.pk).update(expected_seconds=seconds)

    def limit_output_tokens(self, max_tokens: int) -> int:
        """Return how many tokens an answer may have: `max_tokens` or what the model allows."""
        output_limit = self.max_output_tokens or max_tokens
        return max(1, min(max_tokens, self.window // WINDOW_SHARE, output_limit))

    def limit_call_tokens(self, job: SummaryJob) -> int:
        """Return how many tokens the next answer may have, its reasoning included."""
        return max(job.max_tokens, min(self.refused.thought_room, self._limit_room()))

    def _limit_room(self) -> int:
        """Return how many tokens an answer with its reasoning may have at most."""
        room = min(self.window // SPACE_SHARE, self.max_output_tokens or self.window)
        time_limit = self.pace.limit_answer_tokens()
        return room if time_limit is None else min(room, int(time_limit))

    def measure_space(self, job: SummaryJob, previous_summary: str | None) -> int:
        """Return how many characters of transcript fit into one call; zero or less for none."""
        answer_tokens = self.limit_call_tokens(job)
        free_tokens = self.window * (1 - WINDOW_MARGIN) - answer_tokens
        time_limit = self.pace.limit_prompt_tokens(answer_tokens)
        if time_limit is not None:
            free_tokens = min(free_tokens, time_limit)
        free_tokens /= self.token_ratio
        if self.max_chunk_tokens:
            free_tokens = min(free_tokens, self.max_chunk_tokens)
        empty_message = summary_prompt.build_message(
            job.options, previous_summary=previous_summary, lines="", min_words=0, max_words=0
        )
        fixed_chars = len(summary_prompt.SYSTEM_PROMPT) + len(empty_message)
        space = int(free_tokens / self.density) - fixed_chars
        return min(space, self.traits.chunk_chars or space)

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
        what was added alone, as small models do, is retried for the summary alone, and that is
        used. Raises SummaryFailed after the last retry, or where another call would fail
        too, and what `wait` raises.
        """
        self.progress.begin_part()
        self.log.begin_part(job.place)
        added_block: str | None = None
        attempt = 0
        while True:
            if self.final_failure:
                raise self.final_failure
            space = self._require_space(job, previous_summary)
            chunk = _Chunk(previous_summary, take_pieces(pending_lines, space), earlier_chars)
            failure: SummaryFailed
            is_last_try = attempt >= self.knobs.retries
            try:
                result = self._summarize_chunk(job, chunk, is_last=not pending_lines)
                return replace(result, added_block=result.added_block or added_block)
            except SummaryMissing as error:
                failure = error
                self.log.refuse_answer(error)
                added_block = error.added_block
                job = replace(job, options=replace(job.options, addition=None))
                pending_lines.extendleft(reversed(chunk.pieces))
            except SummaryFailed as error:
                failure = error
                self.log.refuse_answer(error)
                self.cache_reuse.give_up()
                pending_lines.extendleft(reversed(chunk.pieces))
                if isinstance(error, UntrueSummary):
                    job = replace(job, options=replace(job.options, correction=error.reason))
                # A request that is refused would be refused again.
                is_last_try |= isinstance(failure, Refused) or self._repeats_last_run(failure)
                is_due_again = self._waits_by_policy(failure) and not is_last_try
                if not is_due_again and (
                    self._changes_next_call(job, failure, chunk, pending_lines)
                    or (is_last_try and self._works_around(job, failure, chunk, pending_lines))
                ):
                    if not pending_lines:
                        return SummaryResult(previous_summary or "", added_block)
                    continue
            attempt += 1
            failure = self.final_failure or failure
            if is_last_try or self.final_failure:
                raise failure
            self._wait_before_retry(attempt)

    def _waits_by_policy(self, failure: SummaryFailed) -> bool:
        """Return whether the policy says how long to wait for a provider that does not say so.

        It does for the first execution of a run; later ones would repeat the same calls.
        """
        is_unnamed = isinstance(failure, Throttled) and failure.retry_after is None
        return is_unnamed and bool(self.traits.waits) and self.run.attempts <= 1

    def _changes_next_call(
        self, job: SummaryJob, failure: SummaryFailed, chunk: _Chunk, pending_lines: deque[str]
    ) -> bool:
        """Return whether the next call is another one, so that it counts as no retry.

        It comes when the provider has asked for it, has more room, or leaves out a message that a
        filter refuses. Raises ProviderBusy.
        """
        if isinstance(failure, Throttled):
            self.refused.wait_for_provider(failure)
            return True
        if isinstance(failure, Filtered) and self.follows_talk:
            return True  # the conversation has other messages too; the next call has these alone
        if isinstance(failure, Filtered):
            return self._leave_out_refused(job, chunk, pending_lines, PROBE_TOKENS)
        spent_tokens, self.spent_tokens = self.spent_tokens, 0
        if not spent_tokens:
            return isinstance(failure, Refused) and self.follows_talk
        self.refused.make_room(spent_tokens, self.window)
        if self.limit_call_tokens(job) > spent_tokens:
            return True
        self.brevity *= 2
        self.final_failure = self.refused.give_up_room(spent_tokens)
        return False

    def _works_around(
        self, job: SummaryJob, failure: SummaryFailed, chunk: _Chunk, pending_lines: deque[str]
    ) -> bool:
        """Return whether the next call may succeed although no retry is left.

        A model that writes nothing or declines, and a refusal in unknown words, may be due to one
        message, or to their length. It is if a harmless message is not refused; else the form of
        the request may be. What a model writes may be chance, so this is looked for there once the
        run before has ended in the same way, as the same calls would again.
        """
        if not isinstance(failure, (Declined, Refused)):
            return False
        is_chance = isinstance(failure, Declined) and not self._has_failed_so(failure)
        if is_chance and not self.refused.works_around:
            return False
        self.refused.works_around = True
        is_late = isinstance(failure, Refused) or failure.has_begun
        self.refused.words = "" if isinstance(failure, Refused) else failure.words
        probe_tokens = self.limit_call_tokens(job) if is_late else PROBE_TOKENS
        if isinstance(failure, Refused) and self._refuses_anything(job, probe_tokens):
            return self._change_form(job, probe_tokens)
        if isinstance(failure, Refused) and not self.refused.has_repeated:
            self.refused.has_repeated = True  # it may have passed, and then that is the summary
            return True
        may_be_length = isinstance(failure, Refused)
        if self._leave_out_refused(
            job, chunk, pending_lines, probe_tokens, may_be_length=may_be_length
        ):
            return True
        return may_be_length and self._shorten_chunks(chunk)

    def _repeats_last_run(self, failure: SummaryFailed) -> bool:
        """Return whether a call that is paid for has failed as those of the run before did.

        Then the same call is not made again, unless the next one is another one: it says what was
        untrue, or has the messages alone in place of the conversation.
        """
        is_other = self.follows_talk or isinstance(failure, UntrueSummary)
        return self.was_accepted and not is_other and self._has_failed_so(failure)

    def _has_failed_so(self, failure: SummaryFailed) -> bool:
        """Return whether the session's run before has ended in the same way."""
        runs = CompactionRun.objects.filter(session=self.run.session_id).exclude(pk=self.run.pk)
        ended_runs = runs.exclude(status=CompactionRun.Status.SKIPPED).order_by("-created_at")
        reason = ended_runs.values_list("reason", flat=True).first() or ""
        return failure.reason[:SAME_REASON_CHARS] in reason

    def _refuses_anything(self, job: SummaryJob, probe_tokens: int) -> bool:
        """Return whether a harmless message is refused too, which is tried once in a run."""
        if self.refused.refuses_anything is None:
            self.refused.refuses_anything = self._is_refused(job, [HARMLESS_LINE], probe_tokens)
        return self.refused.refuses_anything

    def _change_form(self, job: SummaryJob, room: int) -> bool:
        """Return whether a harmless message is taken without a temperature, or with less room.

        It is asked for once in a run. What helped is remembered for the model.
        """
        if self.refused.has_changed_form:
            return False
        self.refused.has_changed_form = True
        temperature, self.temperature = self.temperature, None
        if temperature is not None and not self._is_refused(job, [HARMLESS_LINE], room):
            self.refused.refuses_anything = False
            self.refused.note_temperature()
            return True
        self.temperature = temperature
        if self._is_refused(job, [HARMLESS_LINE], PROBE_TOKENS):
            return False
        while room > MIN_ROOM:
            room //= 2
            if not self._is_refused(job, [HARMLESS_LINE], room):
                self.refused.refuses_anything = False
                self.refused.keep_output_limit(room)
                return True
        return False

    def _shorten_chunks(self, chunk: _Chunk) -> bool:
        """Let the next chunks be half as long, if this one was refused and each half is taken."""
        if len(chunk.pieces) < 2 or self.refused.shortened >= MAX_SHORTENED:
            return False
        self.refused.shortened += 1
        self.max_chunk_tokens = int(chunk.characters * self.density / 2)
        self.refused.note_chunk_limit(self.max_chunk_tokens)
        return True

    def _leave_out_refused(
        self,
        job: SummaryJob,
        chunk: _Chunk,
        pending_lines: deque[str],
        probe_tokens: int,
        *,
        may_be_length: bool = False,
    ) -> bool:
        """Take the message that is refused off the pending lines; False if it is none.

        Halves of the messages are sent until one message is left, each for an answer of a few
        tokens: so the whole chunk is summarized once, without that message.
        """
        if len(self.refused.left_out_seqs) >= MAX_LEFT_OUT:
            return False
        if self._refuses_anything(job, probe_tokens):
            return False
        index = find_refused(
            chunk.pieces,
            lambda pieces: self._is_refused(job, pieces, probe_tokens),
            is_certain=chunk.previous_summary is None and not may_be_length,
        )
        seq = None if index is None else self._find_seq(chunk.pieces[index])
        if index is None or seq is None:
            return False
        day_header = source.find_last_day(pending_lines[index])
        del pending_lines[index]
        if index < len(pending_lines) and not source.DAY_HEADER.match(pending_lines[index]):
            pending_lines[index] = day_header + pending_lines[index]
        self.refused.left_out_seqs.append(seq)
        return True

    def _is_refused(self, job: SummaryJob, pieces: Sequence[str], probe_tokens: int) -> bool:
        call_prompt = self._build_prompt(job, _Chunk(None, pieces, 0))
        while True:
            try:
                answer = self._call_model(
                    replace(call_prompt, max_tokens=probe_tokens), is_probe=True
                )
            except (Filtered, Refused):
                return True
            except Throttled as failure:
                self.refused.wait_for_provider(failure)
            else:
                return validation.is_declined(answer, refusal=self.refused.words)

    def _find_seq(self, piece: str) -> int | None:
        """Return the number of the message that a piece is, or is a part of."""
        text = source.DAY_HEADER.sub("", piece)
        return next((seq for line, seq in self.seqs_by_line.items() if text in line), None)

    def _require_space(self, job: SummaryJob, previous_summary: str | None) -> int:
        space = self.measure_space(job, previous_summary)
        if space < MIN_CHUNK_CHARS:
            raise SummaryFailed(self._explain_missing_space(job))
        return space

    def _explain_missing_space(self, job: SummaryJob) -> str:
        prompt_limit = self.pace.limit_prompt_tokens(self.limit_call_tokens(job))
        if prompt_limit is not None and prompt_limit < self.window / WINDOW_SHARE:
            return self.pace.describe_slowness()
        return "The model's window is too small to summarize in."

    def _wait_before_retry(self, attempt: int) -> None:
        if seconds := self.traits.choose_wait(attempt):
            self.wait(seconds)

    def _summarize_chunk(self, job: SummaryJob, chunk: _Chunk, *, is_last: bool) -> SummaryResult:
        call_prompt = self._build_prompt(job, chunk)
        # What the conversation sent has the credentials that the transcript has not.
        is_clean = PLACEHOLDER not in chunk.lines
        is_whole = is_last and not chunk.earlier_chars
        if is_clean and is_whole and not job.options.rewrites_text:
            call_prompt = self._follow_talk(call_prompt, chunk)
        self.follows_talk = call_prompt.reuses_cache
        answer = self._call_model(call_prompt)
        added_block: str | None = None
        if job.options.addition:
            answer, added_block = _split_answer(answer, job.options.addition)
        if added_block and not answer.text:
            raise SummaryMissing(added_block)
        try:
            summary = self._check_answer(job, chunk, answer, call_prompt)
            if is_last and (objection := job.find_objection(summary)):
                raise SummaryFailed(objection)
        except UntrueSummary:
            raise  # its reason quotes the answer, and corrects the next one
        except SummaryFailed as failure:
            failure.reason = validation.add_quotation(failure.reason, answer.text)
            raise
        return SummaryResult(summary, added_block)

    def _check_answer(
        self, job: SummaryJob, chunk: _Chunk, answer: CallResult, call_prompt: Prompt
    ) -> str:
        """Return the summary in an answer. Raises SummaryFailed with what is wrong with it."""
        summary = self.verifier.verify(
            self._validate_answer(job, chunk, answer, call_prompt),
            previous=chunk.previous_summary,
            lines=chunk.lines,
            max_tokens=job.summary_tokens,
            may_grow=job.may_grow,
        )
        if not job.may_grow and len(summary) >= chunk.earlier_chars + chunk.characters:
            raise SummaryFailed("The summary is not smaller than what it replaces.")
        thinness = validation.find_thinness(
            summary,
            previous=chunk.previous_summary,
            source=source.DAY_HEADER.sub("", chunk.lines),
            may_shrink=job.options.rewrites_text or self._asks_to_shrink(job, chunk),
        )
        if thinness and validation.is_short(summary):
            raise Declined(thinness, has_begun=True, words=summary)
        if thinness:
            raise SummaryFailed(thinness)
        return summary

    def _asks_to_shrink(self, job: SummaryJob, chunk: _Chunk) -> bool:
        """Return whether the prompt asks for fewer words than the earlier summary has."""
        earlier_words = len((chunk.previous_summary or "").split())
        return self._limit_words(job, chunk) < earlier_words

    def _call_model(self, call_prompt: Prompt, *, is_probe: bool = False) -> CallResult:
        """Make one call and record it. Record a failed one too, because it may cost money.

        Raises NoAnswer.
        """
        self.progress.begin_call()
        call_prompt = self.log.begin_call(replace(call_prompt, report=self.progress.report))
        try:
            answer = call_summary_model(self.run.session_id, call_prompt)
        except Exception as error:
            self.log.end_call(call_prompt, None, error)  # it is paid for, too
            if not isinstance(error, CallFailed):
                raise
            self.was_accepted = error.was_accepted
            self._adapt_to_failure(error, call_prompt)
            failure = self.refused.build_failure(error)
            if error.is_final:
                self.final_failure = failure
            raise failure from None
        self.log.end_call(call_prompt, answer)
        self.was_accepted = True
        if answer.finish == "refusal" and not answer.text.strip():
            raise Filtered("The model declined to write the summary.")
        if is_probe:
            return answer
        learn_speed(self.model, read_times(answer))
        if answer.finish == "tool_calls":
            self._note_tool_call(call_prompt)
        text = validation.strip_thoughts(answer.text)
        is_cut = bool(text) and answer.finish == "length"
        is_short = len(text) * self.density < call_prompt.max_tokens / THOUGHT_SHARE
        is_counted_full = answer.output_tokens >= call_prompt.max_tokens
        is_full = answer.finish == "length" or is_counted_full
        # A server may say that an answer has ended where its own limit cut the thoughts.
        is_stopped = (
            answer.finish == "stop"
            and answer.thought_tokens >= call_prompt.max_tokens / STOPPED_THOUGHT_SHARE
        )
        is_thought = is_full and is_short and is_counted_full if text else is_full or is_stopped
        needs_room = is_thought or (is_cut and is_short)
        if needs_room:
            # It would spend as much of its output on reasoning for a shorter summary.
            self.spent_tokens = call_prompt.max_tokens
        if is_cut and not is_thought:  # thoughts are not counted: perhaps the server has a limit
            self.brevity *= 2
        if text and not needs_room:
            self.refused.note_answer(answer)
        return answer

    def _note_tool_call(self, call_prompt: Prompt) -> None:
        if call_prompt.reuses_cache:
            self.refused.note_tool_call()
        elif self.refused.note_invented_call():
            self.final_failure = SummaryFailed(ONLY_CALLS)

    def _validate_answer(
        self, job: SummaryJob, chunk: _Chunk, answer: CallResult, call_prompt: Prompt
    ) -> str:
        # A summary of summaries may repeat much of its text; one of messages must not.
        may_copy = job.options.rewrites_text
        instruction = summary_prompt.extract_instruction(
            call_prompt.text, correction=job.options.correction
        )
        summary = validation.extract_summary(
            answer,
            instruction=f"{call_prompt.system}\n{instruction}",
            transcript="" if may_copy else chunk.lines,
            headings=job.options.template.headings,
        )
        replaced_text = f"{chunk.previous_summary}\n{chunk.lines}"
        # What follows the summary in a request is no part of its code.
        summary = close_code_block(summary, source=replaced_text)
        return remove_unsaid_credentials(summary, replaced_text)

    def _build_prompt(self, job: SummaryJob, chunk: _Chunk) -> Prompt:
        max_words = self._limit_words(job, chunk)
        message_text = summary_prompt.build_message(
            replace(job.options, has_no_tools=self.refused.tells_of_no_tools),
            previous_summary=chunk.previous_summary,
            lines=chunk.lines,
            min_words=min(job.min_words, max_words // 2),
            max_words=max_words,
        )
        max_tokens = self.limit_call_tokens(job)
        prompt_tokens = self._estimate_tokens(message_text)
        return Prompt(
            system=summary_prompt.SYSTEM_PROMPT,
            text=message_text,
            max_tokens=max_tokens,
            temperature=self.temperature,
            model=self.model,
            timeout=self.pace.choose_deadline(prompt_tokens, max_tokens),
            first_word_seconds=self.pace.choose_first_wait(prompt_tokens),
        )

    def _follow_talk(self, call_prompt: Prompt, chunk: _Chunk) -> Prompt:
        """Return the prompt that continues the conversation itself, where that is due."""
        is_due = self.cache_reuse.is_due(
            transcript_tokens=self._estimate_tokens(call_prompt.text),
            answer_tokens=call_prompt.max_tokens,
            window=int(self.window * (1 - WINDOW_MARGIN)),
        )
        if not is_due:
            return call_prompt
        instruction = summary_prompt.remove_transcript(call_prompt.text)
        text = build_reuse_text(chunk.lines, instruction)
        return replace(call_prompt, text=text, reuses_cache=True)

    def _estimate_tokens(self, text: str) -> float:
        """Return about how many real tokens a message has, the fixed system text included."""
        characters = len(summary_prompt.SYSTEM_PROMPT) + len(text)
        return characters * self.density * self.token_ratio

    def _limit_words(self, job: SummaryJob, chunk: _Chunk) -> int:
        """Return the most words that fit the token limit and are shorter than the source."""
        token_limit = job.max_tokens
        addition = job.options.addition
        if addition and job.max_tokens > 2 * addition.tokens:
            token_limit -= addition.tokens
        half_of_source = chunk.characters // CHARS_PER_TOKEN_ESTIMATE * WORDS_PER_TOKEN / 2
        words = min(job.max_words, token_limit * WORDS_PER_TOKEN, half_of_source)
        return max(MIN_SUMMARY_WORDS, int(words / self.brevity))

    def _adapt_to_failure(self, error: CallFailed, call_prompt: Prompt) -> None:
        """Change what the retry does differently: no temperature, or a shorter chunk.

        The chunk is shortened by the provider's numbers where it gave any, and by half otherwise,
        also when the call did not end in time: the same call would not end either.
        """
        if error.temperature and self.temperature is not None:
            self.temperature = None
            self.refused.note_temperature()
        if error.needs_room:
            self.spent_tokens = call_prompt.max_tokens
        if error.seconds is not None:
            self.pace.note_timeout(
                prompt_tokens=self._estimate_tokens(call_prompt.text),
                answer_tokens=call_prompt.max_tokens,
                seconds=error.seconds,
            )
        if not error.too_long:
            return
        characters = len(call_prompt.system) + len(call_prompt.text)
        token_estimate = max(1.0, characters * self.density)
        token_ratio = error.tokens / token_estimate if error.tokens else self.token_ratio * 2
        self.token_ratio = max(token_ratio, self.token_ratio)
        self.window = min(error.window or self.window, self.window)


def _split_answer(answer: CallResult, addition: Addition) -> tuple[CallResult, str | None]:
    """Split an answer into the summary and the block that was added; None for no block.

    An answer that was cut off within its block holds a complete summary, so it counts as finished.
    """
    text, added_block = addition.split_answer(validation.strip_thoughts(answer.text))
    if answer.finish == "length" and added_block is not None and text:
        return replace(answer, text=text, finish="stop"), added_block
    return replace(answer, text=text), added_block
