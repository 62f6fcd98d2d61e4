"""Calling a provider over a real socket, in the words of the provider tests."""

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
)
from chatcore.providers.errors import ProviderError
from tests.support.scripted import ScriptedModel

KEY = "sk-test-0123456789abcdef"
PROTOCOLS = ["openai", "anthropic"]


def connection_to(scripted: ScriptedModel, protocol: str, **other: Any) -> Connection:
    base_url = scripted.base_url if protocol == "openai" else scripted.anthropic_base_url
    settings: dict[str, Any] = {"api_key": KEY, "timeout_seconds": 10, "max_retries": 0} | other
    return Connection(protocol=protocol, base_url=base_url, **settings)


def saying(*messages: ChatMessage, **other: Any) -> Request:
    return Request(
        model="test-model",
        messages=messages or (ChatMessage(role="user", content="Hello?"),),
        **other,
    )


async def listen(connection: Connection, request: Request | None = None) -> list[StreamPart]:
    return [part async for part in provider_registry.stream(connection, request or saying())]


async def failure_of(connection: Connection, request: Request | None = None) -> ProviderError:
    """The error the call ends with; anything but one of the family fails the test by itself."""
    try:
        parts = await listen(connection, request)
    except ProviderError as error:
        return error
    raise AssertionError(f"It was answered: {parts}")


def text_of(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


def reasoning_of(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, ReasoningDelta))


def end_of(parts: list[StreamPart]) -> StreamEnd:
    assert isinstance(parts[-1], StreamEnd)
    return parts[-1]
