"""Stretches of a chat, of which a page holds one at a time: the newest messages, those before or after one, those around one.

Each reads one indexed range, whatever the length of the chat. Results stay with their calls: a stretch is cut before an answer, not inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import dropwhile

from chatcore.models import Message, MessageQuerySet, Session
from chatcore.web.timeline import TimelineEntry, build_entries

PAGE_SIZE = 60  # messages
MAX_PAGE_SIZE = 200  # messages that a page holds, as message_pager.js does


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """Entries in reading order. There are more before the seq `before` and after the seq `after`; None at the chat's ends."""

    entries: list[TimelineEntry]
    before: int | None = None
    after: int | None = None


def load_newest_page(session: Session) -> MessagePage:
    """The end of the chat."""
    rows, has_more = _take_last(_select_messages(session), PAGE_SIZE)
    return _build_page(session, rows, has_earlier=has_more)


def load_page_before(session: Session, seq: int) -> MessagePage:
    """What comes before one message."""
    rows, has_more = _take_last(_select_messages(session).filter(seq__lt=seq), PAGE_SIZE)
    return _build_page(session, rows, has_earlier=has_more)


def load_page_after(session: Session, seq: int) -> MessagePage:
    """What follows one message."""
    rows, has_more = _take_first(_select_messages(session).filter(seq__gt=seq), PAGE_SIZE)
    return _build_page(session, rows, has_later=has_more)


def load_page_around(session: Session, seq: int) -> MessagePage:
    """One message, and as much before it as after."""
    earlier_rows, has_earlier = _take_last(
        _select_messages(session).filter(seq__lte=seq), PAGE_SIZE // 2
    )
    later_rows, has_later = _take_first(
        _select_messages(session).filter(seq__gt=seq), PAGE_SIZE // 2
    )
    return _build_page(
        session, earlier_rows + later_rows, has_earlier=has_earlier, has_later=has_later
    )


def load_page_since(session: Session, seq: int) -> MessagePage:
    """What a page shows that holds everything from one message to the end, as it is now."""
    rows = _select_messages(session)
    size = min(max(PAGE_SIZE, rows.filter(seq__gte=seq).count()), MAX_PAGE_SIZE)
    page_rows, has_more = _take_last(rows, size)
    return _build_page(session, page_rows, has_earlier=has_more)


def load_page_from(session: Session, seq: int, size: int) -> MessagePage:
    """What a page shows that holds so many messages from one on, as it is now; the end of the chat when nothing is there any more."""
    rows, has_more = _take_first(
        _select_messages(session).filter(seq__gte=seq), min(size, MAX_PAGE_SIZE)
    )
    return (
        _build_page(
            session,
            rows,
            has_earlier=_select_messages(session).filter(seq__lt=seq).exists(),
            has_later=has_more,
        )
        if rows
        else load_newest_page(session)
    )


def load_requested_page(session: Session, parameters: Mapping[str, str]) -> MessagePage:
    """The stretch that a page's parameters name; the newest messages when they name none."""
    match {
        name: int(text)
        for name, text in parameters.items()
        if text.isascii() and text.isdigit() and len(text) < 10
    }:
        case {"before": seq}:
            return load_page_before(session, seq)
        case {"after": seq}:
            return load_page_after(session, seq)
        case {"at": seq}:
            return load_page_around(session, seq)
        case {"since": seq, "size": size}:
            return load_page_from(session, seq, size)
        case {"since": seq}:
            return load_page_since(session, seq)
    return load_newest_page(session)


def _select_messages(session: Session) -> MessageQuerySet:
    return (
        session.messages.exclude_superseded()
        .exclude(role=Message.Role.SYSTEM)
        .select_related("turn")
    )


def _build_page(
    session: Session, rows: list[Message], *, has_earlier: bool = False, has_later: bool = False
) -> MessagePage:
    return MessagePage(
        entries=build_entries(session, rows),
        before=rows[0].seq if has_earlier and rows else None,
        after=rows[-1].seq if has_later and rows else None,
    )


def _take_last(rows: MessageQuerySet, size: int) -> tuple[list[Message], bool]:
    """The last rows, and whether there are more before them."""
    batch = list(rows.order_by("-seq")[: size + 1])
    page_rows = batch[:size][::-1]
    if len(batch) <= size:
        return page_rows, False
    return list(dropwhile(_is_result, page_rows)) or page_rows, True


def _take_first(rows: MessageQuerySet, size: int) -> tuple[list[Message], bool]:
    """The first rows, and whether there are more after them."""
    batch = list(rows.order_by("seq")[: size + 1])
    if len(batch) <= size:
        return batch, False
    end = size
    while end and _is_result(batch[end]):
        end -= 1
    return batch[: end or size], True


def _is_result(message: Message) -> bool:
    return message.role == Message.Role.TOOL
