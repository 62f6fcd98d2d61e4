"""Lists of items: what a client sent, what a reference names, and pages of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from django.contrib.auth.models import User
from django.db.models import QuerySet

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import ids, records
from chatcore.contrib.compat.responses.input_items import ItemLoader
from chatcore.contrib.compat.responses.output_items import Item, build_stored_items
from chatcore.contrib.compat.responses.request import build_not_found
from chatcore.models import Message

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
BATCH_SIZE = 25  # messages


def build_loader(user: User) -> ItemLoader:
    """Return the function that finds what references in a request of this user name."""

    def load_item(item_id: str, path: str) -> Mapping[str, object]:
        item = find_item(user, item_id)
        if item is None:
            raise build_not_found("Item", item_id, param=path)
        return item

    return load_item


def find_item(user: User, item_id: str) -> Item | None:
    """Return an item of the user by its id, or None."""
    place = ids.parse_item_id(item_id)
    message = records.find_referenced_message(user, place) if place else None
    if message is None:
        return None
    items = build_stored_items([message], has_images=True)
    return next((item for item in items if item["id"] == item_id), None)


def list_input_items(record: StoredResponse, query: Mapping[str, str]) -> dict[str, object]:
    """Return a page of a response's input, without the items of earlier responses."""
    earlier_count = len(record.previous.system_texts) if record.previous else 0
    first_items = [
        {
            "id": f"msg_{record.id.hex}{index:08x}",
            "type": "message",
            "status": "completed",
            "role": "system",
            "content": [{"type": "input_text", "text": text}],
        }
        for index, text in enumerate(record.system_texts[earlier_count:])
    ]
    first_items += [
        {"id": f"mcpa_{record.id.hex}{index:08x}", **approval}
        for index, approval in enumerate(record.request.get("approvals", ()))
    ]
    return paginate(records.query_input_messages(record), query, first_items=first_items)


def paginate(
    messages: QuerySet[Message],
    query: Mapping[str, str],
    *,
    first_items: Sequence[Item] = (),
    default_order: str = "desc",
) -> dict[str, object]:
    """Return a page of items as OpenAI does: `order`, `limit`, and `after` the id of an item.

    Only as many messages are read as the page needs. `first_items` stand before those of the
    messages.
    """
    order = query.get("order", default_order)
    if order not in ("asc", "desc"):
        raise InvalidFieldError("order", "Either asc or desc.")
    limit_text = query.get("limit", str(DEFAULT_LIMIT))
    is_number = limit_text.isascii() and limit_text.isdigit() and len(limit_text) <= 4
    if not is_number or not 1 <= int(limit_text) <= MAX_LIMIT:
        raise InvalidFieldError("limit", f"A whole number from 1 to {MAX_LIMIT}.")
    limit = int(limit_text)
    items = _iterate_items(messages, first_items, query.get("after", ""), is_down=order == "desc")
    found_items = list(islice(items, limit + 1))
    page = found_items[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(found_items) > limit,
    }


def _iterate_items(
    messages: QuerySet[Message], first_items: Sequence[Item], after_id: str, *, is_down: bool
) -> Iterator[Item]:
    """Yield the items after one with this id, or all; none after an id that is none of ours."""
    ordered_items = list(reversed(first_items)) if is_down else list(first_items)
    first_ids = [item["id"] for item in ordered_items]
    place = ids.parse_item_id(after_id)
    if after_id in first_ids:
        ordered_items = ordered_items[first_ids.index(after_id) + 1 :]
        message_items = iter(()) if is_down else _iterate_message_items(messages, is_down=is_down)
    elif not after_id:
        message_items = _iterate_message_items(messages, is_down=is_down)
    elif place and messages.filter(session=place.session_id, seq=place.seq).exists():
        ordered_items = ordered_items if is_down else []
        message_items = _iterate_message_items(messages, after_id, place.seq, is_down=is_down)
    else:
        return
    yield from (
        chain(message_items, ordered_items) if is_down else chain(ordered_items, message_items)
    )


def _iterate_message_items(
    messages: QuerySet[Message], after_id: str = "", seq: int | None = None, *, is_down: bool
) -> Iterator[Item]:
    """Yield the items of messages, from message number `seq` on and behind the item `after_id`."""
    is_behind = seq is None
    bound = {}
    if seq is not None:
        bound = {"seq__lte" if is_down else "seq__gte": seq}
    while True:
        rows = messages.select_related("turn").order_by("-seq" if is_down else "seq")
        batch = list(rows.filter(**bound)[:BATCH_SIZE])
        for message in batch:
            items = build_stored_items([message], has_images=True)
            for item in reversed(items) if is_down else items:
                if is_behind:
                    yield item
                is_behind = is_behind or item["id"] == after_id
            is_behind = True
        if len(batch) < BATCH_SIZE:
            return
        bound = {"seq__lt" if is_down else "seq__gt": batch[-1].seq}
