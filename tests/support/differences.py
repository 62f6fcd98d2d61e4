"""Find where two JSON values differ."""

from typing import Any


def find_difference(old: Any, new: Any, place: str = "") -> str | None:
    """Return where `new` lacks something of `old`; new fields of an object are welcome."""
    if isinstance(old, dict) and isinstance(new, dict):
        parts = [(name, old[name], new.get(name, "nothing")) for name in old]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        parts = [(index, *pair) for index, pair in enumerate(zip(old, new, strict=True))]
    else:
        return None if old == new else f"{place}: {old!r} became {new!r}"[:500]
    differences = (find_difference(a, b, f"{place}/{name}") for name, a, b in parts)
    return next(filter(None, differences), None)
