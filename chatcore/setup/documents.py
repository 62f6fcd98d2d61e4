"""Apply a document that writes an installation down: all of it, or nothing.

Commands, REST and the file of CHATCORE_SETUP_FILE call this. What the file sets belongs to it: it
wins over edits, nobody else changes it, and what is removed from the file goes out of use.
"""

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from chatcore.models import Installation, SetupEntry
from chatcore.setup.registry import load_sections
from chatcore.setup.sections import Author, Section, SetupRefused
from models_registry import catalog
from models_registry.models import AiModel

PERSON = Author(is_operator=False)
OPERATOR = Author(is_operator=True)
FILE = Author(is_operator=True, is_file=True)
DEFAULT_MODEL = "default_model"


class SetByFile(SetupRefused):
    """The file sets this, so it is changed there and nowhere else."""


def apply_setup_file() -> list[str]:
    """Apply the file that CHATCORE_SETUP_FILE names; return what that changed.

    Without the setting, what an earlier file has set stays, and can be edited again. Raises
    SetupRefused, which names the file.
    """
    path = settings.CHATCORE["SETUP_FILE"]
    if not path:
        SetupEntry.objects.all().delete()
        return []
    try:
        return apply_document(read_toml(Path(path)), FILE)
    except SetupRefused as error:
        raise SetupRefused("", f"CHATCORE_SETUP_FILE, {path}: {error}") from None


def read_toml(path: Path) -> dict[str, object]:
    """Return what a TOML file says. Raises SetupRefused."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SetupRefused("", f"It cannot be read: {error.strerror}.") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise SetupRefused("", f"It is no TOML: {error}") from None


def apply_document(document: Mapping[str, object], author: Author) -> list[str]:
    """Set what the document names, in one transaction; return the names of what changed.

    Raises SetupRefused, and SetByFile for what belongs to the file; then nothing is changed.
    """
    known_sections = [*load_sections(), DEFAULT_MODEL]
    unknown_names = sorted({*document}.difference(known_sections))
    if unknown_names:
        known_names = ", ".join(known_sections)
        raise SetupRefused(unknown_names[0], f"There is no such section; there are {known_names}.")
    installation = Installation.load()
    with transaction.atomic():
        # One after the other: two that make the same row would meet in the middle.
        Installation.objects.select_for_update().get(pk=installation.pk)
        changes = _apply_sections(document, author)
        changes += _apply_default(document, author)
        if author.is_file:
            changes += _withdraw_missing(document)
        if changes:
            catalog.sync()
    return changes


def describe_installation(section_names: list[str]) -> dict[str, object]:
    """Return what is in use, in the form that `apply_document` takes."""
    document: dict[str, object] = {}
    for name in section_names:
        section = load_sections()[name]
        document[name] = {
            section.get_name(row): section.describe_row(row) for row in section.list_rows()
        }
    default = AiModel.objects.find_default()
    if "models" in section_names:
        document[DEFAULT_MODEL] = str(default) if default else None
    return document


def refuse_if_set(section: str, name: str) -> None:
    """Raise SetByFile if the file sets this."""
    entry = SetupEntry.objects.find(section, name)
    if entry is not None:
        raise SetByFile(str(entry), entry.text)


def _apply_sections(document: Mapping[str, object], author: Author) -> list[str]:
    changes = []
    for section in load_sections().values():
        rows = document.get(section.name, {})
        if not isinstance(rows, Mapping):
            raise SetupRefused(section.name, "Must be a table of names.")
        for name, values in rows.items():
            place = f"{section.name}.{name}"
            if not isinstance(values, Mapping):
                raise SetupRefused(place, "Must be a table of values.")
            _check_names(section, place, values, author)
            if _apply_row(section, name, values, author):
                changes.append(place)
    return changes


def _check_names(
    section: Section, place: str, values: Mapping[str, object], author: Author
) -> None:
    if author.is_file and "api_key" in values:
        raise SetupRefused(
            f"{place}.api_key",
            "No key stands in this file: name the variable that holds it, as api_key_env.",
        )
    allowed_names = {*section.fields, *([] if author.is_file else ["api_key"])}
    if section.name != "providers":
        allowed_names.discard("api_key")
    for name in values:
        if name not in allowed_names:
            known_names = ", ".join(sorted(allowed_names))
            raise SetupRefused(
                f"{place}.{name}", f"There is no such value; there are {known_names}."
            )


def _apply_row(section: Section, name: str, values: Mapping[str, object], author: Author) -> bool:
    if not author.is_file:
        refuse_if_set(section.name, name)
        return section.set_values(section.find_row(name), values, author)
    entry = SetupEntry.objects.find(section.name, name)
    row = section.find_row(name)
    if "is_active" in section.fields:
        values = {"is_active": True, **values}
    # What the file has set once and names no more is as it is where nobody sets it.
    names_left_out = [name for name in entry.fields if name not in values] if entry else []
    left_out = {name: section.get_default(name) for name in names_left_out}
    is_changed = section.set_values(row, {**left_out, **values}, author)
    SetupEntry.objects.update_or_create(
        section=section.name, name=name, defaults={"fields": sorted(values)}
    )
    return is_changed


def _apply_default(document: Mapping[str, object], author: Author) -> list[str]:
    name = document.get(DEFAULT_MODEL)
    if name is None:
        return []
    model = AiModel.objects.find_by_name(name) if isinstance(name, str) else None
    if model is None:
        raise SetupRefused(DEFAULT_MODEL, f"There is no usable model called {name}.")
    if not author.is_file and SetupEntry.objects.list_names(DEFAULT_MODEL):
        raise SetByFile(DEFAULT_MODEL, "CHATCORE_SETUP_FILE sets the default. Change it there.")
    if author.is_file:
        SetupEntry.objects.filter(section=DEFAULT_MODEL).exclude(name=str(model)).delete()
        SetupEntry.objects.get_or_create(section=DEFAULT_MODEL, name=str(model))
    if model.is_default:
        return []
    model.make_default()
    return [DEFAULT_MODEL]


def _withdraw_missing(document: Mapping[str, Any]) -> list[str]:
    """Take out of use what the file does not set any more."""
    changes = []
    for entry in SetupEntry.objects.order_by("id"):
        if entry.section == DEFAULT_MODEL:
            if document.get(DEFAULT_MODEL) is None:
                entry.delete()
            continue
        if entry.name in document.get(entry.section, {}):
            continue
        section = load_sections().get(entry.section)
        with suppress(SetupRefused):  # its provider was deleted
            row = section.find_row(entry.name) if section else None
            if section and row and not row._state.adding:
                section.deactivate(row)
                changes.append(str(entry))
        entry.delete()
    return changes
