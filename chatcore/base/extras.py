"""What a small installation leaves out: packages that come with an extra (pyproject.toml).

`pip install chatcore` brings what a server needs. Where something else is asked for, a sentence
says which extra brings it.
"""

import logging
from functools import cache
from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

logger = logging.getLogger(__name__)

# By the name of the extra: packages that it brings, by which it is known to be there.
EXTRAS: dict[str, tuple[str, ...]] = {
    "api-docs": ("drf_spectacular_sidecar",),
    "documents": ("mammoth", "openpyxl", "pptx", "pypdf", "PIL", "pillow_heif"),
    "fast": ("aiohttp", "uvloop"),
    "mcp": ("mcp",),
    "metrics": ("prometheus_client",),
    "postgres": ("psycopg",),
    "prices": ("genai_prices",),
    "redis": ("redis",),
    "sign-on": ("jwt", "requests"),
    "terminal": ("rich",),
}


def has_extra(name: str) -> bool:
    """Return whether an extra is installed."""
    return all(_is_there(package) for package in EXTRAS[name])


def describe_missing(name: str) -> str:
    """Return a sentence that says how an operator installs a missing extra."""
    return f"The extra {name} is not installed: pip install 'chatcore[{name}]' brings it."


def require_extra(name: str, wanted: str) -> None:
    """Raise ImproperlyConfigured unless an extra is there without which `wanted` cannot be had."""
    if not has_extra(name):
        raise ImproperlyConfigured(f"{wanted} needs more packages. {describe_missing(name)}")


@cache
def log_missing(name: str, consequence: str) -> None:
    """Say once in the log what is not there without an extra."""
    logger.warning("%s. %s", consequence, describe_missing(name))


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # somebody has blocked it: its entry in sys.modules is None
        return False
