"""Settings of the installation that staff store in the admin, where no variable sets them.

Requests and turns ask for them often, so a process remembers them for as long as rare rows.
"""

import time
from typing import Any, ClassVar

from django.apps import apps

from chatcore.base import rare_rows
from chatcore.base.rare_rows import RareRows

TABLE = "chatcore_installationsettings"


class _Copy:
    """The row as this process has read it."""

    values: ClassVar[dict[str, str]] = {}
    changes: ClassVar[int] = -1
    read_at: ClassVar[float] = float("-inf")


_row = RareRows(TABLE, "id = 1")


def read_stored(name: str) -> str:
    """Return the value of a column of `InstallationSettings`, "" if it is not set."""
    if not _row.may_exist():
        return ""
    age = time.monotonic() - _Copy.read_at
    if age > rare_rows.FRESH_SECONDS or _Copy.changes != RareRows.count_changes():
        _read_row()
    return _Copy.values.get(name, "")


def _read_row() -> None:
    changes, now = RareRows.count_changes(), time.monotonic()
    model = apps.get_model("chatcore", "InstallationSettings")
    row: Any = model._default_manager.values().first()
    _Copy.values = row or {}
    _Copy.changes, _Copy.read_at = changes, now
