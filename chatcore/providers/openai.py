"""The OpenAI protocol, also spoken by Gemini, Mistral, Ollama, vLLM, llama.cpp and many others.

Embeddings and completions of a prompt, which no other protocol has, are passed on: the body goes
out as it came, and the provider's answer comes back as it is.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import urlsplit

from chatcore.providers import client as provider_client
from chatcore.providers import openai_stream, openai_wire, platforms
from chatcore.providers.base import Connection, Request, StreamPart
from chatcore.providers.deadline import Deadline
from chatcore.providers.dialects import find_dialect
from chatcore.providers.error_mapping import translate_errors
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.quirks.control_tokens import escape_control_tokens
from chatcore.providers.quirks.written_calls import read_written_calls
from chatcore.providers.server_facts import select_fields

_PLATFORM_CLIENTS = {"azure": platforms.build_azure_client}


class OpenAIProvider:
    """Chat completions.

    Options of the provider's row: `headers`, `query` and `body`, which are sent with every call,
    `tool_body`, for calls that offer tools, where the request says nothing else,
    `max_tokens_field`, `tells_reading`, `control_tokens` (`quirks/control_tokens.py`),
    `written_calls` (`quirks/written_calls.py`), `dialect` (`dialects.py`) and `client`
    (`platforms.py`).
    """

    sdk_name = "openai"

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        """Send the request, and yield its parts as they arrive. Raises only ProviderErrors."""
        await provider_client.load_sdk(self.sdk_name)
        import openai

        with translate_errors(openai, connection, request):
            options = await provider_client.build_client_options(openai, connection)
            client = platforms.build_client(
                openai, connection, options, usual="AsyncOpenAI", others=_PLATFORM_CLIENTS
            )
            create: Any = client.chat.completions.create
            arguments = _build_arguments(connection, request, create)
            tool_names = (tool.name for tool in request.tools)
            dialect = find_dialect(connection, request.model)
            reader = openai_stream.OpenAIStreamReader(
                request.model,
                tool_names,
                begins_thinking=dialect.begins_thinking,
                tell_reading=connection.tell_reading,
            )
            parts = provider_client.stream_parts(
                create(**arguments), reader, connection.timeout_seconds
            )
            if request.tools and connection.options.get("written_calls"):
                parts = read_written_calls(parts, request.tools)
            async with aclosing(parts):
                async for part in parts:
                    yield part

    def normalize(self, request: Request) -> Request:
        """Return a request that every server of this protocol takes."""
        return openai_wire.normalize(request)

    def translate_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters unchanged: they are in this protocol's words already."""
        return dict(params)

    def list_ignored_params(self, params: Mapping[str, Any]) -> list[str]:
        """Return nothing: the parameters are this protocol's own."""
        return []


async def fetch_answer(connection: Connection, path: str, body: Mapping[str, Any]) -> Any:
    """Send a body to a path of the provider and return its JSON. Raises only ProviderErrors."""
    await provider_client.load_sdk(OpenAIProvider.sdk_name)
    import httpx2
    import openai

    with translate_errors(openai, connection):
        client = await _build_client(openai, connection)
        sent_body = dict(body) | connection.options.get("body", {})
        response = await client.post(f"/{path}", cast_to=httpx2.Response, body=sent_body)
        answer = response.json()
    if not isinstance(answer, dict):
        raise ProviderUnavailable("The provider's answer is no JSON object.")
    return answer


async def stream_answer(
    connection: Connection, path: str, body: Mapping[str, Any]
) -> AsyncGenerator[bytes]:
    """Send a body that asks for a stream, and yield the answer's bytes as they arrive.

    Each piece must come within the provider's timeout. Raises only ProviderErrors.
    """
    await provider_client.load_sdk(OpenAIProvider.sdk_name)
    import openai

    with translate_errors(openai, connection):
        client = await _build_client(openai, connection)
        sent_body = dict(body) | connection.options.get("body", {})
        deadline = Deadline(connection.timeout_seconds)
        stream: Any = None
        try:
            with deadline:
                stream = await client.post(
                    f"/{path}",
                    cast_to=object,
                    body=sent_body,
                    stream=True,
                    stream_cls=openai.AsyncStream[object],
                )
            async with aclosing(stream.response.aiter_bytes()) as chunks:
                while True:
                    with deadline:
                        chunk = await anext(chunks, b"")
                    if not chunk:
                        return
                    deadline.renew()
                    yield chunk
        finally:
            deadline.close()
            if stream:
                with suppress(Exception):
                    await stream.close()


async def _build_client(openai: Any, connection: Connection) -> Any:
    options = await provider_client.build_client_options(openai, connection)
    return platforms.build_client(
        openai, connection, options, usual="AsyncOpenAI", others=_PLATFORM_CLIENTS
    )


def _build_arguments(connection: Connection, request: Request, create: Any) -> dict[str, Any]:
    arguments = provider_client.to_sdk_arguments(
        create,
        select_fields(connection, provider_client.select_params(request)),
        _select_body_options(connection, request),
    )
    # What comes as `extra_body` goes out as it is. The SDK compares everything else with its types,
    # which takes 0.3 ms for each message.
    dialect = find_dialect(connection, request.model)
    body: dict[str, Any] = {"messages": openai_wire.build_messages(request, dialect)}
    if connection.options.get("system_role") is False:
        _move_system_text(body["messages"])
    if request.tools:
        body["tools"] = openai_wire.build_tools(request, dialect)
    if connection.options.get("control_tokens"):
        body = escape_control_tokens(body)
    arguments |= {
        "model": request.model,
        "messages": [],
        "stream": True,
        "extra_body": body | arguments.get("extra_body", {}),
    }
    left_out = connection.options.get("without", ())
    if "stream_options" not in left_out:
        arguments["stream_options"] = {"include_usage": True}
    if (
        connection.tell_reading
        and connection.options.get("tells_reading")
        and "return_progress" not in left_out
    ):
        arguments["extra_body"]["return_progress"] = True  # llama.cpp's
    if request.max_tokens:
        arguments[_choose_max_tokens_field(connection)] = request.max_tokens
    return arguments


def _move_system_text(messages: list[dict[str, Any]]) -> None:
    """Put the system text before the user's first words, for templates without that role."""
    if len(messages) < 2 or messages[0]["role"] != "system" or messages[1]["role"] != "user":
        if messages and messages[0]["role"] == "system":
            messages[0]["role"] = "user"
        return
    text = messages.pop(0)["content"]
    content = messages[0]["content"]
    if isinstance(content, str):
        messages[0]["content"] = f"{text}\n\n{content}"
    else:
        messages[0]["content"] = [{"type": "text", "text": text}, *content]


def _select_body_options(connection: Connection, request: Request) -> dict[str, Any]:
    """Return the fields that the provider's row adds to a request."""
    fields: dict[str, Any] = dict(connection.options.get("body", {}))
    if request.tools:
        tool_fields = connection.options.get("tool_body", {})
        fields |= {name: value for name, value in tool_fields.items() if name not in request.params}
    return fields


def _choose_max_tokens_field(connection: Connection) -> str:
    # OpenAI's reasoning models refuse `max_tokens`; many compatible servers know nothing else.
    option = connection.options.get("max_tokens_field")
    if option:
        return str(option)
    is_openai = urlsplit(connection.base_url).hostname in (None, "api.openai.com")
    return "max_completion_tokens" if is_openai else "max_tokens"
