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

PATH = Path(__file__).with_name("catalog.json")

# What may follow a model's name and still mean that model: an alias, a snapshot's date, a route of a reseller.
# Not a word or a version: gpt-4.1 is not gpt-4, and gemini-2.5-flash-image has another window than gemini-2.5-flash.
_SNAPSHOT = re.compile(r"[@:].+|-latest|-((preview|exp)-)?(\d{4}(-?\d{2}){0,2}|\d{2}-\d{2})")


@dataclass(frozen=True, kw_only=True)
class Known:
    """One model of the catalog. `values` are fields of AiModel, without those that are unknown."""

    provider: str
    name: str
    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The whole file: providers by name, as fields of Provider, and models in the order in which they are offered."""

    providers: dict[str, dict[str, Any]]
    models: tuple[Known, ...]


@cache
def load() -> Catalog:
    """Read catalog.json, where every value stands beside the key of its source."""
    data = json.loads(PATH.read_text())
    providers = {
        row["name"]: {field: value for field, value in row.items() if field != "name"}
        for row in data["providers"]
    }
    return Catalog(providers=providers, models=tuple(_known(row) for row in data["models"]))


def look_up(name: str) -> Known | None:
    """The model called `name`, or else the longest name that it is a snapshot, an alias or a route of; None when unknown."""
    candidates = [
        known for known in load().models if known.name == name or _is_snapshot(name, known.name)
    ]
    return max(candidates, key=lambda known: len(known.name), default=None)


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
    catalog = load()
    with transaction.atomic(using=using):
        on = _with_key(providers, catalog)
        wanted = {
            (name,): {**values, "is_active": name in on}
            for name, values in catalog.providers.items()
        }
        changed = _merge(providers, ("name",), wanted)
        ids = dict(providers.values_list("name", "pk"))
        known = {(ids[model.provider], model.name): model.values for model in catalog.models}
        return changed + _merge(models, ("provider_id", "name"), known)


def _known(row: Mapping[str, Any]) -> Known:
    values = {
        field: sourced[0]
        for field, sourced in row.items()
        if field not in {"provider", "name"} and sourced
    }
    return Known(provider=row["provider"], name=row["name"], values=values)


def _is_snapshot(name: str, of: str) -> bool:
    return name.startswith(of) and _SNAPSHOT.fullmatch(name, len(of)) is not None


def _with_key(providers: Any, catalog: Catalog) -> set[str]:
    """Names of the providers that have a key: a stored one, or the value of the environment variable that their row names."""
    variables = {name: values["api_key_env"] for name, values in catalog.providers.items()}
    variables |= dict(providers.values_list("name", "api_key_env"))
    stored = set(providers.exclude(encrypted_api_key="").values_list("name", flat=True))
    return stored | {
        name for name, variable in variables.items() if variable and os.environ.get(variable)
    }


def _merge(
    rows: Any, key: tuple[str, ...], wanted: Mapping[tuple[Any, ...], dict[str, Any]]
) -> int:
    """Create what is missing, and update what no operator touched. Returns how many rows that were."""
    found = {tuple(getattr(row, name) for name in key): row for row in rows.all()}
    made = [
        rows.model(**dict(zip(key, identity, strict=True)))
        for identity in wanted
        if identity not in found
    ]
    for row in made:
        _write(row, wanted[tuple(getattr(row, name) for name in key)], new=True)
    changed = [
        found[identity]
        for identity in wanted
        if identity in found and _write(found[identity], wanted[identity], new=False)
    ]
    rows.bulk_create(made, ignore_conflicts=True)  # another process may be doing the same
    if changed:
        rows.bulk_update(changed, sorted({"catalog_values"}.union(*wanted.values())))
    return len(made) + len(changed)


def _write(row: Any, values: Mapping[str, Any], *, new: bool) -> bool:
    """Set the values on the row where the catalog still has the say; whether anything changed."""
    if not new and not row.catalog_values:
        return False  # an operator's own row
    written = dict(row.catalog_values)
    for name, value in values.items():
        field = row._meta.get_field(name)
        if new or _untouched(row, field):
            setattr(row, name, field.to_python(value))
            written[name] = value
    changed = written != row.catalog_values
    row.catalog_values = written
    return changed


def _untouched(row: Any, field: "Field[Any, Any]") -> bool:
    last = row.catalog_values.get(field.name, field.get_default())
    return bool(getattr(row, field.name) == field.to_python(last))
