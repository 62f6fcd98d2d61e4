"""Encrypt the API keys of providers before they are stored, or read them from variables.

The database holds only ciphertext (Fernet: AES in CBC mode with an HMAC). The encryption keys
come from CHATCORE_KEY_ENCRYPTION_KEYS and are independent of Django's SECRET_KEY: a changed or
leaked SECRET_KEY neither loses nor reveals an API key. The first encryption key encrypts, and all
of them decrypt. To rotate them, put a new key before the old ones.
"""

import os
import re

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from models_registry.catalog import load_catalog

# The environment of a server also holds its own secrets. So a form may name only the variables of
# the catalog, each for the address that the catalog has for it, and those that an operator of the
# machine lists in CHATCORE_PROVIDER_KEY_VARIABLES, for any address.
OWN_PREFIX = "CHATCORE_"

# How keys begin, by provider; the first that fits holds. DeepSeek's are those with 32 digits.
_BEGINNINGS = (
    ("anthropic", re.compile(r"sk-ant-")),
    ("openrouter", re.compile(r"sk-or-")),
    ("deepseek", re.compile(r"sk-[0-9a-f]{32}\Z")),
    ("openai", re.compile(r"sk-")),
    ("gemini", re.compile(r"AIza|AQ\.")),
    ("groq", re.compile(r"gsk_")),
    ("xai", re.compile(r"xai-")),
    ("mistral", re.compile(r"[0-9A-Za-z]{32}\Z")),
)


def recognize_key(key: str) -> str:
    """Return the name of the provider whose keys look like this one; empty where none does."""
    return next((name for name, pattern in _BEGINNINGS if pattern.match(key)), "")


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


class UnreadableKey(Exception):
    """A stored API key that no configured encryption key can decrypt."""


def encrypt(text: str) -> str:
    """Return `text` encrypted with the first configured encryption key."""
    return _build_cipher().encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Return the text of a token from `encrypt`. Raises UnreadableKey if no key fits."""
    try:
        return _build_cipher().decrypt(token.encode()).decode()
    except InvalidToken:
        # Never fall back to the stored text: ciphertext would then be sent as an API key.
        raise UnreadableKey(
            "A stored API key cannot be decrypted with CHATCORE_KEY_ENCRYPTION_KEYS;"
            " enter it again."
        ) from None


def is_readable(token: str) -> bool:
    """Return whether a configured key opens the token."""
    try:
        decrypt(token)
    except UnreadableKey:
        return False
    return True


def _build_cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.CHATCORE["KEY_ENCRYPTION_KEYS"]])


def rotate(token: str) -> str:
    """Return the token's text encrypted with the first key. Raises UnreadableKey."""
    return encrypt(decrypt(token))


def is_newest(token: str) -> bool:
    """Return whether the first configured key opens the token."""
    try:
        Fernet(settings.CHATCORE["KEY_ENCRYPTION_KEYS"][0]).decrypt(token.encode())
    except InvalidToken:
        return False
    return True
