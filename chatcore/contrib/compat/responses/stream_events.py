"""Write the semantic events of a response while its answer arrives.

This module does no input or output: parts of an answer go in, events come out.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from chatcore.contrib.compat.responses.output_items import Item, ReasoningForm, build_text_part

Event = dict[str, Any]
END_EVENTS = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "failed": "response.failed",
    # The standard has no event for it; clients take an incomplete response as an end.
    "cancelled": "response.incomplete",
}

# By the type of a client's call: what its events are called, and which member they write.
CALL_EVENTS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
# What a summary calls a part and a text is called so without one.
REASONING_NAMES = {"part": "content_part", "text": "reasoning"}


def encode_event(event: Event) -> bytes:
    """Return an event of a stream as Server-Sent Events write it."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {text}\n\n".encode()


class EventWriter:
    """Writes the events of one response, numbered from 0."""

    def __init__(self, form: ReasoningForm) -> None:
        self._form = form
        self._number = 0
        self._item_count = 0
        self._item_ids: list[str] = []  # in the order of the stream
        self._stem = ""
        self._texts: dict[str, str] = {}  # of the open items, by their kind
        self._indexes: dict[str, int] = {}
        self._closed_kinds: set[str] = set()
        # As they were written: to seal the same words again gives other bytes.
        self._sealed_items: dict[str, Item] = {}
        self._open_calls: dict[str, int] = {}  # of MCP servers, and lists: their places

    def begin(self, resource: dict[str, object]) -> Iterator[Event]:
        """Yield the events before the first item."""
        is_background = resource["background"]
        first_status = "queued" if is_background else "in_progress"
        yield self._build("response.created", response=resource | {"status": first_status})
        if is_background:
            yield self._build("response.queued", response=resource | {"status": first_status})
        yield self._build("response.in_progress", response=resource)

    def add_compaction(self, item: Item) -> Iterator[Event]:
        """Yield the events of a compaction, which has no text to stream."""
        index = self._take_index()
        yield self._build("response.output_item.added", output_index=index, item=item)
        yield self._build("response.compaction.compacting", item_id=item["id"], output_index=index)
        yield self._build("response.output_item.done", output_index=index, item=item)

    def begin_message(self, stem: str) -> None:
        """Begin a message of the model, with what the ids of its items end with."""
        self._stem = stem
        self._texts.clear()
        self._indexes.clear()
        self._closed_kinds.clear()

    def add_reasoning(self, text: str) -> Iterator[Event]:
        """Yield the events of a piece of reasoning."""
        # Reasoning after the text is in the final item only, which stands before the text.
        if "reasoning" in self._closed_kinds or "text" in self._texts:
            return
        if "reasoning" not in self._texts:
            yield from self._open_reasoning()
        self._texts["reasoning"] += text
        yield self._build_reasoning("text", "delta", delta=text)

    def add_text(self, text: str) -> Iterator[Event]:
        """Yield the events of a piece of the answer's text."""
        if "text" not in self._texts:
            # What seals it comes with the end of the message, and clients keep the item as it ends.
            if not self._form.is_sealed:
                yield from self._close_reasoning(None)
            yield from self._open_text()
        self._texts["text"] += text
        yield self._build_text("response.output_text.delta", delta=text, logprobs=[])

    def end_message(self, items: Sequence[Item]) -> Iterator[Event]:
        """Yield what is missing of a message, given its items as they are stored."""
        for item in items:
            if item["type"] == "reasoning":
                yield from self._close_reasoning(item)
            elif item["type"] == "message":
                yield from self._close_text(item)
            elif item["type"] in CALL_EVENTS:
                yield from self._write_call(item)
            elif item["type"] == "tool_search_call":
                yield from self._write_whole(item)
            else:
                yield from self.add_server_item(item)

    def add_server_item(self, item: Item) -> Iterator[Event]:
        """Yield the events of an MCP server's item, up to its end if that is there already."""
        if item["type"] == "mcp_approval_request":
            yield from self._write_whole(item)
            return
        yield from self._open_server_item(item)
        if item.get("status") != "in_progress":
            yield from self.close_server_item(item)

    def begin_list(self, item: Item) -> Iterator[Event]:
        """Yield the events of a list of tools that is asked for now."""
        yield from self._open_server_item(item)

    def close_server_item(self, item: Item) -> Iterator[Event]:
        """Yield the end of a call or a list, unless it was written before."""
        index = self._open_calls.pop(item["id"], None)
        if index is None:
            return
        has_failed = bool(item.get("error"))
        if item.get("status") != "incomplete":
            end = "failed" if has_failed else "completed"
            type = f"response.{item['type']}.{end}"
            yield self._build(type, item_id=item["id"], output_index=index)
        yield self._build("response.output_item.done", output_index=index, item=item)

    def finish(
        self, resource: dict[str, Any], error: dict[str, Any] | None = None
    ) -> Iterator[Event]:
        """Yield the last events; `error` comes before the end of a response that failed."""
        for item in resource["output"]:
            if item["id"] in self._open_calls:
                yield from self.close_server_item(item)
        if error:
            yield self._build("error", error=error)
        # Reasoning that came after the text was streamed after it.
        places = {item_id: place for place, item_id in enumerate(self._item_ids)}
        output = sorted(resource["output"], key=lambda item: places.get(item["id"], len(places)))
        output = [self._sealed_items.get(item["id"], item) for item in output]
        resource = resource | {"output": output}
        yield self._build(END_EVENTS[resource["status"]], response=resource)

    def _build(self, type: str, **members: Any) -> Event:
        if type == "response.output_item.added":
            self._item_ids.append(members["item"]["id"])
        if type == "response.output_item.done" and "encrypted_content" in members["item"]:
            self._sealed_items[members["item"]["id"]] = members["item"]
        event = {"type": type, "sequence_number": self._number, **members}
        self._number += 1
        return event

    def _take_index(self) -> int:
        self._item_count += 1
        return self._item_count - 1

    def _write_whole(self, item: Item) -> Iterator[Event]:
        """Yield the events of an item that has nothing to stream."""
        index = self._take_index()
        yield self._build("response.output_item.added", output_index=index, item=item)
        yield self._build("response.output_item.done", output_index=index, item=item)

    def _open_reasoning(self) -> Iterator[Event]:
        self._texts["reasoning"] = ""
        index = self._indexes["reasoning"] = self._take_index()
        item = {"id": f"rs_{self._stem}", "type": "reasoning", "summary": []}
        yield self._build("response.output_item.added", output_index=index, item=item)
        part_type = "summary_text" if self._form.is_summary else "reasoning_text"
        yield self._build_reasoning("part", "added", part={"type": part_type, "text": ""})

    def _close_reasoning(self, item: Item | None) -> Iterator[Event]:
        """Close the reasoning, with its stored item if it is there already."""
        if "reasoning" in self._closed_kinds:
            return
        text = self._texts.get("reasoning")
        if item is not None and not (item["summary"] or item.get("content")):
            yield from self._write_whole(item)
            return
        if item is not None:
            part = (item["summary"] or item["content"])[0]
            if text is None:
                yield from self._open_reasoning()
                text = ""
            if part["text"].startswith(text) and part["text"] != text:
                yield self._build_reasoning("text", "delta", delta=part["text"][len(text) :])
            text = part["text"]
        if text is None:
            return
        part_type = "summary_text" if self._form.is_summary else "reasoning_text"
        part = {"type": part_type, "text": text}
        if item is None:
            key = "summary" if self._form.is_summary else "content"
            item = {"id": f"rs_{self._stem}", "type": "reasoning", "summary": []} | {key: [part]}
        yield self._build_reasoning("text", "done", text=text)
        yield self._build_reasoning("part", "done", part=part)
        yield self._build(
            "response.output_item.done", output_index=self._indexes["reasoning"], item=item
        )
        self._closed_kinds.add("reasoning")

    def _build_reasoning(self, thing: str, moment: str, **members: object) -> Event:
        """Return an event of the reasoning's summary, or of the reasoning itself."""
        if self._form.is_summary:
            type = f"response.reasoning_summary_{thing}.{moment}"
            members["summary_index"] = 0
        else:
            type = f"response.{REASONING_NAMES[thing]}.{moment}"
            members["content_index"] = 0
        return self._build(
            type,
            item_id=f"rs_{self._stem}",
            output_index=self._indexes["reasoning"],
            **members,
        )

    def _open_text(self) -> Iterator[Event]:
        self._texts["text"] = ""
        index = self._indexes["text"] = self._take_index()
        item = {
            "id": f"msg_{self._stem}",
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        yield self._build("response.output_item.added", output_index=index, item=item)
        yield self._build_text("response.content_part.added", part=build_text_part(""))

    def _close_text(self, item: Item) -> Iterator[Event]:
        [part] = item["content"]
        if "text" not in self._texts:
            yield from self._open_text()
        text = self._texts["text"]
        if part["text"].startswith(text) and part["text"] != text:
            delta = part["text"][len(text) :]
            yield self._build_text("response.output_text.delta", delta=delta, logprobs=[])
        yield self._build_text("response.output_text.done", text=part["text"], logprobs=[])
        yield self._build_text("response.content_part.done", part=part)
        yield self._build(
            "response.output_item.done", output_index=self._indexes["text"], item=item
        )

    def _build_text(self, type: str, **members: object) -> Event:
        return self._build(
            type,
            item_id=f"msg_{self._stem}",
            output_index=self._indexes["text"],
            content_index=0,
            **members,
        )

    def _open_server_item(self, item: Item) -> Iterator[Event]:
        """Yield the beginning of a call with its arguments, or of a list."""
        index = self._open_calls[item["id"]] = self._take_index()
        place = {"item_id": item["id"], "output_index": index}
        is_call = item["type"] == "mcp_call"
        empty_members: dict[str, object] = {"tools": []}
        if is_call:
            empty_members = {"status": "in_progress", "arguments": "", "output": None}
        open_item = {name: value for name, value in item.items() if name != "error"}
        yield self._build(
            "response.output_item.added", output_index=index, item=open_item | empty_members
        )
        yield self._build(f"response.{item['type']}.in_progress", **place)
        if is_call:
            arguments = item["arguments"]
            yield self._build("response.mcp_call_arguments.delta", **place, delta=arguments)
            yield self._build("response.mcp_call_arguments.done", **place, arguments=arguments)

    def _write_call(self, item: Item) -> Iterator[Event]:
        index = self._take_index()
        place = {"item_id": item["id"], "output_index": index}
        name, key = CALL_EVENTS[item["type"]]
        open_item = item | {"status": "in_progress", key: ""}
        yield self._build("response.output_item.added", output_index=index, item=open_item)
        yield self._build(f"response.{name}.delta", **place, delta=item[key])
        members = {key: item[key]} | ({"name": item["name"]} if key == "arguments" else {})
        yield self._build(f"response.{name}.done", **place, **members)
        yield self._build("response.output_item.done", output_index=index, item=item)
