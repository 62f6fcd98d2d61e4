"""Compare the registry with a newer list of models, and write what the operator wants of it."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from models_registry.catalog import CatalogModel, is_unedited
from models_registry.models import AiModel


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A value of a model that the list has otherwise. `is_edited`: an operator set it."""

    model: str
    field: str
    old: Any
    new: Any
    is_edited: bool

    def describe(self) -> str:
        """Return the difference as a line."""
        line = f"{self.model}: {self.field} {_format(self.old)} → {_format(self.new)}"
        return f"{line} (set by an operator, stays)" if self.is_edited else line


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Differences of the models in both, and the names of models that only the list has."""

    differences: list[Difference]
    new_names: list[str]


def compare(listed_models: Iterable[CatalogModel]) -> Comparison:
    """Compare the registry's models with those of a list. Writes nothing."""
    models_by_name = {f"{model.provider}/{model.name}": model for model in listed_models}
    rows = {str(row): row for row in AiModel.objects.select_related("provider").order_by("id")}
    differences = [
        difference
        for name, row in rows.items()
        if name in models_by_name
        for difference in _compare_row(row, models_by_name[name].values)
    ]
    return Comparison(
        differences=differences, new_names=sorted(models_by_name.keys() - rows.keys())
    )


def write_values(listed_models: Iterable[CatalogModel], *, source: str, date: datetime.date) -> int:
    """Write a list's values over those that no operator edited; return how many models changed.

    All models in the list note its name and the date, so that their age can be seen, and so that an
    older catalog does not take the values back.
    """
    values_by_name = {(model.provider, model.name): model.values for model in listed_models}
    change_count = 0
    with transaction.atomic():
        rows = AiModel.objects.select_related("provider").select_for_update(of=("self",))
        for row in rows.order_by("id"):
            values = values_by_name.get((row.provider.name, row.name))
            if values is None:
                continue
            change_count += _write_row(row, values)
            row.values_source, row.values_date = source, date
            row.save()
    return change_count


def _compare_row(row: AiModel, values: Mapping[str, Any]) -> list[Difference]:
    differences = []
    for name, value in values.items():
        field = AiModel._meta.get_field(name)
        old, new = getattr(row, name), field.to_python(value)  # type: ignore[union-attr]
        if old != new:
            is_edited = not is_unedited(row, field)  # type: ignore[arg-type]
            differences.append(
                Difference(model=str(row), field=name, old=old, new=new, is_edited=is_edited)
            )
    return differences


def _write_row(row: AiModel, values: Mapping[str, Any]) -> bool:
    changes = [change for change in _compare_row(row, values) if not change.is_edited]
    for change in changes:
        setattr(row, change.field, change.new)
    changed_fields = {change.field for change in changes}
    row.catalog_values = row.catalog_values | {
        name: value
        for name, value in values.items()
        if name in changed_fields or name in row.catalog_values
    }
    return bool(changes)


def _format(value: Any) -> str:
    return "unknown" if value in (None, []) else str(value)
