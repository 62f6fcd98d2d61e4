"""Compute what a call of a language model costs, by the prices of its row in the registry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from models_registry.models import AiModel

PRICED_TOKENS = 1_000_000  # a price is for so many tokens
TIER_PRICES = ("input", "cached_input", "cache_write", "output")


@dataclass(frozen=True, kw_only=True)
class TokenUse:
    """The tokens of one call. `input` includes those read from a cache and written to one."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a million tokens cost in a call. A cache without prices of its own costs as input."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    cache_write: Decimal

    def compute_cost(self, use: TokenUse) -> Decimal:
        """Return what a call costs, exactly."""
        plain_input = use.input - use.cache_read - use.cache_write
        total = (
            plain_input * self.input
            + use.cache_read * self.cached_input
            + use.cache_write * self.cache_write
            + use.output * self.output
        )
        return total / PRICED_TOKENS


def find_prices(model: "AiModel", input_tokens: int) -> Prices | None:
    """Return the model's prices for a request of so many tokens; None where a price is unknown.

    Of the tiers whose size the request exceeds, the one with the largest size counts. A price that
    a tier does not name is that of the model.
    """
    prices = {
        "input": model.input_price,
        "cached_input": model.cached_input_price,
        "cache_write": model.cache_write_price,
        "output": model.output_price,
    }
    for tier in sorted(model.price_tiers, key=lambda tier: int(tier["above"])):
        if input_tokens > tier["above"]:
            prices |= {name: Decimal(tier[name]) for name in TIER_PRICES if name in tier}
    if prices["input"] is None or prices["output"] is None:
        return None
    return Prices(
        input=prices["input"],
        output=prices["output"],
        cached_input=_first_known(prices["cached_input"], prices["input"]),
        cache_write=_first_known(prices["cache_write"], prices["input"]),
    )


def compute_cost(model: "AiModel", use: TokenUse) -> Decimal | None:
    """Return what a call of the model costs; None where a price is unknown."""
    prices = find_prices(model, use.input)
    return prices.compute_cost(use) if prices else None


def validate_price_tiers(value: object) -> None:
    """Refuse tiers that are not a list of `{"above": tokens, "input": "2.50", …}`."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValidationError("Price tiers are a list.")
    for position, tier in enumerate(value, start=1):
        _validate_tier(position, tier)


def _validate_tier(position: int, tier: object) -> None:
    if not isinstance(tier, Mapping):
        raise ValidationError(f"Tier {position} is not an object.")
    unknown_names = sorted(set(tier) - {"above", *TIER_PRICES})
    if unknown_names:
        raise ValidationError(f"Tier {position}: {unknown_names[0]!r} is no price.")
    size = tier.get("above")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValidationError(f'Tier {position}: "above" is a number of tokens, at least 1.')
    for name in TIER_PRICES:
        if name in tier and not _is_price(tier[name]):
            raise ValidationError(f'Tier {position}: "{name}" is a price, as in "2.50".')


def _is_price(value: object) -> bool:
    try:
        price = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        return False
    return price.is_finite() and price >= 0


def _first_known(price: Decimal | None, fallback: Decimal) -> Decimal:
    return fallback if price is None else price
