"""Validators of both wire formats: the rules by which providers reject a request's messages."""

import re
from collections.abc import Iterator
from typing import Any

from chatcore.providers import anthropic_wire, openai_wire
from chatcore.providers.base import Request


def find_wire_violations(request: Request) -> list[str]:
    """Return a sentence for each rule of either protocol that the request breaks."""
    return [
        *check_openai(openai_wire.build_messages(request)),
        *check_anthropic(anthropic_wire.build_messages(request)),
    ]


def check_openai(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Check that system texts come first, and results right after their calls; nothing is empty."""
    pending: set[str] = set()
    conversation_began = False
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "system" and conversation_began:
            yield f"openai {index}: a system message after the conversation began"
        conversation_began = conversation_began or role != "system"
        if role == "tool":
            if message["tool_call_id"] not in pending:
                yield f"openai {index}: a result that no call right before it waits for"
            pending.discard(message["tool_call_id"])
            continue
        if pending:
            yield f"openai {index}: calls without results: {pending}"
        ids = [call["id"] for call in message.get("tool_calls", ())]
        pending = set(ids)
        if len(ids) != len(pending):
            yield f"openai {index}: the same id for two calls"
        if not message.get("content") and not ids:
            yield f"openai {index}: says nothing"
    if pending:
        yield f"openai: calls without results at the end: {pending}"


def check_anthropic(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Check that roles alternate, the user's first, and that no text is empty.

    All results of a message's calls must open the next message, and every id may occur only once.
    """
    pending: list[str] = []
    used_ids: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[index % 2]:
            yield f"anthropic {index}: roles do not alternate from the user's on"
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(pending) or any(
            block["type"] != "tool_result" for block in blocks[: len(results)]
        ):
            yield f"anthropic {index}: {pending} wait for results, {results} come"
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for call_id in pending:
            if call_id in used_ids or not re.fullmatch(r"[a-zA-Z0-9_-]+", call_id):
                yield f"anthropic {index}: the id {call_id} is used twice or has bad characters"
            used_ids.add(call_id)
        if not blocks or any(
            block["type"] == "text" and not block["text"].strip() for block in blocks
        ):
            yield f"anthropic {index}: says nothing"
    if pending:
        yield f"anthropic: calls without results at the end: {pending}"
