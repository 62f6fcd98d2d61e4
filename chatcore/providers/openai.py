"""The OpenAI protocol, also spoken by Gemini, Mistral, Ollama, vLLM, llama.cpp and many others.

Embeddings and completions of a prompt, which no other protocol has, are passed on: the body goes
out as it came, and the provider's answer comes back as it is.
"""

import base64
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from chatcore.providers import client as provider_client
from chatcore.providers import openai_stream
from chatcore.providers.base import (
    Capabilities,
    ChatMessage,
    Connection,
    Image,
    Request,
    StreamPart,
    Tool,
    ToolCall,
)
from chatcore.providers.client import Deadline
from chatcore.providers.dialects import Dialect, find_dialect, select_fields
from chatcore.providers.error_mapping import translate_errors
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.normal_form import CallIds, build_normal_form
from chatcore.providers.provider_data import (
    Reasoning,
    select_extras,
    select_reasoning,
    select_tagged_thoughts,
)
from chatcore.providers.quirks.control_tokens import escape_control_tokens
from chatcore.providers.quirks.written_calls import read_written_calls
from chatcore.providers.tool_schemas import build_schema

_PLATFORM_CLIENTS = {"azure": provider_client.build_azure_client}


class OpenAIProvider:
    """Chat completions.

    Options of the provider's row: `headers`, `query` and `body`, which are sent with every call,
    `tool_body`, for calls that offer tools, where the request says nothing else,
    `max_tokens_field`, `tells_reading`, `control_tokens` (`quirks/control_tokens.py`),
    `written_calls` (`quirks/written_calls.py`), `dialect` (`dialects.py`) and `client`
    (`client.py`).
    """

    capabilities = Capabilities(has_other_requests=True)
    sdk_name = "openai"

    async def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        """Send the request, and yield its parts as they arrive. Raises only ProviderErrors."""
        await provider_client.load_sdk(self.sdk_name)
        import openai

        with translate_errors(openai, connection, request):
            options = await provider_client.build_client_options(openai, connection)
            client = provider_client.build_client(
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
        return normalize(request)

    def translate_params(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return the parameters unchanged: they are in this protocol's words already."""
        return dict(params)

    def list_ignored_params(self, params: Mapping[str, object]) -> list[str]:
        """Return nothing: the parameters are this protocol's own."""
        return []


async def fetch_answer(connection: Connection, path: str, body: Mapping[str, object]) -> Any:
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
    connection: Connection, path: str, body: Mapping[str, object]
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


async def _build_client(openai: object, connection: Connection) -> Any:
    options = await provider_client.build_client_options(openai, connection)
    return provider_client.build_client(
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
    body: dict[str, Any] = {"messages": build_messages(request, dialect)}
    if connection.options.get("system_role") is False:
        _move_system_text(body["messages"])
    if request.tools:
        body["tools"] = build_tools(request, dialect)
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
    fields: dict[str, object] = dict(connection.options.get("body", {}))
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


_USUAL_DIALECT = Dialect()
# Google names this value for calls that its own models did not make.
_FOREIGN_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}


def normalize(request: Request, dialect: Dialect = _USUAL_DIALECT) -> Request:
    """Return a request that every server takes: one system text, and roles that alternate.

    The templates of many models refuse a second system text, and two messages of one role in a row.
    Two answers may still follow each other here; `build_messages` joins them.
    """
    messages = build_normal_form(
        request.messages,
        has_tools=bool(request.tools),
        has_result_images=False,
        max_calls=dialect.max_calls,
    )
    system = "\n\n".join(text for text in (request.system, request.preface) if text.strip())
    return replace(request, system=system, preface="", messages=_join_user_messages(messages))


def build_messages(request: Request, dialect: Dialect = _USUAL_DIALECT) -> list[dict[str, Any]]:
    """Return the system text and the messages of a request, as a server's dialect wants them."""
    request = normalize(request, dialect)
    api_messages: list[dict[str, object]] = []
    if request.system:
        api_messages.append({"role": "system", "content": request.system})
    call_ids = CallIds(has_names=dialect.has_named_call_ids)
    for message in request.messages:
        api_message = _build_message(message, request.model, dialect, call_ids)
        if message.role == "assistant" and api_messages[-1]["role"] == "assistant":
            _join_answers(api_messages[-1], api_message)
        else:
            api_messages.append(api_message)
    return api_messages


def build_tools(request: Request, dialect: Dialect = _USUAL_DIALECT) -> list[dict[str, Any]]:
    """Return the tool definitions of a request."""
    return [
        {"type": "function", "function": _build_function(tool, dialect)} for tool in request.tools
    ]


def _build_function(tool: Tool, dialect: Dialect) -> dict[str, object]:
    function: dict[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": build_schema(tool, is_simple=dialect.has_simple_schemas),
    }
    if tool.strict:  # otherwise left out, because not every server knows it
        function["strict"] = True
    return function


def _join_user_messages(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Join neighbors in the role of the user."""
    output_messages: list[ChatMessage] = []
    for message in messages:
        last_message = output_messages[-1] if output_messages else None
        if last_message is None or not last_message.role == message.role == "user":
            output_messages.append(message)
            continue
        texts = (last_message.content, message.content)
        output_messages[-1] = replace(
            last_message,
            content="\n\n".join(text for text in texts if text.strip()),
            images=(*last_message.images, *message.images),
            files=(*last_message.files, *message.files),
            seq=message.seq if last_message.seq is None else last_message.seq,
            pinned=last_message.pinned or message.pinned,
            aside=last_message.aside and message.aside,
        )
    return output_messages


def _build_message(
    message: ChatMessage, model: str, dialect: Dialect, call_ids: CallIds
) -> dict[str, object]:
    if message.role == "tool":
        call_id = call_ids.take_result_id()
        return {"role": "tool", "tool_call_id": call_id, "content": message.content}
    if message.role == "assistant":
        return _build_answer(message, model, dialect, call_ids)
    if not message.images:
        return {"role": "user", "content": message.content}
    has_text = bool(message.content.strip())
    text = [{"type": "text", "text": message.content}] if has_text else []
    return {"role": "user", "content": text + [_build_image(image) for image in message.images]}


def _build_answer(
    message: ChatMessage, model: str, dialect: Dialect, call_ids: CallIds
) -> dict[str, object]:
    """Return an earlier answer, with what only the model that wrote it may have back.

    Beside calls the text may be empty, but never null, which LM Studio refuses and some templates
    write as a word; a few servers refuse the empty text, and get none.
    """
    text = message.content if message.content.strip() else ""
    text = select_tagged_thoughts(message.provider_data, model) + text
    answer: dict[str, object] = {"role": "assistant"}
    if text or dialect.has_empty_texts:
        answer["content"] = text
    if message.tool_calls:
        answer["tool_calls"] = _build_calls(message, model, dialect, call_ids)
    if dialect.reasoning != "none" and (dialect.has_reasoned_texts or not text):
        reasoning = select_reasoning(message.provider_data, model)
        answer |= _build_reasoning(message, reasoning, dialect)
    return answer


def _build_reasoning(
    message: ChatMessage, reasoning: Reasoning, dialect: Dialect
) -> dict[str, object]:
    """Return what the model wants back of its reasoning.

    DeepSeek, Kimi and others want it with all calls, also of earlier turns, and an empty text where
    another model made them; the rest ignores it there. OpenRouter wants the details of models that
    sign them.
    """
    if reasoning.details:
        return {"reasoning_details": list(reasoning.details)}
    if dialect.reasoning == "all":
        return {reasoning.field or dialect.reasoning_field: reasoning.text}
    if message.tool_calls and reasoning.text:
        return {reasoning.field or dialect.reasoning_field: reasoning.text}
    return {}


def _join_answers(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Add an answer to the one before it, which has no calls: their results would follow it."""
    for name, value in second.items():
        if name != "role" and isinstance(value, str):
            first[name] = "\n\n".join(text for text in (first.get(name), value) if text)
        elif isinstance(value, list):
            first[name] = first.get(name, []) + value


def _build_calls(
    message: ChatMessage, model: str, dialect: Dialect, call_ids: CallIds
) -> list[dict[str, object]]:
    has_extras = dialect.reasoning != "none" and dialect.keeps_signatures
    extras = select_extras(message.provider_data, model) if has_extras else {}
    calls = [
        _build_call(call, call_ids.assign_id(call), extras.get(call.id))
        for call in message.tool_calls
    ]
    # Gemini signs the first of parallel calls alone, and wants a signature from every model.
    if dialect.needs_signatures and not any("extra_content" in call for call in calls):
        calls[0]["extra_content"] = _FOREIGN_SIGNATURE
    return calls


def _build_call(
    call: ToolCall, sent_id: str, extra: Mapping[str, object] | None
) -> dict[str, object]:
    # Servers that render chat templates fail on arguments that are not a JSON object, so broken
    # ones are not sent back as the model wrote them.
    function = {"name": call.sent_name, "arguments": json.dumps(call.parse_arguments())}
    api_call: dict[str, object] = {"id": sent_id, "type": "function", "function": function}
    if extra:
        api_call["extra_content"] = extra
    return api_call


def _build_image(image: Image) -> dict[str, object]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}
