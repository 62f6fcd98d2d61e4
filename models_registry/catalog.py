"""The catalog of well-known language models, and its merge into the registry.

It holds limits and abilities; prices are those of genai-prices. Neither ever overwrites what an
operator has edited.
"""

import datetime
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.apps import apps as installed_apps
from django.apps.registry import Apps
from django.db import transaction
from django.db.models import Field, Model, QuerySet

from models_registry.prices import FIELDS as PRICE_FIELDS
from models_registry.prices import look_up_prices

Key = TypeVar("Key", bound=tuple[object, ...])

CATALOG_PATH = Path(__file__).with_name("catalog.json")

# After its name, a model's name may carry an alias, the date of a snapshot or the route of a
# reseller, and still mean the same model. Another word or version means another model: gpt-4.1 is
# not gpt-4, and gemini-2.5-flash-image has another context window than gemini-2.5-flash.
_SNAPSHOT_SUFFIX = re.compile(r"[@:].+|-latest|-((preview|exp)-)?(\d{4}(-?\d{2}){0,2}|\d{2}-\d{2})")

# Amazon Bedrock puts a region and the vendor before a model's name and a version behind it, or an
# address around it: us.anthropic.claude-3-5-sonnet-20241022-v2:0, arn:aws:bedrock:…/amazon.nova-….
_BEDROCK_NAME = re.compile(
    r"(?:arn:.+/)?(?:[a-z-]+\.)?(?:anthropic|amazon)\.(?P<name>.+?)(?:-v\d+(?::\d+)?)?"
)


@dataclass(frozen=True, kw_only=True)
class CatalogModel:
    """A model of the catalog. `values` holds the known fields of AiModel, by name.

    A model without a provider is only looked up: whoever serves it adds a row.
    """

    provider: str | None
    name: str
    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The content of catalog.json.

    `providers` holds the fields of Provider by the provider's name. `models` are in the order in
    which they are offered. `date` is that of its newest source.
    """

    date: datetime.date

    providers: dict[str, dict[str, str]]
    models: tuple[CatalogModel, ...]


@cache
def load_catalog() -> Catalog:
    """Read catalog.json, in which each value is paired with the name of its source."""
    data = json.loads(CATALOG_PATH.read_text())
    providers = {
        row["name"]: {field: value for field, value in row.items() if field != "name"}
        for row in data["providers"]
    }
    dates = [datetime.date.fromisoformat(source["date"]) for source in data["sources"].values()]
    return Catalog(
        date=max(dates),
        providers=providers,
        models=tuple(_parse_model(row) for row in data["models"]),
    )


def look_up_model(name: str) -> CatalogModel | None:
    """Return the catalog's model for a name, or None.

    Without a model of exactly this name, the name may be a snapshot, an alias or a route of one, or
    the spelling of a router: `anthropic/claude-sonnet-4.5`. If several models fit, the one with the
    longest name is returned.
    """
    bedrock_match = _BEDROCK_NAME.fullmatch(name)
    if bedrock_match:
        name = bedrock_match["name"]
    own_name = name.rpartition("/")[2]
    names = (name, own_name, own_name.replace(".", "-"))
    found = (_find_route(each) for each in names)
    newest = (_find_newest_snapshot(each) for each in names)
    return next(filter(None, [*found, *newest]), None)


def _find_route(name: str) -> CatalogModel | None:
    # The longest name wins: gpt-4o-mini-2024-07-18 is a snapshot of gpt-4o-mini, not of gpt-4o.
    candidates = [
        model
        for model in load_catalog().models
        if model.name == name or _is_snapshot(name, model.name)
    ]
    return max(candidates, key=lambda model: len(model.name), default=None)


def _find_newest_snapshot(name: str) -> CatalogModel | None:
    snapshots = [model for model in load_catalog().models if _is_snapshot(model.name, name)]
    return max(snapshots, key=lambda model: model.name, default=None)


def sync(apps: Apps = installed_apps, using: str = "default") -> int:
    """Bring the registry up to the catalog; return the number of rows created or changed.

    A value that differs from what the catalog last wrote is an operator's edit and stays.
    A provider becomes active when it has a key and inactive when it loses the key, unless an
    operator set `is_active`. A deleted row is created again; to keep a model away, make it
    inactive. A second call changes nothing more. `apps` is a registry of models, for example a
    migration's.
    """
    provider_model = apps.get_model("models_registry", "Provider")
    ai_model = apps.get_model("models_registry", "AiModel")
    providers = provider_model._default_manager.using(using)
    models = ai_model._default_manager.using(using)
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
            (provider_ids[model.provider], model.name): model.values
            | look_up_prices(model.provider, model.name)
            for model in catalog.models
            if model.provider is not None
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


def _find_providers_with_key(providers: QuerySet[Model], catalog: Catalog) -> set[str]:
    """Return the names of the providers that have a stored key or one in the environment."""
    variables = {name: values["api_key_env"] for name, values in catalog.providers.items()}
    variables.update(providers.values_list("name", "api_key_env"))
    names = set(providers.exclude(encrypted_api_key="").values_list("name", flat=True))
    for name, variable in variables.items():
        if variable and os.environ.get(variable):
            names.add(name)
    return names


def _merge_rows(
    rows: QuerySet[Model],
    key_fields: tuple[str, ...],
    values_by_key: Mapping[Key, Mapping[str, object]],
) -> int:
    """Create the missing rows and update the unedited ones; return how many rows that were."""
    rows_by_key = {tuple(getattr(row, name) for name in key_fields): row for row in rows.all()}
    # A migration's model has no columns that came after it.
    column_names = {field.name for field in rows.model._meta.fields}
    values_by_key = {
        key: {name: value for name, value in values.items() if name in column_names}
        for key, values in values_by_key.items()
    }
    new_rows = []
    changed_rows = []
    for key, values in values_by_key.items():
        row = rows_by_key.get(key)
        if row is None:
            row = rows.model(**dict(zip(key_fields, key, strict=True)))
            _write_values(row, values, is_new=True)
            new_rows.append(row)
        elif _write_values(row, values, is_new=False):
            changed_rows.append(row)
    # Two processes may start at once on an empty database. Both insert the same rows, so a conflict
    # means that the other one was faster.
    rows.bulk_create(new_rows, ignore_conflicts=True)
    if changed_rows:
        field_names = {"catalog_values"}.union(*values_by_key.values())
        rows.bulk_update(changed_rows, sorted(field_names))
    return len(new_rows) + len(changed_rows)


def _write_values(row: Any, values: Mapping[str, object], *, is_new: bool) -> bool:
    """Write the catalog's values to the fields that no operator edited; return whether any changed.

    `row.catalog_values` remembers what the catalog wrote last, which is how an edit is recognized.
    """
    if not is_new and not row.catalog_values:
        return False  # an operator created this row; the catalog has no say in it
    values_date = getattr(row, "values_date", None)
    if values_date and values_date >= load_catalog().date:
        # A newer list was asked since this catalog was made; it has no prices.
        values = {name: value for name, value in values.items() if name in PRICE_FIELDS}
    if not is_new and _has_own_price(row):
        values = {name: value for name, value in values.items() if name not in PRICE_FIELDS}
    catalog_values = dict(row.catalog_values)
    for name, value in values.items():
        field = row._meta.get_field(name)
        if is_new or is_unedited(row, field):
            setattr(row, name, field.to_python(value))
            catalog_values[name] = value
    has_changes = catalog_values != row.catalog_values
    row.catalog_values = catalog_values
    return has_changes


def _has_own_price(row: Any) -> bool:
    """Return True if an operator set a price of the row: then all of them are the operator's."""
    fields = [field for field in row._meta.fields if field.name in PRICE_FIELDS]
    return not all(is_unedited(row, field) for field in fields)


def is_unedited(row: Any, field: "Field[object, object]") -> bool:
    """Return True if a row has in this field what the catalog last wrote, or nothing yet."""
    last_value = row.catalog_values.get(field.name, field.get_default())
    return bool(getattr(row, field.name) == field.to_python(last_value))
