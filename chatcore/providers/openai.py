"""The OpenAI protocol, also spoken by Gemini, Mistral, Ollama, vLLM, llama.cpp and many others.

Embeddings and completions of a prompt, which no other protocol has, are passed on: the body goes
out as it came, and the provider's answer comes back as it is.
"""

import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import urlsplit

from chatcore.providers import client as provider_client
from chatcore.providers.answer_reader import (
    END_MARK,
    AnswerReader,
    CallCollector,
    CollectedText,
    ErrorEvent,
    check_end,
    classify_end,
    number_twin_calls,
    parse_error,
    parse_objects,
    reports_error,
)
from chatcore.providers.base import (
    Capabilities,
    ChatMessage,
    Connection,
    Image,
    Request,
    StreamEnd,
    StreamPart,
    Tool,
    ToolCall,
    Usage,
    mend_surrogates,
    parse_count,
)
from chatcore.providers.client import Deadline, ProviderClient, SdkStream
from chatcore.providers.dialects import Dialect, find_dialect
from chatcore.providers.error_mapping import translate_errors
from chatcore.providers.errors import ProviderUnavailable
from chatcore.providers.normal_form import CallIds, build_normal_form
from chatcore.providers.provider_data import (
    LOST_REASONING,
    REASONING_FIELDS,
    Reasoning,
    select_extras,
    select_reasoning,
    select_tagged_thoughts,
)
from chatcore.providers.quirks.control_tokens import escape_control_tokens
from chatcore.providers.quirks.reasoning_details import ReasoningDetails
from chatcore.providers.quirks.thought_tags import remove_thoughts
from chatcore.providers.quirks.written_calls import read_written_calls
from chatcore.providers.server_sent_events import Event
from chatcore.providers.tool_schemas import build_schema

if TYPE_CHECKING:  # seconds to import, and most processes call no model
    from openai import AsyncOpenAI

_USUAL_DIALECT = Dialect()
# Google names this value for calls that its own models did not make.
_FOREIGN_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}


class OpenAIProvider(ProviderClient):
    """Chat completions.

    Options of the provider's row: `headers`, `query` and `body`, which are sent with every call,
    `tool_body`, for calls that offer tools, where the request says nothing else,
    `max_tokens_field`, `tells_reading`, `control_tokens` (`quirks/control_tokens.py`),
    `written_calls` (`quirks/written_calls.py`), `dialect` (`dialects.py`) and `client`
    (`client.py`).
    """

    capabilities = Capabilities(has_other_requests=True, address_path="/v1", has_variants=True)
    sdk_name = "openai"
    client_name = "AsyncOpenAI"
    models_path = "/models"
    platform_clients: ClassVar = {"azure": provider_client.build_azure_client}
    vendor_host = "api.openai.com"
    param_names = frozenset(
        {
            "frequency_penalty",
            "logit_bias",
            "max_tokens",
            "min_p",
            "n",
            "parallel_tool_calls",
            "presence_penalty",
            "prompt_cache_key",
            "reasoning_effort",
            "repetition_penalty",
            "response_format",
            "seed",
            "stop",
            "temperature",
            "tool_choice",
            "top_k",
            "top_p",
            "verbosity",
        }
    )

    def stream(self, connection: Connection, request: Request) -> AsyncGenerator[StreamPart]:
        parts = super().stream(connection, request)
        reads_calls = request.tools and connection.options.get("written_calls")
        return read_written_calls(parts, request.tools) if reads_calls else parts

    def send(
        self, client: "AsyncOpenAI", connection: Connection, request: Request
    ) -> Awaitable[SdkStream]:
        return _post(client, "/chat/completions", _build_body(connection, request))

    def build_reader(self, connection: Connection, request: Request) -> AnswerReader:
        dialect = find_dialect(connection, request.model)
        return OpenAIStreamReader(
            request.model,
            (tool.name for tool in request.tools),
            begins_thinking=dialect.begins_thinking,
            keeps_reasoning=dialect.reasoning == "all",
            tell_reading=connection.tell_reading,
        )

    def normalize(self, request: Request) -> Request:
        return normalize(request)


PROVIDER = OpenAIProvider()


async def fetch_answer(connection: Connection, path: str, body: Mapping[str, object]) -> Any:
    """Send a body to a path of the provider and return its JSON. Raises only ProviderErrors."""
    chunks = [chunk async for chunk in stream_answer(connection, path, body)]
    answer = None
    with suppress(ValueError):
        answer = json.loads(b"".join(chunks))
    if not isinstance(answer, dict):
        raise ProviderUnavailable("The provider's answer is no JSON object.")
    return answer


async def stream_answer(
    connection: Connection, path: str, body: Mapping[str, object]
) -> AsyncGenerator[bytes]:
    """Send a body to a path of the provider, and yield the answer's bytes as they arrive.

    Each piece must come within the provider's timeout. Raises only ProviderErrors.
    """
    openai = await provider_client.load_sdk(PROVIDER.sdk_name)
    with translate_errors(openai, connection):
        client = await PROVIDER.open_client(openai, connection)
        sent_body = dict(body) | connection.options.get("body", {})
        deadline = Deadline(connection.timeout_seconds)
        stream: Any = None
        try:
            with deadline:
                stream = await _post(client, f"/{path}", sent_body)
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


def _post(client: "AsyncOpenAI", path: str, body: Mapping[str, object]) -> Awaitable[Any]:
    """Send a body as it is. The SDK's own methods compare each part of it with their types."""
    from openai import AsyncStream

    post: Any = client.post
    return cast(
        Awaitable[Any],
        post(path, cast_to=object, body=body, stream=True, stream_cls=AsyncStream[object]),
    )


def _build_body(connection: Connection, request: Request) -> dict[str, object]:
    dialect = find_dialect(connection, request.model)
    content: dict[str, Any] = {"messages": build_messages(request, dialect)}
    if connection.options.get("system_role") is False:
        _move_system_text(content["messages"])
    if request.tools:
        content["tools"] = build_tools(request, dialect)
    if connection.options.get("control_tokens"):
        content = {name: escape_control_tokens(value) for name, value in content.items()}
    left_out = connection.options.get("without", ())
    body = provider_client.select_params(connection, request)
    is_streamed = "stream" not in left_out
    if is_streamed and "stream_options" not in left_out:
        body["stream_options"] = {"include_usage": True}
    if request.max_tokens:
        body[_choose_max_tokens_field(connection)] = request.max_tokens
    body |= content | _select_body_options(connection, request)
    if (
        connection.tell_reading
        and connection.options.get("tells_reading")
        and "return_progress" not in left_out
    ):
        body["return_progress"] = True  # llama.cpp's
    return {"model": request.model} | ({"stream": True} if is_streamed else {}) | body


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


def _select_body_options(connection: Connection, request: Request) -> dict[str, object]:
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


def build_messages(request: Request, dialect: Dialect = _USUAL_DIALECT) -> list[dict[str, object]]:
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


def build_tools(request: Request, dialect: Dialect = _USUAL_DIALECT) -> list[dict[str, object]]:
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
    if dialect.has_tagged_thoughts:
        text = select_tagged_thoughts(message.provider_data, model) + text
    else:
        text = remove_thoughts(text)
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

    DeepSeek, Kimi and others want it with all calls, also of earlier turns, and some of them with
    each answer. Where it was not kept, or another model answered, they get a text that says so:
    some refuse an empty one. OpenRouter wants the details of models that
    sign them.
    """
    field = reasoning.field or dialect.reasoning_field
    if reasoning.details:
        details = {"reasoning_details": list(reasoning.details)}
        text = reasoning.join_details() or LOST_REASONING
        return details | ({field: text} if dialect.reasoning == "all" else {})
    if dialect.reasoning == "all":
        return {field: reasoning.text or LOST_REASONING}
    if message.tool_calls and reasoning.text:
        return {field: reasoning.text}
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


def parse_usage(api_usage: object, timings: object = None) -> Usage | None:
    """Return the reported tokens, or None. Here `prompt_tokens` includes the cached ones.

    `timings` are llama.cpp's. Some servers leave the cached tokens out of `prompt_tokens`: they
    are added where the numbers say so.
    """
    if not isinstance(api_usage, dict):
        return None
    input_tokens = parse_count(api_usage.get("prompt_tokens"))
    if input_tokens is None:
        return None
    details = api_usage.get("prompt_tokens_details")
    if not isinstance(details, dict):
        details = {}
    answer_details = api_usage.get("completion_tokens_details")
    if not isinstance(answer_details, dict):
        answer_details = api_usage
    cache_read = parse_count(details.get("cached_tokens"))
    cache_write = parse_count(details.get("cache_write_tokens"))
    if isinstance(timings, dict) and parse_count(timings.get("prompt_n")) == input_tokens:
        cache_read = parse_count(timings.get("cache_n")) or cache_read
        input_tokens += parse_count(timings.get("cache_n")) or 0
    elif input_tokens and (cache_read or 0) > input_tokens:
        input_tokens += cache_read or 0
    return Usage(
        input=input_tokens,
        output=parse_count(api_usage.get("completion_tokens")) or 0,
        cache_read=cache_read,
        cache_write=cache_write,
        thoughts=parse_count(answer_details.get("reasoning_tokens")),
    )


class OpenAIStreamReader(AnswerReader):
    """Collects an answer while its chunks arrive.

    The names of the request's tools tell a call that begins from one that goes on. With
    `begins_thinking` the opening tag of the answer's thought does not arrive. `keeps_reasoning`
    says whether the server wants the reasoning of answers without calls too. `tell_reading` is the
    connection's.
    """

    def __init__(
        self,
        model: str,
        tool_names: Iterable[str] = (),
        *,
        begins_thinking: bool = False,
        keeps_reasoning: bool = False,
        tell_reading: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(model, begins_thinking=begins_thinking)
        self._keeps_reasoning = keeps_reasoning
        self._tell_reading = tell_reading
        self._thoughts = CollectedText()
        self._reasoning_field = ""
        self._reasoning_details = ReasoningDetails()
        self._calls = CallCollector(frozenset(tool_names))
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._stop_sequence: str | None = None
        self._is_refusal = False
        self._is_whole = False

    def read_events(self, events: Iterable[Event]) -> None:
        for name, data in events:
            if data.lstrip(b'" ').startswith(END_MARK):
                self.is_done = True
                return
            if name == b"error":
                raise ErrorEvent(parse_error(data))
            for chunk in parse_objects(data):
                if reports_error(chunk):
                    raise ErrorEvent(chunk)
                self.event_count += 1
                self._read_chunk(chunk)

    def end(self) -> None:
        self._part_joiner.end(is_cut=classify_end(self._finish_reason or "stop") == "length")

    def build_stream_end(self) -> StreamEnd:
        reason = check_end(
            self._finish_reason,
            is_marked=self.is_done or self._is_whole,
            has_output=self._has_output or bool(self._calls),
        )
        word = self._finish_reason or ""
        if self._is_refusal:
            reason = "refusal"
        if reason not in ("stop", "tool_calls"):
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            return StreamEnd(reason=reason, word=word, usage=self._usage)
        tool_calls = number_twin_calls(self._calls.build_calls())
        return StreamEnd(
            # Not every server distinguishes the two, so the calls decide.
            reason="tool_calls" if tool_calls else "stop",
            stop_sequence=self._stop_sequence,
            word=word,
            tool_calls=tool_calls,
            usage=self._usage,
            provider_data=self._build_provider_data(),
            learned=self._build_facts(),
        )

    def _build_facts(self) -> dict[str, object]:
        begins_thinking = self._part_joiner.should_begin_thinking
        if begins_thinking is None:
            return {}
        return {"dialect": {"begins_thinking": begins_thinking}}

    def _build_provider_data(self) -> dict[str, object]:
        """Return what some servers require back with the answer.

        DeepSeek requires the reasoning with calls, OpenRouter the details of it, Gemini a signature
        for each call, MiniMax the thoughts that stood in tags, as they stood.
        """
        data: dict[str, object] = {}
        extras = {id: extra for id, extra in self._calls.extras.items() if extra}
        keeps_reasoning = bool(self._calls) or self._keeps_reasoning
        thoughts = mend_surrogates(self._thoughts.join()) if keeps_reasoning else ""
        details = self._reasoning_details.join() if self._calls else []
        if details:
            data |= {"reasoning_details": details, "extras": extras}
        elif thoughts or extras:
            data |= {"reasoning": thoughts, "extras": extras}
            if thoughts and self._reasoning_field != REASONING_FIELDS[0]:
                data["reasoning_field"] = self._reasoning_field
        tagged_thoughts = mend_surrogates(self._part_joiner.tagged_thoughts)
        if tagged_thoughts:
            data["tagged_thoughts"] = tagged_thoughts
        return {"openai": {"model": self._model} | data} if data else {}

    def _read_chunk(self, chunk: Mapping[str, object]) -> None:
        self._record_usage(chunk.get("usage"), chunk.get("timings"))
        self._read_progress(chunk.get("prompt_progress"))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._read_choice(choice)

    def _read_progress(self, progress: object) -> None:
        """Tell how far llama.cpp has read; what its cache holds is not read again."""
        if self._tell_reading is None or not isinstance(progress, dict):
            return
        processed = parse_count(progress.get("processed"))
        total = parse_count(progress.get("total"))
        cached = parse_count(progress.get("cache")) or 0
        if processed is not None and total is not None and cached <= processed <= total > cached:
            self._tell_reading(processed - cached, total - cached)

    def _record_usage(self, api_usage: object, timings: object) -> None:
        if api_usage:
            self._usage = parse_usage(api_usage, timings) or self._usage

    def _read_choice(self, choice: Mapping[str, object]) -> None:
        if choice.get("error"):  # OpenRouter's
            raise ErrorEvent(choice)
        self._record_usage(choice.get("usage"), None)  # Moonshot's place
        finish_reason = choice.get("finish_reason")
        if finish_reason:
            self._finish_reason = str(finish_reason)
        stop_sequence = choice.get("stop_reason")  # vLLM's
        if isinstance(stop_sequence, str):
            self._stop_sequence = stop_sequence
        delta = choice.get("delta")
        if not delta and not self._has_output and not self._calls:
            # A server that cannot stream sends the whole message.
            delta = choice.get("message")
            self._is_whole = self._is_whole or isinstance(delta, dict)
        if isinstance(delta, dict):
            self._read_delta(delta)

    def _read_delta(self, delta: Mapping[str, object]) -> None:
        for field in REASONING_FIELDS:
            reasoning = delta.get(field)
            if reasoning and isinstance(reasoning, str):
                self._has_output = True
                self._reasoning_field = field
                self._thoughts.add_piece(reasoning)
                self._part_joiner.add_reasoning(reasoning)
                break  # some servers send the same words under both names
        self._reasoning_details.add_pieces(delta.get("reasoning_details"))
        content = delta.get("content")
        if content:
            self._read_content(content)
        refusal = delta.get("refusal")
        if refusal:
            self._is_refusal = True
            self._add_text(str(refusal))
        self._calls.add_delta(delta)

    def _read_content(self, content: object) -> None:
        """Collect text; Mistral's reasoning models send a list of typed pieces instead."""
        if isinstance(content, str):
            self._add_text(content)
            return
        for piece in content if isinstance(content, list) else [content]:
            if isinstance(piece, str):
                self._add_text(piece)
            elif isinstance(piece, dict):
                self._read_piece(piece)

    def _read_piece(self, piece: Mapping[str, object]) -> None:
        thinking = piece.get("thinking")
        text = piece.get("text")
        if isinstance(thinking, list):
            thinking = "".join(str(thought.get("text", "")) for thought in thinking)
        if thinking:
            self._has_output = True
            self._part_joiner.add_reasoning(str(thinking))
        elif isinstance(text, str) and text:
            self._add_text(text)
