"""Record what a call of a language model used and cost, when it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from chatcore.accounts.spending import CallEnd, Reservation, read_use
from chatcore.base.token_estimate import estimate_tokens
from chatcore.context import recalled
from chatcore.contrib.budgets.models import COST_UNIT, UsageSum
from chatcore.contrib.budgets.sums import SUMMED_FIELDS
from chatcore.models import Message, Session, Turn
from chatcore.models.statements import adapt_uuid
from models_registry.models import AiModel
from models_registry.prices import Prices, TokenUse, compute_cost

_KEYS = ("owner_id", "session", "day", "model", "purpose")


@dataclass(frozen=True, kw_only=True)
class CallExtras:
    """Estimated tokens of a request that recall brought back, and that summaries spared it."""

    recalled_tokens: int = 0
    spared_tokens: int = 0


NO_EXTRAS = CallExtras()


def describe_answer(turn: Turn) -> CallExtras:
    """Return what recall brought to a turn's request, and what the summary spared it."""
    return CallExtras(
        recalled_tokens=sum(passage.tokens for passage in recalled.list_passages(turn.recalled)),
        spared_tokens=estimate_spared_tokens(turn.session),
    )


def settle_call(call: Reservation, end: CallEnd) -> None:
    """Add a call that has ended to the sum of its owner, session, day, model and purpose.

    What was held for it goes. Where nobody counted its tokens, an estimate is kept of what was sent
    and of what has come; such a call, or one without a price, has an unknown cost.
    """
    if end.is_free:
        move_estimate(call, -call.units)
        return
    use, prices, kept_units = TokenUse(input=0, output=0), None, 0
    if end.usage is None:
        sent_and_come = TokenUse(
            input=call.expected.input, output=estimate_tokens(call.output_chars)
        )
        kept_units = estimate_units(call.model, sent_and_come)
    else:
        use, prices = read_use(call, end.usage)
    extras = describe_answer(end.turn) if end.turn else NO_EXTRAS
    values = {
        "calls": 1,
        "unpriced_calls": 0 if prices else 1,
        "input_tokens": use.input,
        "cache_read_tokens": use.cache_read,
        "cache_write_tokens": use.cache_write,
        "output_tokens": use.output,
        "recalled_tokens": extras.recalled_tokens,
        "spared_tokens": extras.spared_tokens,
        "estimated_units": kept_units - call.units,
        **(_compute_units(call.model, prices, use, extras) if prices else {}),
    }
    _add_to_sum(_list_keys(call), values)


def move_estimate(call: Reservation, units: int) -> None:
    """Add to what calls that nobody has counted yet may cost, or take it off again."""
    if units:
        _add_to_sum(_list_keys(call), {"estimated_units": units})


def _list_keys(call: Reservation) -> tuple[object, ...]:
    return (call.owner_id, call.session_id, call.day, str(call.model), str(call.purpose))


def estimate_units(model: AiModel, use: TokenUse) -> int:
    """Return what a call may cost, in units; none where a price is unknown."""
    return _to_units(compute_cost(model, use) or Decimal(0))


def estimate_spared_tokens(session: Session) -> int:
    """Return the estimated tokens of the messages that the session's summary stands for.

    The summary's own tokens are taken off. The messages are added up once for each boundary.
    """
    boundary_seq = session.compact_boundary_seq
    if not boundary_seq:
        return 0
    message_tokens = _sum_tokens_before(session.pk, boundary_seq, session.context_version)
    summary_tokens = estimate_tokens(len(session.compacted_summary or ""))
    return max(0, message_tokens - summary_tokens)


@lru_cache(maxsize=4096)
def _sum_tokens_before(session_id: UUID, boundary_seq: int, _version: int) -> int:
    messages = Message.objects.filter(session_id=session_id, seq__lt=boundary_seq, branch=None)
    return messages.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0


def _compute_units(
    model: AiModel, prices: Prices, use: TokenUse, extras: CallExtras
) -> dict[str, int]:
    """Return the cost of a call, the part for recall, and both savings, in units.

    Spared tokens are counted up to what the model's window would have taken. Where the call read
    from a cache, most of them would have come from it too, so they have its price.
    """
    plain_cost = prices.compute_cost(TokenUse(input=use.input, output=use.output))
    cost = prices.compute_cost(use)
    spared_tokens = extras.spared_tokens
    if model.request_limit:
        spared_tokens = max(0, min(spared_tokens, model.request_limit - use.input))
    spared_price = prices.cached_input if use.cache_read else prices.input
    return {
        "cost_units": _to_units(cost),
        "recall_units": _to_units(extras.recalled_tokens * prices.input / 1_000_000),
        "cache_saving_units": _to_units(plain_cost - cost),
        "summary_saving_units": _to_units(spared_tokens * spared_price / 1_000_000),
    }


def _to_units(cost: Decimal) -> int:
    return int(cost / COST_UNIT)


def _add_to_sum(keys: Sequence[object], values: Mapping[str, int]) -> None:
    """Add the values to the row with these keys, in the order of _KEYS; create it if need be.

    By hand, because one statement does it under any number of writers, and the ORM needs two.
    """
    table = UsageSum._meta.db_table
    names = ", ".join((*_KEYS, *SUMMED_FIELDS))
    placeholders = ", ".join(["%s"] * (len(_KEYS) + len(SUMMED_FIELDS)))
    additions = ", ".join(f"{name} = {table}.{name} + EXCLUDED.{name}" for name in SUMMED_FIELDS)
    statement = f"""
        INSERT INTO {table} ({names})
        VALUES ({placeholders})
        ON CONFLICT (session, day, model, purpose, owner_id) DO UPDATE SET {additions}
    """  # noqa: S608
    parameters = [*keys, *(values.get(name, 0) for name in SUMMED_FIELDS)]
    with connection.cursor() as cursor:
        cursor.execute(statement, [_adapt_value(value) for value in parameters])


def _adapt_value(value: object) -> Any:
    return adapt_uuid(value) if isinstance(value, UUID) else value
