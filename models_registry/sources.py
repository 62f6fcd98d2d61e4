"""Read windows and abilities from models.dev, a maintained list of language models.

Its file `api.json` holds, for each provider, its models with `limit` (tokens), `tool_call` and
`modalities`. Nothing is guessed: what the list does not say stays as it is.
"""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models_registry.catalog import CatalogModel

MODELS_DEV = "https://models.dev/api.json"
MAX_BYTES = 50_000_000
TIMEOUT_SECONDS = 60
# How models.dev calls a provider of our catalog, where it has another name.
PROVIDER_NAMES = {"gemini": "google", "together": "togetherai", "bedrock": "amazon-bedrock"}


class SourceUnreadable(Exception):
    """The list could not be fetched, or is not one; the text says why."""


def load_models_dev(place: str = MODELS_DEV) -> object:
    """Return the content of `api.json` from an address or a file. Raises SourceUnreadable."""
    try:
        if place.startswith(("http://", "https://")):
            content = _fetch(place)
        else:
            content = Path(place).read_bytes()
    except (OSError, ValueError) as error:
        raise SourceUnreadable(f"{place} could not be read: {error}") from None
    return parse_json(content, place)


def parse_json(content: bytes, place: str) -> object:
    """Return what a file at `place` says. Raises SourceUnreadable if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SourceUnreadable(f"{place} could not be read: {error}") from None


def parse_models_dev(data: object, provider_names: list[str]) -> list[CatalogModel]:
    """Return the models of these providers, with what the list says of each.

    Raises SourceUnreadable if the list has another form.
    """
    if not isinstance(data, Mapping):
        raise SourceUnreadable("The list is not an object of providers.")
    try:
        return [
            CatalogModel(provider=name, name=model_name, values=_parse_values(row))
            for name in provider_names
            for model_name, row in _list_models(data, name).items()
        ]
    except (AttributeError, TypeError) as error:
        raise SourceUnreadable(f"The list has another form than expected: {error!r}") from None


def _fetch(address: str) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": "chatcore"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
        content: bytes = response.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("it is too large")
    return content


def _list_models(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    models: Mapping[str, object] = data.get(PROVIDER_NAMES.get(name, name), {}).get("models", {})
    return models


def _parse_values(row: Mapping[str, Any]) -> dict[str, Any]:
    limit = row.get("limit", {})
    values: dict[str, object] = {
        "context_window_size": limit.get("context") or None,
        "max_input_tokens": limit.get("input") or None,
        "max_output_tokens": limit.get("output") or None,
        "supports_tools": row.get("tool_call"),
    }
    inputs = row.get("modalities", {}).get("input")
    if inputs is not None:
        values["supports_images"] = "image" in inputs
    return {field: value for field, value in values.items() if value is not None}
