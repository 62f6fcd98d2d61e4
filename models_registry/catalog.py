"""What is known of well-known language models, and how it gets into the registry without ever overwriting an operator."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps as installed_apps
from django.db import transaction
from django.db.models import Field

CATALOG_PATH = Path(__file__).with_name("catalog.json")

# What may follow a model's name and still mean that model: an alias, a snapshot's date, a route of a reseller.
# Not a word or a version: gpt-4.1 is not gpt-4, and gemini-2.5-flash-image has another window than gemini-2.5-flash.
_SNAPSHOT_SUFFIX = re.compile(r"[@:].+|-latest|-((preview|exp)-)?(\d{4}(-?\d{2}){0,2}|\d{2}-\d{2})")


@dataclass(frozen=True, kw_only=True)
class CatalogModel:
    """One model of the catalog. `values` are fields of AiModel, without those that are unknown."""

    provider: str
    name: str
    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The whole file: providers by name, as fields of Provider, and models in the order in which they are offered."""

    providers: dict[str, dict[str, Any]]
    models: tuple[CatalogModel, ...]


@cache
def load_catalog() -> Catalog:
    """Read catalog.json, where every value stands beside the key of its source."""
    data = json.loads(CATALOG_PATH.read_text())
    providers = {
        row["name"]: {field: value for field, value in row.items() if field != "name"}
        for row in data["providers"]
    }
    return Catalog(providers=providers, models=tuple(_parse_model(row) for row in data["models"]))


def look_up_model(name: str) -> CatalogModel | None:
    """The model called `name`, or else the longest name that it is a snapshot, an alias or a route of; None when unknown."""
    candidates = [
        model
        for model in load_catalog().models
        if model.name == name or _is_snapshot(name, model.name)
    ]
    return max(candidates, key=lambda model: len(model.name), default=None)


def sync(apps: Any = installed_apps, using: str = "default") -> int:
    """Bring the registry up to the catalog; returns how many rows were made or changed. Idempotent.

    A value that differs from what the catalog last wrote is an operator's and stays. A provider is switched on when it has a key,
    and off again when the key goes, unless an operator decided. Deleted rows come back; switching them off is what lasts.
    `apps` is a registry of models, which may be a migration's.
    """
    provider_model, model_model = (
        apps.get_model("models_registry", "Provider"),
        apps.get_model("models_registry", "AiModel"),
    )
    providers, models = provider_model.objects.using(using), model_model.objects.using(using)
    catalog = load_catalog()
    with transaction.atomic(using=using):
        active_names = _find_providers_with_key(providers, catalog)
        provider_values = {
            (name,): {**values, "is_active": name in active_names}
            for name, values in catalog.providers.items()
        }
        change_count = _merge_rows(providers, ("name",), provider_values)
        provider_ids = dict(providers.values_list("name", "pk"))
        model_values = {
            (provider_ids[model.provider], model.name): model.values for model in catalog.models
        }
        return change_count + _merge_rows(models, ("provider_id", "name"), model_values)


def _parse_model(row: Mapping[str, Any]) -> CatalogModel:
    values = {
        field: value_and_source[0]
        for field, value_and_source in row.items()
        if field not in {"provider", "name"} and value_and_source
    }
    return CatalogModel(provider=row["provider"], name=row["name"], values=values)


def _is_snapshot(name: str, model_name: str) -> bool:
    return (
        name.startswith(model_name)
        and _SNAPSHOT_SUFFIX.fullmatch(name, len(model_name)) is not None
    )


def _find_providers_with_key(providers: Any, catalog: Catalog) -> set[str]:
    """Names of the providers that have a key: a stored one, or the value of the environment variable that their row names."""
    variables = {name: values["api_key_env"] for name, values in catalog.providers.items()}
    variables |= dict(providers.values_list("name", "api_key_env"))
    names = set(providers.exclude(encrypted_api_key="").values_list("name", flat=True))
    return names | {
        name for name, variable in variables.items() if variable and os.environ.get(variable)
    }


def _merge_rows(
    rows: Any, key_fields: tuple[str, ...], values_by_key: Mapping[tuple[Any, ...], dict[str, Any]]
) -> int:
    """Create what is missing, and update what no operator touched. Returns how many rows that were."""
    rows_by_key = {tuple(getattr(row, name) for name in key_fields): row for row in rows.all()}
    new_rows = [
        rows.model(**dict(zip(key_fields, identity, strict=True)))
        for identity in values_by_key
        if identity not in rows_by_key
    ]
    for row in new_rows:
        _write_values(
            row, values_by_key[tuple(getattr(row, name) for name in key_fields)], is_new=True
        )
    updates = [
        rows_by_key[identity]
        for identity in values_by_key
        if identity in rows_by_key
        and _write_values(rows_by_key[identity], values_by_key[identity], is_new=False)
    ]
    rows.bulk_create(new_rows, ignore_conflicts=True)  # another process may be doing the same
    if updates:
        rows.bulk_update(updates, sorted({"catalog_values"}.union(*values_by_key.values())))
    return len(new_rows) + len(updates)


def _write_values(row: Any, values: Mapping[str, Any], *, is_new: bool) -> bool:
    """Set the values on the row where the catalog still has the say; whether anything changed."""
    if not is_new and not row.catalog_values:
        return False  # an operator's own row
    catalog_values = dict(row.catalog_values)
    for name, value in values.items():
        field = row._meta.get_field(name)
        if is_new or _is_unedited(row, field):
            setattr(row, name, field.to_python(value))
            catalog_values[name] = value
    has_changes = catalog_values != row.catalog_values
    row.catalog_values = catalog_values
    return has_changes


def _is_unedited(row: Any, field: "Field[Any, Any]") -> bool:
    last_value = row.catalog_values.get(field.name, field.get_default())
    return bool(getattr(row, field.name) == field.to_python(last_value))
