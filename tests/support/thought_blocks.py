"""Answers of Claude with thoughts between its texts and calls."""

import json
from collections.abc import Sequence
from typing import Any

from tests.support.scripted_wire import Reply


def thought(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": f"signed {text}"}


LOOKING = {"type": "tool_use", "name": "weather", "input": {}}
ORDERS: list[list[dict[str, Any]]] = [
    [thought("A"), {"type": "text", "text": "First, "}, thought("B"), LOOKING],
    [thought("A"), LOOKING, thought("B"), LOOKING],
    [{"type": "text", "text": "Well, "}, thought("A"), {"type": "text", "text": "so. "}, LOOKING],
    [thought("A"), {"type": "text", "text": " "}, thought("B"), LOOKING],
]


def stream_blocks(blocks: Sequence[dict[str, Any]]) -> Reply:
    """A streamed message of these blocks, each whole in its first event."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {}}]
    for index, block in enumerate(blocks):
        named_block = block | {"id": f"call_{index}"} if block["type"] == "tool_use" else block
        events += [
            {"type": "content_block_start", "index": index, "content_block": named_block},
            {"type": "content_block_stop", "index": index},
        ]
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    events.append({"type": "message_stop"})
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return Reply(body="".join(lines).encode(), headers={"Content-Type": "text/event-stream"})
