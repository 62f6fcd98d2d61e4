"""Fingerprints of texts."""

from hashlib import sha256


def compute_fingerprint(*parts: str) -> str:
    """Return a short value that is the same only for the same texts in the same order."""
    hasher = sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(data))
        hasher.update(data)
    return hasher.hexdigest()
