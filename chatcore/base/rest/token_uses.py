"""When tokens were used: noted in memory, so that no request waits for a write.

A background job stores what was noted (chatcore/accounts/token_uses.py).
"""

import threading
from datetime import datetime, timedelta

from django.utils import timezone

MIN_GAP = timedelta(minutes=1)  # between two writes for one token, by this process

_lock = threading.Lock()
_waiting: dict[str, datetime] = {}  # by the digests of tokens: the newest use that is not stored
_taken: dict[str, datetime] = {}  # the newest use that was taken to be stored


def note_use(digest: str) -> None:
    """Note that a token was used now."""
    _waiting[digest] = timezone.now()


def take_uses() -> dict[str, datetime]:
    """Return the uses that are to be stored now; the first of a token at once."""
    now = timezone.now()
    with _lock:
        for digest in [key for key, time in list(_taken.items()) if now - time >= MIN_GAP]:
            del _taken[digest]
        due = [digest for digest in list(_waiting) if digest not in _taken]
        uses = {digest: _waiting.pop(digest) for digest in due}
        _taken.update(dict.fromkeys(uses, now))
    return uses


def forget_uses() -> None:
    """Forget what was noted, for tests."""
    with _lock:
        _waiting.clear()
        _taken.clear()
