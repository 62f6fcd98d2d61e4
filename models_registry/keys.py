"""Provider API keys at rest: encrypted under keys of their own, never under the Django secret."""

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class UnreadableKey(Exception):
    """A stored API key that none of the configured encryption keys opens."""


def encrypt(text: str) -> str:
    """Encrypt under the first of CHATCORE_KEY_ENCRYPTION_KEYS."""
    return _build_cipher(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Decrypt with any of the configured keys. Raises UnreadableKey, never returns ciphertext."""
    try:
        return (
            _build_cipher(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]).decrypt(token.encode()).decode()
        )
    except InvalidToken:
        raise UnreadableKey(
            "A stored API key cannot be decrypted with CHATCORE_KEY_ENCRYPTION_KEYS; enter it again."
        ) from None


def _build_cipher(keys: Sequence[str]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
