"""Which environment variables may be sent to a provider as its API key, and to which address.

The environment of a server also holds its own secrets. So a form may name only the variables of the
catalog, each for the address that the catalog has for it, and those that an operator of the machine
lists in CHATCORE_PROVIDER_KEY_VARIABLES, for any address.
"""

import os

from django.conf import settings

from models_registry.catalog import load_catalog

OWN_PREFIX = "CHATCORE_"


def read_variable(name: str) -> str:
    """Return the value of a key's variable; an empty string if it is not set or one of our own."""
    return "" if not name or _is_our_own(name) else os.environ.get(name, "")


def is_allowed(name: str) -> bool:
    """Return whether a form may name the variable."""
    is_known = any(values["api_key_env"] == name for values in load_catalog().providers.values())
    return not _is_our_own(name) and (is_known or _is_listed(name))


def may_go_to(name: str, *, protocol: str, base_url: str) -> bool:
    """Return whether the variable's value may be sent to this address."""
    if _is_our_own(name):
        return False
    return _is_listed(name) or any(
        values["api_key_env"] == name
        and values["protocol"] == protocol
        and values["base_url"].rstrip("/") == base_url.rstrip("/")
        for values in load_catalog().providers.values()
    )


def _is_our_own(name: str) -> bool:
    return name.upper().startswith(OWN_PREFIX)


def _is_listed(name: str) -> bool:
    return name in settings.CHATCORE.get("PROVIDER_KEY_VARIABLES", [])
