"""Read what a provider's own list of models says of them, where nobody else has said anything.

OpenRouter, vLLM, llama.cpp, Mistral, Groq, Together and Anthropic say more in `/models` than names,
each in its own words. Prices are left out: they are of many forms there.
"""

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from models_registry import catalog, comparison
from models_registry.catalog import CatalogModel
from models_registry.models import AiModel, Provider

MAX_TOKENS = 2**31 - 1
MAX_NAME_CHARS = AiModel._meta.get_field("name").max_length or 0
# Words in the names of models that answer nothing: they stand last where models are offered.
WORDS_OF_OTHERS = (
    "embed",
    "rerank",
    "whisper",
    "tts",
    "dall-e",
    "moderation",
    "transcribe",
    "image",
)
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


@dataclass(frozen=True, kw_only=True)
class OfferedModel:
    """A model of a provider's list that the registry has not; an unknown window is None.

    `is_for_chat` is False of one whose name says that it answers nothing, as an embedder's does.
    """

    name: str
    window: int | None
    is_for_chat: bool


def parse_row(row: Mapping[str, object]) -> dict[str, object]:
    """Return what a row of a list says of a model, by the fields of AiModel."""
    values: dict[str, object] = {}
    for field, places in PLACES.items():
        counts = (_find(row, place) for place in places)
        values[field] = next((count for count in counts if _is_count(count)), None)
    values["supports_tools"] = _parse_tools(row)
    values["supports_images"] = _parse_images(row)
    return {field: value for field, value in values.items() if value is not None}


def list_new_models(provider: Provider | None, rows: Iterable[object]) -> list[OfferedModel]:
    """Return the models of a list that the provider has not yet, those of the catalog first."""
    known_models = AiModel.objects.filter(provider=provider, is_active=True)
    known_names = set(known_models.values_list("name", flat=True)) if provider else set()
    offered: dict[str, OfferedModel] = {}
    catalog_names = set()
    for name, values in _parse_rows(rows).items():
        if name in known_names or not name or len(name) > MAX_NAME_CHARS:
            continue
        catalog_model = catalog.look_up_model(name)
        known_values = {**(catalog_model.values if catalog_model else {}), **values}
        offered[name] = OfferedModel(
            name=name,
            window=known_values.get("context_window_size"),
            is_for_chat=not any(word in name.lower() for word in WORDS_OF_OTHERS),
        )
        if catalog_model:
            catalog_names.add(name)

    def rank(model: OfferedModel) -> tuple[bool, bool, str]:
        return not model.is_for_chat, model.name not in catalog_names, model.name

    return sorted(offered.values(), key=rank)


def add_models(
    provider: Provider, names: Collection[str], rows: Sequence[object], *, date: datetime.date
) -> list[AiModel]:
    """Add those models of a provider's list that are named, and switch the provider on.

    A model that was switched off is switched on again.
    """
    listed_names = [model.name for model in list_new_models(provider, rows) if model.name in names]
    with transaction.atomic():
        models = [
            AiModel.objects.update_or_create(
                provider=provider, name=name, defaults={"is_active": True}
            )[0]
            for name in listed_names
        ]
        if models and not provider.is_active:
            provider.is_active = True
            provider.save(update_fields=["is_active"])
        fill_unknown_values(provider, rows, date=date)
    return models


def fill_unknown_values(provider: Provider, rows: Iterable[object], *, date: datetime.date) -> int:
    """Write what a list knows and the registry does not; return how many models changed.

    A model that learned something notes the list and the date, as it does of other lists.
    """
    values_by_name = _parse_rows(rows)
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


def _parse_rows(rows: Iterable[object]) -> dict[str, dict[str, object]]:
    """Return what a list says of each model, by the model's name."""
    return {
        row["id"].strip(): parse_row(row)
        for row in rows
        if isinstance(row, Mapping) and isinstance(row.get("id"), str)
    }


def _parse_tools(row: Mapping[str, object]) -> bool | None:
    names = row.get("supported_parameters")
    if isinstance(names, list):
        return "tools" in names
    return _get_flag(row, "capabilities.function_calling")


def _parse_images(row: Mapping[str, object]) -> bool | None:
    kinds = _find(row, "architecture.input_modalities")
    if isinstance(kinds, list):
        return "image" in kinds
    flag = _get_flag(row, "capabilities.vision")
    return _get_flag(row, "capabilities.image_input.supported") if flag is None else flag


def _get_flag(row: Mapping[str, object], place: str) -> bool | None:
    flag = _find(row, place)
    return flag if isinstance(flag, bool) else None


def _find(row: object, place: str) -> object:
    """Return the value at a path of names, or None."""
    for name in place.split("."):
        row = row.get(name) if isinstance(row, Mapping) else None
    return row


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_TOKENS
