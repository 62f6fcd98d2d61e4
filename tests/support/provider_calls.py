"""Helpers that call a provider over a real socket."""

import json
from typing import Any

from chatcore.providers import registry as provider_registry
from chatcore.providers.base import (
    ChatMessage,
    Connection,
    ReasoningDelta,
    Request,
    StreamEnd,
    StreamPart,
    TextDelta,
    Tool,
)
from chatcore.providers.dialects import join_facts
from chatcore.providers.errors import ProviderError
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

KEY = "sk-test-0123456789abcdef"
PROTOCOLS = ["openai", "anthropic"]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
LOOK = Tool(name="look", description="Look at it.", parameters=SCHEMA)


def build_connection(scripted: ScriptedModel, protocol: str, **other: Any) -> Connection:
    base_url = scripted.base_url if protocol == "openai" else scripted.anthropic_base_url
    settings: dict[str, Any] = {"api_key": KEY, "timeout_seconds": 10, "max_retries": 0} | other
    learned: dict[str, dict[str, object]] = {}

    async def keep_facts(model: str, facts: dict[str, object]) -> None:
        learned[model] = join_facts(learned.get(model, {}), facts)

    return Connection(
        protocol=protocol, base_url=base_url, learned=learned, keep_facts=keep_facts, **settings
    )


def make_request(*messages: ChatMessage, **other: Any) -> Request:
    return Request(
        model="test-model",
        messages=messages or (ChatMessage(role="user", content="Hello?"),),
        **other,
    )


async def collect_parts(connection: Connection, request: Request | None = None) -> list[StreamPart]:
    return [part async for part in provider_registry.stream(connection, request or make_request())]


async def catch_error(connection: Connection, request: Request | None = None) -> ProviderError:
    """Return the ProviderError that the call ends with. Any other error fails the test."""
    try:
        parts = await collect_parts(connection, request)
    except ProviderError as error:
        return error
    raise AssertionError(f"The call succeeded: {parts}")


def join_text(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


def join_reasoning(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, ReasoningDelta))


def get_end(parts: list[StreamPart]) -> StreamEnd:
    assert isinstance(parts[-1], StreamEnd)
    return parts[-1]


def build_refusal(status: int, message: str, /, **fields: Any) -> Reply:
    """An error body in the shape that both protocols' servers send."""
    return Reply(
        status=status,
        body=json.dumps({"type": "error", "error": {"message": message, **fields}}).encode(),
    )


def build_error_event(**fields: Any) -> Reply:
    """An error inside a stream that began with 200."""
    return Reply(
        body=f"event: error\ndata: {json.dumps({'type': 'error', 'error': fields})}\n\n".encode(),
        headers={"Content-Type": "text/event-stream"},
    )
