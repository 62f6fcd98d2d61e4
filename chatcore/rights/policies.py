"""The compaction policies that a user may choose. Those that operators chose hold for everyone."""

from collections.abc import Iterable
from typing import Any

from chatcore.context.compactor import get_compactor
from chatcore.rights.names import Kind, list_allowed


def select_policies(user_id: Any, names: Iterable[str]) -> list[str]:
    """Return those of the policies that a user may choose, in the same order."""
    allowed_names = list_allowed(user_id, Kind.POLICY)
    return [name for name in names if name in allowed_names]


def accepts_policy(user_id: Any, name: str) -> bool:
    """Return True if there is a policy of this name that the user may choose.

    Without a compactor there are none, and none acts: any name may be noted.
    """
    names = get_compactor().list_policies()
    return (not names or name in names) and bool(select_policies(user_id, [name]))
