"""Compare the registry with a newer list of models, and write what the operator wants of it."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import BooleanField, Field, IntegerField

from models_registry.catalog import CatalogModel, is_unedited
from models_registry.models import AiModel

MAX_TOKENS = 1_000_000_000  # of a window; a list that says more is wrong


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A value of a model that the list has otherwise. `is_edited`: an operator set it."""

    pk: int
    model: str
    field: str
    old: object
    new: object
    is_edited: bool

    def describe(self) -> str:
        """Return the difference as a line."""
        line = f"{self.model}: {self.field} {_format(self.old)} → {_format(self.new)}"
        return f"{line} (set by an operator, stays)" if self.is_edited else line


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is different in the models of both, and which models only the list has.

    `agreeing` are the keys of the models without a difference. `unusable` names values of the list
    that no model can have, as a window below zero.
    """

    differences: list[Difference]
    new_names: list[str]
    agreeing: list[int]
    unusable: list[str]


@dataclass(frozen=True, kw_only=True)
class TakenValues:
    """The fields of a model that were written."""

    row: AiModel
    fields: list[str]


def compare(listed_models: Iterable[CatalogModel]) -> Comparison:
    """Compare the registry's models with those of a list. Writes nothing."""
    models_by_name = {f"{model.provider}/{model.name}": model for model in listed_models}
    rows = {str(row): row for row in AiModel.objects.select_related("provider").order_by("id")}
    differences: list[Difference] = []
    agreeing: list[int] = []
    unusable: list[str] = []
    for name, row in rows.items():
        if name not in models_by_name:
            continue
        values, unusable_names = _clean_values(models_by_name[name].values)
        unusable += [f"{name}: {field}" for field in unusable_names]
        changes = _compare_row(row, values)
        differences += changes
        if not changes:
            agreeing.append(row.pk)
    return Comparison(
        differences=differences,
        new_names=sorted(models_by_name.keys() - rows.keys()),
        agreeing=agreeing,
        unusable=unusable,
    )


def take_values(
    differences: Iterable[Difference], *, agreeing: list[int], source: str, date: datetime.date
) -> list[TakenValues]:
    """Write these values, those over an operator's edit too; return what was written.

    A value that changed after the comparison stays. The models of `agreeing`, and those of which a
    value was written, note the list's name and the date.
    """
    changes_by_pk: dict[int, list[Difference]] = {}
    for difference in differences:
        changes_by_pk.setdefault(difference.pk, []).append(difference)
    taken_values = []
    with transaction.atomic():
        rows = AiModel.objects.select_related("provider").select_for_update(of=("self",))
        for row in rows.filter(pk__in={*agreeing, *changes_by_pk}).order_by("id"):
            fields = [
                change.field
                for change in changes_by_pk.get(row.pk, [])
                if _is_as_compared(row, change) and _take_value(row, change)
            ]
            if fields or row.pk in agreeing:
                row.values_source, row.values_date = source, date
                row.save(update_fields=[*fields, "catalog_values", "values_source", "values_date"])
            if fields:
                taken_values.append(TakenValues(row=row, fields=fields))
    return taken_values


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
            change_count += _write_row(row, _clean_values(values)[0])
            row.values_source, row.values_date = source, date
            row.save()
    return change_count


def _clean_values(values: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """Return the values that a model can have, and the names of the others."""
    usable: dict[str, object] = {}
    unusable = []
    for name, value in values.items():
        try:
            _clean_value(name, value)
        except (ValidationError, TypeError, ValueError):
            unusable.append(name)
        else:
            usable[name] = value
    return usable, unusable


def _get_field(name: str) -> "Field[object, object]":
    field = AiModel._meta.get_field(name)
    assert isinstance(field, Field), "values are those of columns"
    return field


def _clean_value(name: str, value: object) -> object:
    """Return the value as the field has it. Raises ValidationError and what Python raises."""
    field = _get_field(name)
    if isinstance(field, IntegerField) and (not isinstance(value, int) or isinstance(value, bool)):
        raise ValidationError("It is no whole number.")
    if isinstance(field, BooleanField) and not isinstance(value, bool):
        raise ValidationError("It is neither true nor false.")
    cleaned_value = field.clean(value, None)
    if isinstance(field, IntegerField) and not 0 < cleaned_value <= MAX_TOKENS:
        raise ValidationError("No model has so many tokens.")
    return cleaned_value


def _is_as_compared(row: AiModel, change: Difference) -> bool:
    field = _get_field(change.field)
    return bool(getattr(row, change.field) == field.to_python(change.old))


def _take_value(row: AiModel, change: Difference) -> bool:
    """Write the value into the row, as one of the list and of nobody's edit."""
    setattr(row, change.field, _clean_value(change.field, change.new))
    row.catalog_values = row.catalog_values | {change.field: change.new}
    return True


def _compare_row(row: AiModel, values: Mapping[str, object]) -> list[Difference]:
    differences = []
    for name, value in values.items():
        field = _get_field(name)
        old, new = getattr(row, name), field.to_python(value)
        if old != new:
            is_edited = not is_unedited(row, field)
            differences.append(
                Difference(
                    pk=row.pk, model=str(row), field=name, old=old, new=new, is_edited=is_edited
                )
            )
    return differences


def _write_row(row: AiModel, values: Mapping[str, object]) -> bool:
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


def _format(value: object) -> str:
    return "unknown" if value is None else str(value)
