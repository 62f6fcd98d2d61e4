"""Pages of a chat's messages: the newest ones, or those before, after or around a message.

Each page is one range of an index, so its cost does not grow with the chat. A page never begins or
ends between a tool call and its results.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import dropwhile

from chatcore.models import Message, MessageQuerySet, Session
from chatcore.web.timeline import TimelineEntry, build_entries

PAGE_SIZE = 60  # messages
# Messages that a browser shows at once; message_pager.js removes more.
MAX_PAGE_SIZE = 200


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """Entries in reading order.

    `before` and `after` are the seqs from which the neighboring pages go on; None at the ends of
    the chat.
    """

    entries: list[TimelineEntry]
    before: int | None = None
    after: int | None = None


def load_newest_page(session: Session) -> MessagePage:
    """Load the newest messages of the chat."""
    rows, has_more = _take_last(_select_messages(session), PAGE_SIZE)
    return _build_page(session, rows, has_earlier=has_more)


def load_page_before(session: Session, seq: int) -> MessagePage:
    """Load the messages before a message."""
    rows, has_more = _take_last(_select_messages(session).filter(seq__lt=seq), PAGE_SIZE)
    return _build_page(session, rows, has_earlier=has_more)


def load_page_after(session: Session, seq: int) -> MessagePage:
    """Load the messages after a message."""
    rows, has_more = _take_first(_select_messages(session).filter(seq__gt=seq), PAGE_SIZE)
    return _build_page(session, rows, has_later=has_more)


def load_page_around(session: Session, seq: int) -> MessagePage:
    """Load half a page up to and including a message, and half a page after it."""
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
    """Load everything from a message to the end, at least a page and at most MAX_PAGE_SIZE."""
    rows = _select_messages(session)
    size = min(max(PAGE_SIZE, rows.filter(seq__gte=seq).count()), MAX_PAGE_SIZE)
    page_rows, has_more = _take_last(rows, size)
    return _build_page(session, page_rows, has_earlier=has_more)


def load_page_from(session: Session, seq: int, size: int) -> MessagePage:
    """Load `size` messages from a message on, at most MAX_PAGE_SIZE.

    If no message is left there, load the newest page.
    """
    messages = _select_messages(session)
    rows, has_later = _take_first(messages.filter(seq__gte=seq), min(size, MAX_PAGE_SIZE))
    if not rows:
        return load_newest_page(session)
    has_earlier = messages.filter(seq__lt=seq).exists()
    return _build_page(session, rows, has_earlier=has_earlier, has_later=has_later)


def load_requested_page(session: Session, parameters: Mapping[str, str]) -> MessagePage:
    """Load the page that the query parameters name; without usable ones the newest page."""
    numbers = {name: int(text) for name, text in parameters.items() if _is_seq(text)}
    match numbers:
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


def _is_seq(text: str) -> bool:
    # Longer numbers would not fit into the column, and the database would raise.
    return text.isascii() and text.isdigit() and len(text) < 10


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
    """Return at most `size` rows from the end, and whether there are more before them."""
    batch = list(rows.order_by("-seq")[: size + 1])
    page_rows = batch[:size][::-1]
    if len(batch) <= size:
        return page_rows, False
    # Results at the beginning belong to a call of the page before. A page of nothing but results,
    # of one call with very many, keeps them: an empty page would be the end of the chat.
    rows_from_call = list(dropwhile(_is_result, page_rows))
    return rows_from_call or page_rows, True


def _take_first(rows: MessageQuerySet, size: int) -> tuple[list[Message], bool]:
    """Return at most `size` rows from the beginning, and whether there are more after them."""
    batch = list(rows.order_by("seq")[: size + 1])
    if len(batch) <= size:
        return batch, False
    # If the results of a call do not all fit, end before the call, unless nothing would be left.
    end = size
    while end and _is_result(batch[end]):
        end -= 1
    return batch[: end or size], True


def _is_result(message: Message) -> bool:
    return message.role == Message.Role.TOOL
