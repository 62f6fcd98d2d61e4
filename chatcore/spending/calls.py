"""Reserve what a call of a model may cost when it begins, and settle that at its end.

So a budget sees every call: those that run now, those whose client has left, and those of a process
that died, whose reservation stays.
"""

import datetime
import logging
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.utils import timezone

from chatcore.context.compactor import get_compactor
from chatcore.models.spending import NO_SESSION
from chatcore.providers.base import Request, StreamEnd, StreamPart, Usage
from chatcore.providers.errors import ProviderError, ProviderTimeout
from chatcore.sessions.token_estimate import estimate_tokens
from chatcore.spending import budgets, records
from chatcore.spending.records import NO_EXTRAS, CallExtras
from models_registry.models import AiModel
from models_registry.prices import TokenUse, find_prices

logger = logging.getLogger(__name__)

UNKNOWN_OUTPUT_TOKENS = 4_096  # of an answer that neither its request nor its model bounds


@dataclass(kw_only=True)
class Reservation:
    """A call that has begun: whose it is, the tokens that it may take, and what is held for it.

    `output_chars` and `usage` grow while the answer comes.
    """

    owner_id: Any
    model: AiModel
    purpose: str
    session_id: UUID = NO_SESSION
    expected: TokenUse
    day: datetime.date
    units: int = 0
    output_chars: int = 0
    usage: Usage | None = None
    is_settled: bool = False

    def note_part(self, part: StreamPart) -> None:
        """Note a part of the answer."""
        if isinstance(part, StreamEnd):
            self.usage = part.usage
        else:
            self.output_chars += len(part.text)


def expect_use(model: AiModel, request: Request, *, tokens: int | None = None) -> TokenUse:
    """Return the most tokens that a request may take; none for a model without a price.

    `tokens` is the estimated size of the request, if it is known already.
    """
    if find_prices(model, 0) is None:
        return TokenUse(input=0, output=0)
    if tokens is None:
        tokens = get_compactor().estimate_request(model, request)
    return TokenUse(input=tokens, output=bound_output(model, request.max_tokens))


def bound_output(model: AiModel, max_tokens: int | None) -> int:
    """Return the most tokens that an answer may have."""
    return max_tokens or model.max_output_tokens or UNKNOWN_OUTPUT_TOKENS


def reserve_call(
    owner_id: Any,
    model: AiModel,
    purpose: str,
    expected: TokenUse,
    *,
    session_id: UUID = NO_SESSION,
    may_refuse: bool = True,
) -> Reservation:
    """Hold what the call may cost, where a budget of the owner's counts it.

    Raises BudgetSpent if nothing is left of one, unless the call belongs to work that has begun.
    Whoever holds a budget's row is alone here, so of many calls at once only those are let in that
    begin with something left. Without budgets nothing is written and nobody waits.
    """
    reservation = Reservation(
        owner_id=owner_id,
        model=model,
        purpose=purpose,
        session_id=session_id,
        expected=expected,
        day=timezone.now().date(),
    )
    owner_budgets = budgets.select_budgets(owner_id)
    if budgets.has_budgets() and owner_budgets.exists():
        with transaction.atomic():
            locked_budgets = owner_budgets.select_for_update(of=("self",), no_key=True)
            states = budgets.read_states(locked_budgets)
            if may_refuse:
                budgets.refuse_spent(states)
            reservation.units = records.estimate_units(model, expected)
            _move_estimate(reservation, reservation.units)
    return reservation


def settle_call(
    reservation: Reservation, usage: Usage | None, *, extras: CallExtras = NO_EXTRAS
) -> Decimal | None:
    """Record a call that has ended in place of its reservation; return its cost, None if unknown.

    Where nobody counted its tokens, an estimate is kept of what was sent and of what has come.
    Inside a transaction the record stands or falls with it.
    """
    kept_units = 0
    if usage is None:
        output_tokens = estimate_tokens(reservation.output_chars)
        use = TokenUse(input=reservation.expected.input, output=output_tokens)
        kept_units = records.estimate_units(reservation.model, use)
    cost = records.record_call(
        reservation.owner_id,
        reservation.model,
        reservation.purpose,
        usage,
        session_id=reservation.session_id,
        day=reservation.day,
        extras=extras,
        estimated_units=kept_units - reservation.units,
    )
    transaction.on_commit(lambda: setattr(reservation, "is_settled", True))
    return cost


def end_call(reservation: Reservation, error: BaseException | None = None) -> None:
    """Settle a call whose answer is not stored, if it is not settled yet.

    A provider that refuses before its first word is paid nothing. It never fails: whoever comes
    here has an error to tell, or an answer that was paid for.
    """
    if reservation.is_settled:
        return
    is_refused = isinstance(error, ProviderError) and not isinstance(error, ProviderTimeout)
    try:
        if is_refused and not reservation.output_chars and reservation.usage is None:
            _move_estimate(reservation, -reservation.units)
            reservation.is_settled = True
        else:
            settle_call(reservation, reservation.usage)
    except DatabaseError:
        logger.warning("the usage of %s was not stored", reservation.model, exc_info=True)


def _move_estimate(reservation: Reservation, units: int) -> None:
    if units:
        records.add_estimate(
            reservation.owner_id,
            reservation.model,
            reservation.purpose,
            session_id=reservation.session_id,
            day=reservation.day,
            units=units,
        )
