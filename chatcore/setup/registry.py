"""Which sections the document has; an app adds its own by a dotted path, loaded when needed."""

from functools import cache
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from chatcore.setup.sections import Section

_paths = [
    "chatcore.setup.sections.Providers",
    "chatcore.setup.sections.Models",
]


def register(path: str) -> None:
    """Add the section of an app, whose `ready` calls this."""
    if path not in _paths:
        _paths.append(path)


@cache
def load_sections() -> "dict[str, Section]":
    """Return the sections by their names, in the order in which they are applied."""
    sections = [import_string(path)() for path in _paths]
    return {section.name: section for section in sections}
