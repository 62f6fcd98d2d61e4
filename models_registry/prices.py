"""Compute what a call of a language model costs, by the prices of its row in the registry."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.utils import timezone

if TYPE_CHECKING:
    from models_registry.models import AiModel

logger = logging.getLogger(__name__)


# How the list calls a provider of the catalog, where it has another name.
PROVIDER_IDS = {"gemini": "google"}
# By our word: the list's.
KINDS = {
    "input": "input_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "output": "output_mtok",
}
FIELDS = frozenset({*(f"{kind}_price" for kind in KINDS), "price_tiers"})

PRICED_TOKENS = 1_000_000  # a price is for so many tokens
TIER_PRICES = ("input", "cached_input", "cache_write", "output")


def look_up_prices(provider: str, name: str) -> dict[str, object]:
    """Return the prices of a model by the fields of AiModel; nothing if the list lacks the model.

    The list belongs to the installed release of genai-prices; nothing is fetched. DeepSeek's prices
    depend on the hour; those of noon in UTC hold for most of a day.
    """
    # Imported here: with pydantic it takes 29 MB and 0.2 seconds, and only a sync needs it.
    try:
        from genai_prices import Usage, calc_price
        from genai_prices.types import TieredPrices
    except ModuleNotFoundError:
        _log_missing_list()
        return {}

    noon = timezone.now().replace(hour=12, minute=0)
    provider_id = PROVIDER_IDS.get(provider, provider)
    try:
        found = calc_price(Usage(), name, provider_id=provider_id, genai_request_timestamp=noon)
    except LookupError:
        return {}
    values: dict[str, object] = {}
    tiers: dict[int, dict[str, str]] = {}
    for kind, listed_name in KINDS.items():
        price = getattr(found.model_price, listed_name)
        if isinstance(price, TieredPrices):
            for tier in price.tiers:
                tiers.setdefault(tier.start, {})[kind] = _format_price(tier.price)
            price = price.base
        values[f"{kind}_price"] = None if price is None else _format_price(price)
    values["price_tiers"] = [{"above": size, **tiers[size]} for size in sorted(tiers)]
    return values


@cache
def _log_missing_list() -> None:
    logger.warning(
        "Prices of models are not known here: pip install 'chatcore[prices]' brings the list."
    )


def _format_price(price: Decimal) -> str:
    """Return a price as the shortest decimal number, so that equal prices are equal texts."""
    return format(price.normalize(), "f")


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
