"""What a small installation leaves out: packages that come with an extra (pyproject.toml).

`pip install chatcore` brings what a server needs. Where something else is asked for, a sentence
says which extra brings it.
"""

import logging
from functools import cache
from importlib.util import find_spec

logger = logging.getLogger(__name__)

# By the name of the extra: packages that it brings, by which it is known to be there.
EXTRAS: dict[str, tuple[str, ...]] = {
    "documents": ("mammoth", "openpyxl", "pptx", "pypdf", "PIL", "pillow_heif"),
    "mcp": ("mcp",),
    "prices": ("genai_prices",),
}


def has_extra(name: str) -> bool:
    """Return whether an extra is installed."""
    return all(_is_there(package) for package in EXTRAS[name])


def describe_missing(name: str) -> str:
    """Return a sentence that says how an operator installs a missing extra."""
    return f"This server lacks the extra {name}: pip install 'chatcore[{name}]' brings it."


@cache
def log_missing(name: str, consequence: str) -> None:
    """Say once in the log what is not there without an extra."""
    logger.warning("%s. %s", consequence, describe_missing(name))


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # somebody has blocked it: its entry in sys.modules is None
        return False
