"""Note what is asked of the model in a run: each call with its request, answer and place."""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import DecimalField, F, Value
from django.db.models.functions import Coalesce

from chatcore.base.databases.outages import store_patiently
from chatcore.base.metrics import counts
from compaction.core.summary import SummaryFailed
from compaction.models import CompactionRun, ModelCall, pack_text
from compaction.summaries.model_calls import CallFailed, CallResult, CallTrace, Prompt
from compaction.summaries.pace import CallTimes

logger = logging.getLogger(__name__)


class SummaryMissing(SummaryFailed):
    """An answer that holds what was asked for behind the summary, and no summary."""

    def __init__(self, added_block: str) -> None:
        super().__init__("The model wrote only how the state changes, and no summary.")
        self.added_block = added_block


class NoAnswer(SummaryFailed):
    """The model did not answer at all."""


class Throttled(NoAnswer):
    """The provider takes no more requests, for `retry_after` seconds where it says so."""

    def __init__(self, reason: str, *, retry_after: float | None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Filtered(NoAnswer):
    """A filter of the provider refuses what the messages say."""


class Refused(NoAnswer):
    """The provider refuses the request, in words that do not say what is wrong with it."""


class Declined(SummaryFailed):
    """The model wrote nothing, or that it does not want to: perhaps because of some message.

    `has_begun` if there is some text. `words` is that text, where nothing but its contents says
    that it is a refusal.
    """

    def __init__(self, reason: str, *, has_begun: bool, words: str = "") -> None:
        super().__init__(reason)
        self.has_begun = has_begun
        self.words = words


class ProviderBusy(Exception):
    """The provider takes no call for `seconds`: the run is to be executed then."""

    def __init__(self, reason: str, *, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class UntrueSummary(SummaryFailed):
    """A summary says what no message supports, and could not be repaired."""


REASONS: dict[type[SummaryFailed], str] = {
    NoAnswer: ModelCall.Refusal.NO_ANSWER,
    Throttled: ModelCall.Refusal.NO_ANSWER,
    Filtered: ModelCall.Refusal.NO_ANSWER,
    Refused: ModelCall.Refusal.NO_ANSWER,
    SummaryMissing: ModelCall.Refusal.STATE_ONLY,
    UntrueSummary: ModelCall.Refusal.UNTRUE,
}


def name_refusal(error: SummaryFailed) -> str:
    """Return in one word why an answer is not used."""
    return str(REASONS.get(type(error), ModelCall.Refusal.NONSENSE))


def count_refusal(error: SummaryFailed) -> None:
    """Count an answer that is not used, for those who watch an installation."""
    counts.count_refused_summary(name_refusal(error))


def store_refusal(run: CompactionRun, number: int, refusal: str, reason: str) -> None:
    """Store with a call why its answer is not used. Where that fails, the run goes on.

    The reason may quote the answer, so it is not stored if a message was deleted meanwhile.
    """
    calls = ModelCall.objects.filter(run=run, number=number)
    try:
        calls.update(refusal=refusal)
        calls.exclude(answer=None).update(reason=reason)
    except DatabaseError:
        logger.warning("why a summary was refused was not stored", exc_info=True)


def record_call(run: CompactionRun, answer: CallResult | None, call: ModelCall) -> int | None:
    """Store a call, and add its tokens and cost to the run; None for a call without an answer.

    Returns the call's number in the run, or None if the run was deleted with its session.

    This is written at once, and without checking the claim: what was spent is spent, also when
    another worker has taken the run over meanwhile. The sums are made in the database, because
    both workers may add to them.
    """
    fields: dict[str, object] = {"provider_calls": F("provider_calls") + 1}
    if answer is not None:
        fields |= {
            "model": answer.model,
            "input_tokens": F("input_tokens") + answer.input_tokens,
            "cached_tokens": F("cached_tokens") + answer.cached_tokens,
            "output_tokens": F("output_tokens") + answer.output_tokens,
        }
        if answer.cost is not None:
            earlier_cost = Coalesce("cost", Value(Decimal(0)), output_field=DecimalField())
            fields["cost"] = earlier_cost + answer.cost
    while (number := _store_once(run.pk, fields, call)) == 0:
        pass
    return number


def _store_once(run_id: UUID, fields: Mapping[str, object], call: ModelCall) -> int | None:
    """Store the call and the fields; return its number, and 0 if another worker counted a call.

    A commit may have been made although it was not confirmed. The number of calls, which each call
    changes, keeps the next attempt from adding the same cost again. None: the run is deleted.
    """
    stored_run = CompactionRun.objects.filter(pk=run_id)
    call_count = store_patiently(stored_run.values_list("provider_calls", flat=True).first)
    if call_count is None:
        return None  # deleted with its session
    call.number = call_count + 1
    attempts = count()

    def store() -> bool:
        is_retry = next(attempts) > 0
        with transaction.atomic():
            if stored_run.filter(provider_calls=call_count).update(**fields):
                _insert_call(call)
                return True
        return is_retry

    return call.number if store_patiently(store) else 0


def _insert_call(call: ModelCall) -> None:
    """Insert the call, without its texts if a message was deleted meanwhile.

    The run's row is locked, so a process that deletes a message waits, and then finds this call.
    """
    runs = CompactionRun.objects.filter(pk=call.run_id)
    if not runs.values_list("keeps_words", flat=True).get():
        call.request = call.answer = None
        call.reason = ""
    call.pk = None
    call.save(force_insert=True)


def read_times(answer: CallResult) -> CallTimes:
    """Return how long the two parts of a call took, and how many tokens they had."""
    return CallTimes(
        prompt_tokens=answer.input_tokens - answer.cached_tokens,
        prompt_seconds=answer.prompt_seconds,
        answer_tokens=answer.output_tokens,
        answer_seconds=answer.answer_seconds,
    )


@dataclass(frozen=True, kw_only=True)
class CallPlace:
    """Where a series of calls stands in the tree of a run's calls."""

    kind: str = ModelCall.Kind.MESSAGES
    level: int = 0


FROM_MESSAGES = CallPlace()


class CallLog:
    """The calls of one run by this worker. Nothing of it decides how the run goes on."""

    def __init__(self, run: CompactionRun) -> None:
        self.run = run
        self._part = 0
        self._attempt = 0
        self._number: int | None = None
        self._place = FROM_MESSAGES
        self._trace = CallTrace()
        self._start = 0.0

    def begin_part(self, place: CallPlace) -> None:
        """Begin the next part; all attempts at it follow."""
        self._part += 1
        self._attempt = 0
        self._place = place

    def begin_call(self, prompt: Prompt) -> Prompt:
        """Begin an attempt at the part; return the prompt, with which it is to be made."""
        self._attempt += 1
        self._number = None
        self._trace = CallTrace()
        self._start = time.perf_counter()
        return replace(prompt, trace=self._trace)

    def end_call(
        self, prompt: Prompt, answer: CallResult | None, error: Exception | None = None
    ) -> None:
        """Store the call with what it used and cost. One that failed may cost money, too."""
        if answer is None:
            facts: dict[str, object] = {
                "model": prompt.model,
                "refusal": ModelCall.Refusal.NO_ANSWER,
                # An error of any other kind ends the run, which says why.
                "reason": str(error) if isinstance(error, CallFailed) else "It was stopped.",
                "seconds": time.perf_counter() - self._start,
            }
        else:
            facts = {
                "model": answer.model,
                "finish": answer.finish,
                "input_tokens": answer.input_tokens,
                "cached_tokens": answer.cached_tokens,
                "output_tokens": answer.output_tokens,
                "cost": answer.cost,
                "seconds": answer.prompt_seconds + answer.answer_seconds,
                "first_word_seconds": answer.prompt_seconds,
            }
        call = ModelCall(
            run=self.run,
            claim=self.run.attempts,
            kind=self._place.kind,
            level=self._place.level,
            part=self._part,
            attempt=self._attempt,
            request=self._trace.take_request() or pack_text(_describe_prompt(prompt)),
            answer=pack_text(self._trace.answer or (answer.text if answer else "")),
        )
        for name, value in facts.items():
            setattr(call, name, _clean(value) if isinstance(value, str) else value)
        self._number = record_call(self.run, answer, call)

    def refuse_answer(self, error: SummaryFailed) -> None:
        """Note why the newest answer is not used."""
        count_refusal(error)
        refusal = name_refusal(error)
        if self._number is not None and refusal != ModelCall.Refusal.NO_ANSWER:
            store_refusal(self.run, self._number, refusal, _clean(error.reason))


def _describe_prompt(prompt: Prompt) -> str:
    """Return the call as it was asked, where nothing was sent."""
    names = ("model", "system", "text", "max_tokens", "temperature")
    return json.dumps({name: getattr(prompt, name) for name in names}, ensure_ascii=False)


def _clean(text: str) -> str:
    """Return a text without the sign that PostgreSQL does not take."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
