"""The Anthropic protocol, Messages, also spoken by compatible servers."""

import base64
import json
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, cast

from chatcore.providers import client as provider_client
from chatcore.providers.answer_reader import (
    AnswerReader,
    CollectedText,
    ErrorEvent,
    build_call_id,
    check_end,
    number_twin_calls,
    parse_error,
    parse_objects,
    reports_error,
)
from chatcore.providers.base import (
    Capabilities,
    ChatMessage,
    Connection,
    Request,
    StreamEnd,
    ToolCall,
    Usage,
    mend_surrogates,
    parse_count,
)
from chatcore.providers.client import ProviderClient, SdkStream
from chatcore.providers.dialects import find_dialect
from chatcore.providers.errors import InvalidParam, ProviderUnavailable
from chatcore.providers.normal_form import CallIds, build_normal_form
from chatcore.providers.provider_data import (
    CALL,
    LOST_REASONING,
    THOUGHT,
    is_usual_order,
    select_cache_control,
    select_order,
    select_thinking,
)
from chatcore.providers.quirks.thought_tags import remove_thoughts
from chatcore.providers.server_sent_events import Event
from chatcore.providers.tool_schemas import build_schema

if TYPE_CHECKING:  # seconds to import, and most processes call no model
    from anthropic import AsyncAnthropic

THOUGHT_KINDS = ("thinking", "redacted_thinking")
# The kind of block that a delta belongs to.
_BLOCK_KINDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
_EVENT_KINDS = frozenset(
    {
        "message",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)
_USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)

DEFAULT_MAX_TOKENS = 4096  # the protocol refuses a request without max_tokens

_SHARED_PARAMS = ("temperature", "top_p", "top_k", "max_tokens")
_KNOWN_PARAMS = {
    *_SHARED_PARAMS,
    "stop",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
}
_MAX_TEMPERATURE = 1
# The protocol has no effort below low: to reason not at all is its default.
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max"}
_TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


class AnthropicProvider(ProviderClient):
    """Messages.

    Options of the provider's row: `headers`, `query` and `body`, which are sent with every call,
    `dialect` (`dialects.py`), and `client` (see `client.py`).
    """

    capabilities = Capabilities(
        has_messages_params=True, has_signed_thoughts=True, has_cache_marks=True
    )
    sdk_name = "anthropic"
    client_name = "AsyncAnthropic"
    models_path = "/v1/models?limit=1000"
    platform_clients: ClassVar = {
        "bedrock": provider_client.build_bedrock_client,
        "vertex": provider_client.build_vertex_client,
    }
    vendor_host = "api.anthropic.com"
    param_names = frozenset(
        {
            *_SHARED_PARAMS,
            "cache_control",
            "metadata",
            "output_config",
            "stop_sequences",
            "thinking",
            "tool_choice",
        }
    )

    def send(
        self, client: "AsyncAnthropic", connection: Connection, request: Request
    ) -> Awaitable[SdkStream]:
        create: Any = client.messages.create
        arguments = _build_arguments(connection, request)
        return cast(Awaitable[SdkStream], create(**arguments))

    def build_reader(self, connection: Connection, request: Request) -> AnswerReader:
        return AnthropicStreamReader(request.model, reports_thoughts=request.wants_thoughts)

    def normalize(self, request: Request) -> Request:
        # Neighbors of one role may be left: `build_messages` puts their blocks into one message.
        messages = build_normal_form(
            request.messages, has_tools=bool(request.tools), has_result_images=True
        )
        return replace(request, messages=messages)

    def translate_params(self, params: Mapping[str, Any]) -> dict[str, object]:
        anthropic_params = {name: params[name] for name in _SHARED_PARAMS if name in params}
        if "temperature" in anthropic_params:
            anthropic_params["temperature"] = min(_MAX_TEMPERATURE, anthropic_params["temperature"])
        stop = params.get("stop")
        if stop:
            anthropic_params["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        output_config = _build_output_config(params)
        if output_config:
            anthropic_params["output_config"] = output_config
        choice = _translate_tool_choice(params.get("tool_choice", "auto"))
        if params.get("parallel_tool_calls") is False and choice["type"] != "none":
            choice["disable_parallel_tool_use"] = True
        if choice != {"type": "auto"}:
            anthropic_params["tool_choice"] = choice
        return anthropic_params

    def list_ignored_params(self, params: Mapping[str, object]) -> list[str]:
        return sorted(params.keys() - _KNOWN_PARAMS)


PROVIDER = AnthropicProvider()


def _build_arguments(connection: Connection, request: Request) -> dict[str, Any]:
    dialect = find_dialect(connection, request.model)
    options = connection.options.get("body", {})
    body = provider_client.select_params(connection, request)
    thinking = options.get("thinking", body.get("thinking"))
    is_whole = "stream" in connection.options.get("without", ())
    body["messages"] = build_messages(request, needs_thoughts=dialect.needs_thoughts)
    if system := build_system(request):
        body["system"] = system
    if request.tools:
        body["tools"] = build_tools(request, has_simple_schemas=dialect.has_simple_schemas)
    # What comes as `extra_body` goes out as it is; the SDK compares all else with its types.
    return {
        "model": request.model,
        "messages": [],
        "max_tokens": _choose_max_tokens(connection, request, thinking),
        "stream": True,
        "extra_body": ({"stream": False} if is_whole else {}) | body | options,
    }


def _choose_max_tokens(connection: Connection, request: Request, thinking: object) -> object:
    """Return the room of the answer; where no number is set, that of the thoughts is added."""
    named = request.max_tokens or request.params.get("max_tokens")
    if named:
        return named
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    room = DEFAULT_MAX_TOKENS + (parse_count(budget) or 0)
    limits = (room, connection.options.get("output_limit"), request.output_limit)
    return min(limit for limit in limits if limit)


def build_system(request: Request) -> str | list[dict[str, object]]:
    """Return the system text, or blocks if there is a preface or a mark of the cache.

    An empty text means that there is nothing to send: the protocol refuses empty texts.
    """
    mark = request.system_cache_control
    if not request.preface.strip() and not mark:
        return request.system if request.system.strip() else ""
    blocks: list[dict[str, object]] = [
        {"type": "text", "text": text} for text in (request.system, request.preface) if text.strip()
    ]
    if mark and request.system.strip():
        blocks[0]["cache_control"] = mark
    return blocks


def build_messages(request: Request, *, needs_thoughts: bool = False) -> list[dict[str, object]]:
    """Return the messages of a request. The roles alternate, and the user's comes first."""
    api_messages: list[dict[str, Any]] = []
    call_ids = CallIds()
    for message in PROVIDER.normalize(request).messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _build_blocks(message, request.model, call_ids)
        if api_messages and api_messages[-1]["role"] == role:
            api_messages[-1]["content"] += blocks
        else:
            api_messages.append({"role": role, "content": blocks})
    if needs_thoughts:
        for api_message in api_messages:
            _add_lost_thought(api_message)
    return api_messages


def _add_lost_thought(api_message: dict[str, Any]) -> None:
    """Begin an answer whose thoughts were not kept with a block that says so."""
    blocks = api_message["content"]
    if api_message["role"] == "assistant" and not any(
        block["type"] in THOUGHT_KINDS for block in blocks
    ):
        blocks.insert(0, {"type": "thinking", "thinking": LOST_REASONING, "signature": ""})


def build_tools(request: Request, *, has_simple_schemas: bool = False) -> list[dict[str, object]]:
    """Return the tool definitions of a request."""
    return [
        dict(tool.native)
        if tool.native
        else {
            "name": tool.name,
            "description": tool.description,
            "input_schema": build_schema(tool, is_simple=has_simple_schemas),
            **({"strict": True} if tool.strict else {}),
            **({"cache_control": tool.cache_control} if tool.cache_control else {}),
        }
        for tool in request.tools
    ]


def _build_blocks(message: ChatMessage, model: str, call_ids: CallIds) -> list[dict[str, object]]:
    """Return a message as content blocks."""
    if message.role == "tool":
        blocks = [_build_tool_result(message, call_ids)]
    elif message.role == "assistant":
        blocks = order_blocks(
            remove_thoughts(message.content),
            select_thinking(message.provider_data, model),
            _build_calls(message, call_ids),
            select_order(message.provider_data, model),
        )
    else:
        blocks = [_build_image(image.media_type, image.data) for image in message.images]
        blocks += _build_texts(message.content)
    mark = select_cache_control(message.provider_data)
    if mark:
        blocks[-1] = {**blocks[-1], "cache_control": mark}
    return blocks


def order_blocks(
    text: str,
    thoughts: list[dict[str, object]],
    calls: list[dict[str, object]],
    order: list[str | int],
) -> list[dict[str, object]]:
    """Return the blocks of an answer in the order in which they came.

    A signed thought is bound to what stood before it. An order that does not fit the answer, whose
    text may have been cleaned when it was stored, is not followed.
    """
    lengths = [each for each in order if isinstance(each, int)]
    if sum(lengths) != len(text) or order.count(THOUGHT) != len(thoughts):
        return [*thoughts, *_build_texts(text), *calls]
    blocks: list[dict[str, object]] = []
    open_thoughts, open_calls, position = iter(thoughts), iter(calls), 0
    for each in order:
        if isinstance(each, int):
            blocks += _build_texts(text[position : position + each])
            position += each
        else:
            blocks += islice(open_thoughts if each == THOUGHT else open_calls, 1)
    return [*blocks, *open_calls]


def _build_texts(text: str) -> list[dict[str, object]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _build_calls(message: ChatMessage, call_ids: CallIds) -> list[dict[str, object]]:
    return [
        {
            "type": "tool_use",
            "id": call_ids.assign_id(call),
            "name": call.sent_name,
            "input": call.parse_arguments(),
        }
        for call in message.tool_calls
    ]


def _build_tool_result(message: ChatMessage, call_ids: CallIds) -> dict[str, object]:
    result: dict[str, object] = {
        "type": "tool_result",
        "tool_use_id": call_ids.take_result_id(),
    }
    has_text = bool(message.content.strip())
    if message.images:
        blocks = [_build_image(image.media_type, image.data) for image in message.images]
        if has_text:
            blocks.insert(0, {"type": "text", "text": message.content})
        result["content"] = blocks
    elif has_text:
        result["content"] = message.content
    if message.is_error:
        result["is_error"] = True
    return result


def _build_image(media_type: str, data: bytes) -> dict[str, object]:
    return {
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(data).decode(),
        },
    }


def _build_output_config(params: Mapping[str, Any]) -> dict[str, object]:
    """Return the form and the effort of the answer. Raises InvalidParam for another form."""
    output_config: dict[str, object] = {}
    effort = params.get("reasoning_effort")
    if effort in _EFFORTS:
        output_config["effort"] = _EFFORTS[effort]
    response_format = params.get("response_format") or {"type": "text"}
    type = response_format.get("type")
    schema_format = response_format.get("json_schema")
    if type == "json_schema" and isinstance(schema_format, Mapping):
        schema = schema_format.get("schema") or {"type": "object"}
        output_config["format"] = {"type": "json_schema", "schema": schema}
    elif type != "text":
        detail = "This language model answers in text, or in JSON by a schema (json_schema)."
        raise InvalidParam("response_format", detail)
    return output_config


def _translate_tool_choice(choice: object) -> dict[str, object]:
    if isinstance(choice, str):
        return {"type": _TOOL_CHOICES.get(choice, "auto")}
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InvalidParam("tool_choice", "auto, none, required, or a function by its name.")
    return {"type": "tool", "name": function["name"]}


class _Block:
    """Collects a content block while its deltas arrive. `fields` are those of its first event."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.kind: str = fields["type"]
        self.fields = fields
        self.thinking = CollectedText()
        self.arguments = CollectedText()
        self.text_length = len(fields.get("text") or "")

    @property
    def place(self) -> str | int:
        """What stands at its place in the stored order of an answer: a kind, or a text's length."""
        if self.kind in THOUGHT_KINDS:
            return THOUGHT
        return CALL if self.kind == "tool_use" else self.text_length

    def to_tool_call(self) -> ToolCall:
        if not self.fields.get("name"):
            raise ProviderUnavailable("The provider sent a tool call without a name.")
        arguments = mend_surrogates(self.arguments.join())
        if not arguments and isinstance(self.fields.get("input"), dict):
            arguments = json.dumps(self.fields["input"], ensure_ascii=False)
        return ToolCall(
            id=str(self.fields.get("id") or build_call_id()),
            name=str(self.fields["name"]),
            arguments=arguments or "{}",
        )

    def to_thinking(self) -> dict[str, object]:
        """Return the block as the protocol wants it back, unchanged and signed."""
        thinking = mend_surrogates(self.thinking.join())
        if not thinking:
            return self.fields
        return self.fields | {"thinking": self.fields.get("thinking", "") + thinking}


class AnthropicStreamReader(AnswerReader):
    """Collects an answer while its events arrive.

    With `reports_thoughts`, the parts include each signed thought at its end.
    """

    def __init__(self, model: str, *, reports_thoughts: bool = False) -> None:
        super().__init__(model)
        self._reports_thoughts = reports_thoughts
        self._blocks: dict[int, _Block] = {}
        self._counts: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._is_marked = False

    def read_events(self, events: Iterable[Event]) -> None:
        for name, data in events:
            if name == b"error":
                raise ErrorEvent(parse_error(data))
            for event in parse_objects(data):
                # Some gateways name no events; the type stands in each.
                kind = str(event.get("type") or name.decode(errors="replace"))
                if kind == "error" or (kind not in _EVENT_KINDS and reports_error(event)):
                    raise ErrorEvent(event)
                self._read_event(kind, event)

    def build_stream_end(self) -> StreamEnd:
        reason = check_end(
            self._stop_reason, is_marked=self._is_marked, has_output=self._has_output
        )
        tool_calls: tuple[ToolCall, ...] = ()
        if reason in ("stop", "tool_calls"):
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            tool_calls = number_twin_calls(
                block.to_tool_call() for block in self._blocks.values() if block.kind == "tool_use"
            )
            reason = "tool_calls" if tool_calls else "stop"
        return StreamEnd(
            reason=reason,
            stop_sequence=self._stop_sequence,
            word=self._stop_reason or "",
            tool_calls=tool_calls,
            usage=self._build_usage(),
            provider_data=self._collect_thinking(),
        )

    def _read_event(self, kind: str, event: dict[str, Any]) -> None:
        self.event_count += kind in _EVENT_KINDS
        if kind == "content_block_delta":
            delta = event["delta"]
            self._read_delta(self._find_block(event.get("index"), delta), delta)
        elif kind == "content_block_start":
            self._open_block(event.get("index"), event["content_block"])
        elif kind == "content_block_stop":
            self._close_block(event.get("index"))
        elif kind in ("message_start", "message"):
            self._read_message(event.get("message") or event)
        elif kind == "message_delta":
            self._read_stop(event.get("delta") or event)
            self._record_usage(event.get("usage"))
        elif kind == "message_stop":
            self._is_marked = True

    def _read_message(self, message: dict[str, Any]) -> None:
        """Read the frame of a message, or a whole one of a server that cannot stream."""
        self._record_usage(message.get("usage"))
        for index, fields in enumerate(message.get("content") or ()):
            self._open_block(index, fields)
            self._close_block(index)
        self._read_stop(message)

    def _read_stop(self, fields: dict[str, Any]) -> None:
        self._stop_reason = fields.get("stop_reason") or self._stop_reason
        self._stop_sequence = fields.get("stop_sequence") or self._stop_sequence

    def _find_block(self, index: int | None, delta: dict[str, Any]) -> "_Block":
        """Return the block of a delta. Some gateways do not say where one starts."""
        if index is None and self._blocks:
            index = max(self._blocks)
        index = index or 0
        if index not in self._blocks:
            self._open_block(index, {"type": _BLOCK_KINDS.get(delta.get("type", ""), "text")})
        return self._blocks[index]

    def _open_block(self, index: int | None, fields: dict[str, Any]) -> None:
        block = _Block(fields)
        self._blocks[len(self._blocks) if index is None else index] = block
        if block.kind == "tool_use":
            self._has_output = True
        elif fields.get("text"):
            self._add_text(fields["text"])
        elif block.kind == "thinking" and fields.get("thinking"):
            self._has_output = True
            self._part_joiner.add_reasoning(fields["thinking"])

    def _close_block(self, index: int | None) -> None:
        if index is None and self._blocks:
            index = max(self._blocks)
        block = self._blocks.get(index or 0)
        if self._reports_thoughts and block and block.kind in THOUGHT_KINDS:
            self._part_joiner.add_thought(block.to_thinking())

    def _read_delta(self, block: "_Block", delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            block.text_length += len(delta["text"])
            self._add_text(delta["text"])
        elif kind == "thinking_delta":
            self._has_output = True
            block.thinking.add_piece(delta["thinking"])
            self._part_joiner.add_reasoning(delta["thinking"])
        elif kind == "signature_delta":
            block.fields["signature"] = delta["signature"]
        elif kind == "input_json_delta":
            block.arguments.add_piece(delta.get("partial_json") or "")

    def _record_usage(self, api_usage: object) -> None:
        # Counts come in two events; the later ones are for the whole message.
        if isinstance(api_usage, dict):
            for name in _USAGE_FIELDS:
                count = parse_count(api_usage.get(name))
                if count is not None:
                    self._counts[name] = count

    def _build_usage(self) -> Usage | None:
        if "input_tokens" not in self._counts:
            return None
        cache_read = self._counts.get("cache_read_input_tokens")
        cache_write = self._counts.get("cache_creation_input_tokens")
        return Usage(
            input=self._counts["input_tokens"] + (cache_read or 0) + (cache_write or 0),
            output=self._counts.get("output_tokens", 0),
            cache_read=cache_read,
            cache_write=cache_write,
        )

    def _collect_thinking(self) -> dict[str, object]:
        blocks = [
            block.to_thinking() for block in self._blocks.values() if block.kind in THOUGHT_KINDS
        ]
        if not blocks:
            return {}
        thinking: dict[str, object] = {"model": self._model, "thinking": blocks}
        order = [block.place for block in self._blocks.values() if block.place]
        if not is_usual_order(order):
            thinking["order"] = order
        return {"anthropic": thinking}
