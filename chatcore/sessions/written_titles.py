"""Titles that a model wrote: they keep words of messages, and go with them."""

import hashlib
from collections.abc import Collection

from chatcore.models import Session


def build_title_source(title: str, seqs: Collection[int]) -> dict[str, object]:
    """Return what is stored of a title that a model made of the messages with these seqs."""
    return {"digest": _digest(title), "seqs": sorted(seqs)}


def is_title_made_of(session: Session, seqs: Collection[int]) -> bool:
    """Return True if a model made the present title of one of these messages."""
    source = session.title_source
    if not source or source["digest"] != _digest(session.title):
        return False  # somebody has chosen another title since
    return not set(seqs).isdisjoint(source["seqs"])


def _digest(title: str) -> str:
    return hashlib.sha256(title.encode()).hexdigest()
