"""Read what a provider's own list of models says of them, where nobody else has said anything.

OpenRouter, vLLM, llama.cpp, Mistral, Groq, Together and Anthropic say more in `/models` than names,
each in its own words. Prices are left out: they are of many forms there.
"""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from models_registry import comparison
from models_registry.catalog import CatalogModel
from models_registry.models import AiModel, Provider

MAX_TOKENS = 2**31 - 1
# By field: where the lists have it, the most telling place first. `n_ctx` is what a llama.cpp
# server was started with; what its model was trained for does not count.
PLACES: dict[str, tuple[str, ...]] = {
    "context_window_size": (
        "top_provider.context_length",
        "context_length",
        "max_model_len",
        "meta.n_ctx",
        "context_window",
        "max_context_length",
        "max_input_tokens",
    ),
    "max_output_tokens": (
        "top_provider.max_completion_tokens",
        "max_completion_tokens",
        "max_tokens",
    ),
}


def parse_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row of a list says of a model, by the fields of AiModel."""
    values: dict[str, Any] = {}
    for field, places in PLACES.items():
        counts = (_find(row, place) for place in places)
        values[field] = next((count for count in counts if _is_count(count)), None)
    values["supports_tools"] = _parse_tools(row)
    values["supports_images"] = _parse_images(row)
    return {field: value for field, value in values.items() if value is not None}


def fill_unknown_values(provider: Provider, rows: Iterable[Any], *, date: datetime.date) -> int:
    """Write what a list knows and the registry does not; return how many models changed.

    A model that learned something notes the list and the date, as it does of other lists.
    """
    values_by_name = {
        str(row.get("id")): parse_row(row) for row in rows if isinstance(row, Mapping)
    }
    news = []
    for model in AiModel.objects.filter(provider=provider):
        values = {
            field: value
            for field, value in values_by_name.get(model.name, {}).items()
            if getattr(model, field) is None
        }
        if values:
            news.append(CatalogModel(provider=provider.name, name=model.name, values=values))
    if not news:
        return 0
    return comparison.write_values(news, source=f"the list of {provider.name}", date=date)


def _parse_tools(row: Mapping[str, Any]) -> bool | None:
    names = row.get("supported_parameters")
    if isinstance(names, list):
        return "tools" in names
    return _get_flag(row, "capabilities.function_calling")


def _parse_images(row: Mapping[str, Any]) -> bool | None:
    kinds = _find(row, "architecture.input_modalities")
    if isinstance(kinds, list):
        return "image" in kinds
    flag = _get_flag(row, "capabilities.vision")
    return _get_flag(row, "capabilities.image_input.supported") if flag is None else flag


def _get_flag(row: Mapping[str, Any], place: str) -> bool | None:
    flag = _find(row, place)
    return flag if isinstance(flag, bool) else None


def _find(row: Any, place: str) -> Any:
    """Return the value at a path of names, or None."""
    for name in place.split("."):
        row = row.get(name) if isinstance(row, Mapping) else None
    return row


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_TOKENS
