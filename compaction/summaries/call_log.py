"""Note what is asked of the model in a run: each call with its request, answer and place."""

import json
import time
from dataclasses import dataclass, replace
from typing import Any

from compaction.core.stages.base import SummaryFailed
from compaction.models import CompactionRun, ModelCall, pack_text
from compaction.summaries.accounting import record_call
from compaction.summaries.model_calls import CallFailed, CallResult, CallTrace, Prompt
from compaction.summaries.refusals import count_refusal, name_refusal, store_refusal


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
            **{name: _clean(value) for name, value in facts.items()},
        )
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


def _clean(value: object) -> Any:
    """Return a text without the sign that PostgreSQL does not take."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
