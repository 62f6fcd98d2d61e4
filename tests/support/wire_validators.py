"""What both protocols demand of a request's messages, as their providers refuse it: a validator of each wire format."""

import re
from collections.abc import Iterator
from typing import Any

from chatcore.providers import anthropic_wire, openai_wire
from chatcore.providers.base import Request


def find_wire_violations(request: Request) -> list[str]:
    """Sentences on what either protocol would refuse."""
    return [
        *check_openai(openai_wire.build_messages(request)),
        *check_anthropic(anthropic_wire.build_messages(request)),
    ]


def check_openai(messages: list[dict[str, Any]]) -> Iterator[str]:
    """System texts first; every call answered at once, by its own results alone; every result asked for; nothing empty."""
    waiting: set[str] = set()
    conversation_began = False
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "system" and conversation_began:
            yield f"openai {index}: a system message after the conversation began"
        conversation_began = conversation_began or role != "system"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"openai {index}: a result that no call right before it waits for"
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            yield f"openai {index}: calls without results: {waiting}"
        ids = [call["id"] for call in message.get("tool_calls", ())]
        waiting = set(ids)
        if len(ids) != len(waiting):
            yield f"openai {index}: the same id for two calls"
        if not message.get("content") and not ids:
            yield f"openai {index}: says nothing"
    if waiting:
        yield f"openai: calls without results at the end: {waiting}"


def check_anthropic(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Roles alternate, the user's first; the results of a message's calls open the next one, all of them; every id once; no empty text."""
    waiting: list[str] = []
    used_ids: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[index % 2]:
            yield f"anthropic {index}: roles do not alternate from the user's on"
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting) or any(
            block["type"] != "tool_result" for block in blocks[: len(results)]
        ):
            yield f"anthropic {index}: {waiting} wait for results, {results} come"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for call_id in waiting:
            if call_id in used_ids or not re.fullmatch(r"[a-zA-Z0-9_-]+", call_id):
                yield f"anthropic {index}: the id {call_id} was used before, or has other characters"
            used_ids.add(call_id)
        if not blocks or any(
            block["type"] == "text" and not block["text"].strip() for block in blocks
        ):
            yield f"anthropic {index}: says nothing"
    if waiting:
        yield f"anthropic: calls without results at the end: {waiting}"
