"""Record what the calls of a run have used and cost."""

from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

from django.db.models import DecimalField, F, Value
from django.db.models.functions import Coalesce

from compaction.backends.calls import CallResult
from compaction.models import CompactionRun
from compaction.patience import store_patiently
from compaction.sizing.speed import CallTimes


def record_call(run: CompactionRun, answer: CallResult | None) -> None:
    """Add the tokens and the cost of a call to the run; None for a call without an answer.

    This is written at once, and without checking the claim: what was spent is spent, also when
    another worker has taken the run over meanwhile. The sums are made in the database, because
    both workers may add to them.
    """
    fields: dict[str, Any] = {"provider_calls": F("provider_calls") + 1}
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
    while not _store_once(run.pk, fields):
        pass


def _store_once(run_id: UUID, fields: dict[str, Any]) -> bool:
    """Store the fields; return False if another worker counted a call meanwhile.

    A commit may have been made although it was not confirmed. The number of calls, which each call
    changes, keeps the next attempt from adding the same cost again.
    """
    stored_run = CompactionRun.objects.filter(pk=run_id)
    call_count = store_patiently(stored_run.values_list("provider_calls", flat=True).first)
    if call_count is None:
        return True  # deleted with its session
    attempts = count()

    def store() -> bool:
        is_retry = next(attempts) > 0
        return bool(stored_run.filter(provider_calls=call_count).update(**fields)) or is_retry

    return store_patiently(store)


def read_times(answer: CallResult) -> CallTimes:
    """Return how long the two parts of a call took, and how many tokens they had."""
    return CallTimes(
        prompt_tokens=answer.input_tokens - answer.cached_tokens,
        prompt_seconds=answer.prompt_seconds,
        answer_tokens=answer.output_tokens,
        answer_seconds=answer.answer_seconds,
    )
