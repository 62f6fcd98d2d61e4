"""The part of a long chat around one message, and what lies between that and the newest ones."""

from typing import Any

from chatcore import timeline
from chatcore.models import Message, MessageQuerySet, Session

BEFORE, AFTER = 12, 24  # messages around the one that is looked for


def around(session: Session, at: str, newest: timeline.Page) -> dict[str, Any]:
    """What the page shows above its newest messages when the message of seq `at` is not among them; empty when it is, or `at` is no seq."""
    seq = int(at) if at.isascii() and at.isdigit() and len(at) < 10 else 0
    if not seq or newest.earlier is None or seq >= newest.earlier:
        return {}
    before = list(_shown(session).filter(seq__lte=seq).order_by("-seq").values_list("seq", flat=True)[: BEFORE + 1])
    more = len(before) > BEFORE
    start = before[BEFORE - 1] if more else 1
    return {"earlier": start if more else None} | stretch(session, start - 1, newest.earlier, BEFORE + AFTER)


def stretch(session: Session, after: int, before: int, size: int = timeline.PAGE_SIZE) -> dict[str, Any]:
    """At most `size` messages between two seqs as entries; `after` is the seq after which there are more, None when these are all."""
    rows = list(_shown(session).filter(seq__gt=after, seq__lt=before).select_related("turn").order_by("seq")[: size + 1])
    shown = rows[:size]
    return {"entries": timeline.entries(session, shown), "after": shown[-1].seq if len(rows) > size else None, "before": before}


def _shown(session: Session) -> MessageQuerySet:
    return session.messages.current().exclude(role=Message.Role.SYSTEM)
