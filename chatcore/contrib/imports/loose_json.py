"""What stands in JSON that nobody has checked, and nothing where it is of another type."""

from typing import Any


def to_text(value: object) -> str:
    """Return a text as it is, and nothing for what is none."""
    return value if isinstance(value, str) else ""


def to_list(value: object) -> list[object]:
    """Return a list as it is, and an empty one for what is none."""
    return value if isinstance(value, list) else []


def to_dict(value: object) -> dict[str, Any]:
    """Return an object as it is, and an empty one for what is none."""
    return value if isinstance(value, dict) else {}


def join_words(*texts: str) -> str:
    """Return the texts that have words, with a blank line between them."""
    return "\n\n".join(text for text in texts if text.strip())
