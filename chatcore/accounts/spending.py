"""Tell apps of each call of a language model when it begins and when it ends, with its cost.

An app sees every call: those that run now, those whose client has left, and those of a process that
died, which never end. Prices are those of the registry at the time of the call.
"""

import asyncio
import datetime
import logging
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Self
from uuid import UUID

from django.db import DatabaseError, models, transaction
from django.utils import timezone

from chatcore.base.metrics import counts
from chatcore.base.rest.commits import NOTHING_STORED
from chatcore.base.threads import run_in_thread
from chatcore.context.compactor import get_compactor
from chatcore.extension import Refusal, get_extensions
from chatcore.models import Turn
from chatcore.providers.base import Request, StreamEnd, StreamPart, Usage
from chatcore.providers.errors import ProviderError, ProviderTimeout
from models_registry.models import AiModel
from models_registry.prices import Prices, TokenUse, find_prices

logger = logging.getLogger(__name__)

NO_SESSION = UUID(int=0)
UNKNOWN_OUTPUT_TOKENS = 4_096  # of an answer that neither its request nor its model bounds


class Purpose(models.TextChoices):
    """What a call is for."""

    ANSWER = "answer"
    SUMMARY = "summary"
    TITLE = "title"  # of a chat
    PASSED_ON = "passed_on", "passed on"  # embeddings and completions of another protocol


class CallRefused(Refusal):
    """A user may make no call now; the text is for the user, `reason` is its first part."""

    status = 429

    def __init__(self, reason: str, *, retry_after: int) -> None:
        super().__init__(f"{reason} {NOTHING_STORED}")
        self.reason = reason
        self.retry_after = retry_after


@dataclass(kw_only=True)
class Reservation:
    """A call that has begun: whose it is, the tokens that it may take, and what is held for it.

    `units` are what an app holds. `output_chars` and `usage` grow while the answer comes. As a
    context manager it is settled at the end of the block, however that ends (`end_call`).
    """

    owner_id: object
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        end_call(self, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Also for a client that has left, which closes the stream, or cancels its very end.
        await asyncio.shield(run_in_thread(end_call, self, error))


@dataclass(frozen=True, kw_only=True)
class CallEnd:
    """How a call has ended.

    Without a usage nobody has counted its tokens. `is_free`: the provider refused it before its
    first word. `turn` is that of a whole answer.
    """

    usage: Usage | None = None
    is_free: bool = False
    turn: Turn | None = None


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


def check_call(user_id: object) -> None:
    """Raise CallRefused if the user may make no call now."""
    for extension in get_extensions("check_call"):
        extension.check_call(user_id)


def reserve_call(
    owner_id: object,
    model: AiModel,
    purpose: str,
    expected: TokenUse,
    *,
    session_id: UUID = NO_SESSION,
    may_refuse: bool = True,
) -> Reservation:
    """Tell apps that a call begins.

    Raises CallRefused where one of them refuses it, unless it belongs to work that has begun.
    """
    reservation = Reservation(
        owner_id=owner_id,
        model=model,
        purpose=purpose,
        session_id=session_id,
        expected=expected,
        day=timezone.now().date(),
    )
    for extension in get_extensions("reserve_call"):
        extension.reserve_call(reservation, may_refuse=may_refuse)
    return reservation


def settle_call(
    reservation: Reservation, usage: Usage | None, *, turn: Turn | None = None
) -> Decimal | None:
    """Tell apps that a call has ended; return its cost, None if it is unknown.

    Inside a transaction what they record stands or falls with it.
    """
    _tell_end(reservation, CallEnd(usage=usage, turn=turn))
    transaction.on_commit(lambda: setattr(reservation, "is_settled", True))
    if usage is None:
        return None
    use, prices = read_use(reservation, usage)
    cost = prices.compute_cost(use) if prices else None
    if cost:
        amount, names = float(cost), (str(reservation.model), str(reservation.purpose))
        transaction.on_commit(lambda: counts.count_cost(*names, amount))
    return cost


def read_use(reservation: Reservation, usage: Usage) -> tuple[TokenUse, Prices | None]:
    """Return the tokens that a call took, and its model's prices for as many."""
    use = TokenUse(
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read or 0,
        cache_write=usage.cache_write or 0,
    )
    return use, find_prices(reservation.model, use.input)


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
            _tell_end(reservation, CallEnd(is_free=True))
            reservation.is_settled = True
        else:
            settle_call(reservation, reservation.usage)
    except DatabaseError:
        logger.warning("the usage of %s was not stored", reservation.model, exc_info=True)


def _tell_end(reservation: Reservation, end: CallEnd) -> None:
    for extension in get_extensions("settle_call"):
        extension.settle_call(reservation, end)
