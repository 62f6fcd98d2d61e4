"""Encrypt the API keys of providers before they are stored.

The database holds only ciphertext (Fernet: AES in CBC mode with an HMAC). The encryption keys
come from CHATCORE_KEY_ENCRYPTION_KEYS and are independent of Django's SECRET_KEY: a changed or
leaked SECRET_KEY neither loses nor reveals an API key. The first encryption key encrypts, and all
of them decrypt. To rotate them, put a new key before the old ones.
"""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


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
