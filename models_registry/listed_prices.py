"""What a million tokens cost, as genai-prices lists it for the vendors' models."""

from decimal import Decimal

from django.utils import timezone

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


def look_up_prices(provider: str, name: str) -> dict[str, object]:
    """Return the prices of a model by the fields of AiModel; nothing if the list lacks the model.

    The list belongs to the installed release of genai-prices; nothing is fetched. DeepSeek's prices
    depend on the hour; those of noon in UTC hold for most of a day.
    """
    # Imported here: with pydantic it takes 29 MB and 0.2 seconds, and only a sync needs it.
    from genai_prices import Usage, calc_price
    from genai_prices.types import TieredPrices

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


def _format_price(price: Decimal) -> str:
    """Return a price as the shortest decimal number, so that equal prices are equal texts."""
    return format(price.normalize(), "f")
