"""Stretches of a chat, of which a page holds one at a time: the newest messages, those before or after one, those around one.

Each reads one indexed range, whatever the length of the chat. Results stay with their calls: a stretch is cut before an answer, not inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import dropwhile

from chatcore.models import Message, MessageQuerySet, Session
from chatcore.web.timeline import Entry, entries

SIZE = 60  # messages
MOST = 200  # messages that a page holds, as stretch.js does


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Entries in reading order. There are more before the seq `before` and after the seq `after`; None at the chat's ends."""

    entries: list[Entry]
    before: int | None = None
    after: int | None = None


def newest(session: Session) -> Stretch:
    """The end of the chat."""
    rows, more = _last(_shown(session), SIZE)
    return _stretch(session, rows, before=more)


def before(session: Session, seq: int) -> Stretch:
    """What comes before one message."""
    rows, more = _last(_shown(session).filter(seq__lt=seq), SIZE)
    return _stretch(session, rows, before=more)


def after(session: Session, seq: int) -> Stretch:
    """What follows one message."""
    rows, more = _first(_shown(session).filter(seq__gt=seq), SIZE)
    return _stretch(session, rows, after=more)


def around(session: Session, seq: int) -> Stretch:
    """One message, and as much before it as after."""
    earlier, more_before = _last(_shown(session).filter(seq__lte=seq), SIZE // 2)
    later, more_after = _first(_shown(session).filter(seq__gt=seq), SIZE // 2)
    return _stretch(session, earlier + later, before=more_before, after=more_after)


def since(session: Session, seq: int) -> Stretch:
    """What a page shows that holds everything from one message to the end, as it is now."""
    rows = _shown(session)
    size = min(max(SIZE, rows.filter(seq__gte=seq).count()), MOST)
    kept, more = _last(rows, size)
    return _stretch(session, kept, before=more)


def starting(session: Session, seq: int, size: int) -> Stretch:
    """What a page shows that holds so many messages from one on, as it is now; the end of the chat when nothing is there any more."""
    rows, more = _first(_shown(session).filter(seq__gte=seq), min(size, MOST))
    return (
        _stretch(session, rows, before=_shown(session).filter(seq__lt=seq).exists(), after=more)
        if rows
        else newest(session)
    )


def asked_for(session: Session, asked: Mapping[str, str]) -> Stretch:
    """The stretch that a page's parameters name; the newest messages when they name none."""
    match {
        name: int(text)
        for name, text in asked.items()
        if text.isascii() and text.isdigit() and len(text) < 10
    }:
        case {"before": seq}:
            return before(session, seq)
        case {"after": seq}:
            return after(session, seq)
        case {"at": seq}:
            return around(session, seq)
        case {"since": seq, "size": size}:
            return starting(session, seq, size)
        case {"since": seq}:
            return since(session, seq)
    return newest(session)


def _shown(session: Session) -> MessageQuerySet:
    return session.messages.current().exclude(role=Message.Role.SYSTEM).select_related("turn")


def _stretch(
    session: Session, rows: list[Message], *, before: bool = False, after: bool = False
) -> Stretch:
    return Stretch(
        entries=entries(session, rows),
        before=rows[0].seq if before and rows else None,
        after=rows[-1].seq if after and rows else None,
    )


def _last(rows: MessageQuerySet, size: int) -> tuple[list[Message], bool]:
    """The last rows, and whether there are more before them."""
    found = list(rows.order_by("-seq")[: size + 1])
    kept = found[:size][::-1]
    if len(found) <= size:
        return kept, False
    return list(dropwhile(_is_result, kept)) or kept, True


def _first(rows: MessageQuerySet, size: int) -> tuple[list[Message], bool]:
    """The first rows, and whether there are more after them."""
    found = list(rows.order_by("seq")[: size + 1])
    if len(found) <= size:
        return found, False
    end = size
    while end and _is_result(found[end]):
        end -= 1
    return found[: end or size], True


def _is_result(message: Message) -> bool:
    return message.role == Message.Role.TOOL
