"""Lists of items: what a client sent, what a reference names, and pages of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from chatcore.faces.responses import ids, records
from chatcore.faces.responses.input_items import ItemLoader
from chatcore.faces.responses.output_items import Item, build_stored_items
from chatcore.faces.responses.request import build_not_found
from chatcore.models import StoredResponse
from chatcore.rest.problems import InvalidFieldError

DEFAULT_LIMIT = 20
MAX_LIMIT = 100


def build_loader(user: Any) -> ItemLoader:
    """Return the function that finds what references in a request of this user name."""

    def load_item(item_id: str, path: str) -> Mapping[str, Any]:
        item = find_item(user, item_id)
        if item is None:
            raise build_not_found("Item", item_id, param=path)
        return item

    return load_item


def find_item(user: Any, item_id: str) -> Item | None:
    """Return an item of the user by its id, or None."""
    place = ids.parse_item_id(item_id)
    message = records.find_referenced_message(user, place) if place else None
    if message is None:
        return None
    items = build_stored_items([message], has_images=True)
    return next((item for item in items if item["id"] == item_id), None)


def build_input_items(record: StoredResponse) -> list[Item]:
    """Return the items of a response's input, without those of earlier responses."""
    earlier_count = len(record.previous.system_texts) if record.previous else 0
    system_items = [
        {
            "id": f"msg_{record.id.hex}{index:08x}",
            "type": "message",
            "status": "completed",
            "role": "system",
            "content": [{"type": "input_text", "text": text}],
        }
        for index, text in enumerate(record.system_texts[earlier_count:])
    ]
    messages = records.load_input_messages(record)
    return system_items + build_stored_items(messages, has_images=True)


def paginate(
    items: Sequence[Item], query: Mapping[str, str], *, default_order: str = "desc"
) -> dict[str, Any]:
    """Return a page of items as OpenAI does: `order`, `limit`, and `after` the id of an item."""
    order = query.get("order", default_order)
    if order not in ("asc", "desc"):
        raise InvalidFieldError("order", "Either asc or desc.")
    limit_text = query.get("limit", str(DEFAULT_LIMIT))
    is_number = limit_text.isascii() and limit_text.isdigit() and len(limit_text) <= 4
    if not is_number or not 1 <= int(limit_text) <= MAX_LIMIT:
        raise InvalidFieldError("limit", f"A whole number from 1 to {MAX_LIMIT}.")
    limit = int(limit_text)
    ordered_items = list(items) if order == "asc" else list(items)[::-1]
    after_id = query.get("after")
    if after_id:
        positions = [index for index, item in enumerate(ordered_items) if item["id"] == after_id]
        ordered_items = ordered_items[positions[0] + 1 :] if positions else []
    page = ordered_items[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(ordered_items) > limit,
    }
