"""Rows of a session that have the key of its owner beside its own."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.conf import settings
from django.db import models

from chatcore.models.session import Session

Row = TypeVar("Row", bound=models.Model)


def write_owners(rows: Iterable[Any]) -> None:
    """Write the owner of rows that have none yet: one statement for sessions not loaded."""
    new_rows = [row for row in rows if row.owner_id is None]
    unloaded_rows = []
    for row in new_rows:
        if session := row._state.fields_cache.get("session"):
            row.owner_id = session.owner_id
        else:
            unloaded_rows.append(row)
    if unloaded_rows:
        sessions = Session.all_objects.filter(pk__in={row.session_id for row in unloaded_rows})
        owners = dict(sessions.values_list("pk", "owner_id"))
        for row in unloaded_rows:
            row.owner_id = owners.get(row.session_id)


class OwnedQuerySet(models.QuerySet[Row]):
    """Queries of rows with an owner."""

    def bulk_create(self, objs: Iterable[Row], *args: Any, **kwargs: Any) -> list[Row]:
        """Insert rows with their owners."""
        rows = list(objs)
        write_owners(rows)
        return super().bulk_create(rows, *args, **kwargs)


class OwnedRow(models.Model):
    """A row of a session. Its manager's queries are `OwnedQuerySet`; `verify` compares the owner.

    It serves what has no session to begin with: lists over all chats of a person, and a division of
    the tables among machines.
    """

    # Without a constraint and an index: the session's deletion is the row's.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        editable=False,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
        help_text="The session's owner; null: a process of the version before has stored it.",
    )

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row, a new one with its owner."""
        if self._state.adding:
            write_owners([self])
        super().save(*args, **kwargs)
