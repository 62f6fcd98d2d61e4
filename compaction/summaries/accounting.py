"""Record what the calls of a run have used and cost."""

from collections.abc import Mapping
from decimal import Decimal
from itertools import count
from uuid import UUID

from django.db import transaction
from django.db.models import DecimalField, F, Value
from django.db.models.functions import Coalesce

from chatcore.base.databases.patience import store_patiently
from compaction.models import CompactionRun, ModelCall
from compaction.sessions.speed import CallTimes
from compaction.summaries.model_calls import CallResult


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

    The run's row is locked, so whoever deletes a message waits, and then finds this call.
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
