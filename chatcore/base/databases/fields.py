"""Fields that migrations know as Django's own, so that no migration names a module of Chatcore.

What they do beside that is no part of a database.
"""

from collections.abc import Sequence
from uuid import uuid4

from django.db import models

Deconstructed = tuple[str, str, Sequence[object], dict[str, object]]


class RowIdField(models.UUIDField):
    """A key that Chatcore gives (chatcore/base/row_ids.py)."""

    def deconstruct(self) -> Deconstructed:
        """Return a field with random keys."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.UUIDField", arguments, {**options, "default": uuid4}


class CascadingForeignKey(models.ForeignKey):
    """A reference whose `on_delete` deletes the rows as CASCADE does, and does more."""

    def deconstruct(self) -> Deconstructed:
        """Return a reference that cascades."""
        name, _, arguments, options = super().deconstruct()
        options["on_delete"] = models.CASCADE
        return name, "django.db.models.ForeignKey", arguments, options


class CascadingOneToOneField(models.OneToOneField):
    """The same for a reference that one row has."""

    def deconstruct(self) -> Deconstructed:
        """Return a reference that cascades."""
        name, _, arguments, options = super().deconstruct()
        options["on_delete"] = models.CASCADE
        return name, "django.db.models.OneToOneField", arguments, options
