"""Check the options of a provider that would do harm if they were wrong."""

from typing import Any


def is_number_of_places(value: Any) -> bool:
    """Return whether a value of `compaction_places` says how many runs may be executed at once."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
