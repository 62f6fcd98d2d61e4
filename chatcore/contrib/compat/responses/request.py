"""The body of `POST /v1/responses`.

Unknown fields are ignored, as OpenAI does: its clients send new ones before servers know them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from pydantic import AfterValidator, Field

from chatcore.api.params import ParamsField, require_room
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.bodies import Body, FilledText, refuse
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.request import (
    build_ignored_header,
    get_usable_model,
)
from chatcore.contrib.compat.client_messages import ClientMessage, build_tools
from chatcore.contrib.compat.content_parts import join_texts
from chatcore.contrib.compat.programs import (
    MAX_SESSION_NAME_CHARS,
    SESSION_HEADER,
    Keeping,
    ThreadName,
    name_thread,
)
from chatcore.contrib.compat.responses.input_items import ItemLoader, ResponseInput, parse_input
from chatcore.contrib.compat.responses.output_items import ReasoningForm
from chatcore.contrib.compat.responses.request_tools import RequestTools, join_name, parse_tools
from chatcore.providers.errors import InvalidParam
from chatcore.providers.protocols import load_protocol
from chatcore.providers.registry import list_refused_params
from chatcore.tools.mcp.catalog import McpTool, build_tool_name
from chatcore.tools.mcp.turn_servers import RequestServer
from chatcore.turns import client_tools
from models_registry.models import AiModel

Mode = Literal["none", "auto", "required"]

MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
MIN_OUTPUT_TOKENS = 16
NUMBERS = {"temperature", "top_p", "presence_penalty", "frequency_penalty"}
OWN_KINDS = {"function", "custom", "mcp", "allowed_tools"}  # of choices, with members of their own
REPEATED_FIELDS = NUMBERS | {
    "background",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "store",
    "truncation",
}
SEALED_REASONING = "reasoning.encrypted_content"
NO_PROBABILITIES = "Probabilities of tokens are not available."

Count = Annotated[int, Field(ge=1, lt=2**31)]


class Repeated(Body):
    """A part of a request that the response repeats."""

    def build_echo(self) -> dict[str, object]:
        """Return it as the response repeats it."""
        return self.model_dump(exclude_none=True)


class FunctionChoice(Repeated):
    """The choice of a tool that the client runs."""

    type: Literal["function", "custom"]
    name: str
    namespace: str | None = None

    @property
    def stored_name(self) -> str:
        """The name under which the model knows the tool."""
        return join_name(self.name, self.namespace or "")

    def build_param(self) -> object:
        """Return the choice in the words of chat completions."""
        return {"type": "function", "function": {"name": self.stored_name}}


class ServerChoice(Repeated):
    """The choice of an MCP server, or of one of its tools."""

    type: Literal["mcp"]
    server_label: FilledText
    name: FilledText | None = None

    def build_param(self) -> object:
        """Return the choice in the words of chat completions, which know no servers."""
        if self.name is None:
            return "required"
        name = build_tool_name(self.server_label, self.name)
        return {"type": "function", "function": {"name": name}}


def _refuse_own_kinds(type: str) -> str:
    if type in OWN_KINDS:
        raise ValueError("Other members are missing.")
    return type


class TypeChoice(Repeated):
    """The choice of a tool by its type alone: one that has no name."""

    type: Annotated[str, AfterValidator(_refuse_own_kinds)]


class AllowedTools(Repeated):
    """The only tools that are offered to the model.

    A model that does not see the others cannot call them, whatever its provider makes of a choice.
    """

    type: Literal["allowed_tools"]
    tools: list[Annotated[FunctionChoice | ServerChoice, Field(discriminator="type")] | TypeChoice]
    mode: Mode | None = None

    def build_param(self) -> object:
        """Return the choice in the words of chat completions."""
        return self.mode or "auto"

    def build_echo(self) -> dict[str, object]:
        """Return the choice as the response repeats it."""
        return super().build_echo() | {"mode": self.mode or "auto"}

    def list_names(self, tools: RequestTools) -> set[str | None]:
        """Return the names of the tools that may be called, without those of servers."""
        names = {tool.stored_name for tool in self.tools if isinstance(tool, FunctionChoice)}
        types = [tool.type for tool in self.tools if isinstance(tool, TypeChoice)]
        return names | {tools.find_by_type(type) for type in types}

    def names_server(self, label: str) -> bool:
        """Return True for a server whose tools may be called."""
        choices = (tool for tool in self.tools if isinstance(tool, ServerChoice))
        return any(choice.server_label == label for choice in choices)


ToolChoice = (
    Mode
    | Annotated[FunctionChoice | ServerChoice | AllowedTools, Field(discriminator="type")]
    | TypeChoice
)


def _check_keys(metadata: dict[str, str]) -> dict[str, str]:
    if any(len(key) > MAX_METADATA_KEY for key in metadata):
        raise ValueError(f"A key has at most {MAX_METADATA_KEY} characters.")
    return metadata


def _refuse_probabilities(name: str) -> str:
    if name == "message.output_text.logprobs":
        raise ValueError(NO_PROBABILITIES)
    return name


class MetadataBody(Body):
    """A body with up to 16 pairs of texts."""

    metadata: Annotated[
        dict[str, Annotated[str, Field(max_length=MAX_METADATA_VALUE)]],
        Field(max_length=MAX_METADATA),
        AfterValidator(_check_keys),
    ] = Field(default_factory=dict)


class PlainFormat(Body):
    """Text, or JSON without a schema."""

    type: Literal["text", "json_object"]

    def build_echo(self) -> dict[str, object]:
        """Return the format as the response repeats it."""
        return {"type": self.type}

    def build_param(self) -> dict[str, object] | None:
        """Return the format in the words of chat completions; None for plain text."""
        return None if self.type == "text" else {"type": self.type}


class SchemaFormat(Body):
    type: Literal["json_schema"]
    name: str | None = None
    description: str | None = None
    schema_: dict[str, object] = Field(alias="schema")
    strict: bool | None = None

    def build_echo(self) -> dict[str, object]:
        """Return the format as the response repeats it."""
        return {
            "type": self.type,
            "name": self.name or "response",
            "description": self.description or None,
            # The standard has null here, because the client has the schema.
            "schema": None,
            "strict": bool(self.strict),
        }

    def build_param(self) -> dict[str, object]:
        """Return the format in the words of chat completions."""
        schema = self.model_dump(by_alias=True, exclude={"type"}, exclude_none=True)
        return {"type": self.type, "json_schema": schema | {"name": self.name or "response"}}


class TextOptions(Body):
    format: Annotated[PlainFormat | SchemaFormat, Field(discriminator="type")] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Reasoning(Body):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    # OpenAI's earlier name of the same.
    generate_summary: Literal["auto", "concise", "detailed"] | None = None


class CompactionEntry(Body):
    type: Literal["compaction"]
    compact_threshold: Count | None = None


class ConversationName(Body):
    id: str | None = None


class ResponseBody(MetadataBody):
    """The fields of a request besides its input; what has a default here is repeated with it."""

    model: str | None = None
    prompt: Annotated[object, refuse("Prompt templates are not kept here.")] = None
    tools: list[dict[str, object]] = []
    tool_choice: ToolChoice = "auto"
    conversation: str | ConversationName = ""
    previous_response_id: str = ""
    instructions: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    parallel_tool_calls: bool = True
    store: bool = True
    background: bool = False
    stream: bool = False
    max_output_tokens: Annotated[int, Field(ge=MIN_OUTPUT_TOKENS, lt=2**31)] | None = None
    max_tool_calls: Count | None = None
    truncation: Literal["auto", "disabled"] = "auto"
    text: TextOptions = TextOptions()
    reasoning: Reasoning = Reasoning()
    include: list[Annotated[str, AfterValidator(_refuse_probabilities)]] = []
    top_logprobs: Annotated[object, refuse(NO_PROBABILITIES)] = None
    context_management: list[CompactionEntry] = []


@dataclass(frozen=True, kw_only=True)
class ResponseRequest:
    """A request for a response.

    `params` are in the words of the provider's protocol, and `echo` are the fields that the
    response repeats. `compact_threshold` is a number of tokens.
    """

    model: AiModel
    input: ResponseInput
    tools: list[dict[str, object]]
    servers: list[RequestServer]
    params: dict[str, object]
    echo: dict[str, Any]
    stream: bool = False
    previous_response_id: str = ""
    conversation_id: str = ""
    thread: ThreadName = field(default_factory=ThreadName)
    beside: str = ""  # the name of the session beside whose conversation something is asked
    is_summary: bool = False  # with which a program that names nothing goes on
    has_store: bool = False  # whether `store` is the client's own word and no default
    keeping: Keeping = field(default_factory=Keeping)
    compact_threshold: int | None = None
    ignored_fields: tuple[str, ...] = ()
    search_tool: McpTool | None = None  # that runs here

    @property
    def ignored_header(self) -> dict[str, str]:
        """The header that names what was left out; empty if nothing was."""
        return build_ignored_header(self.ignored_fields)

    @property
    def messages(self) -> list[ClientMessage]:
        """The messages of the input."""
        return self.input.messages

    @property
    def system(self) -> str | None:
        """The instructions and the texts of the system in the input."""
        return join_texts([self.instructions, *self.input.system_texts])

    @property
    def history_seed(self) -> str:
        """The beginning of the hash by which a whole history is recognized, which a token has."""
        return self.keeping.token_id

    @property
    def is_stored(self) -> bool:
        """False if nothing of the answer may stay."""
        return bool(self.echo["store"])

    @property
    def compacts_first(self) -> bool:
        """True if the answer may begin with a compaction, which waits for a model."""
        return self.compact_threshold is not None or self.input.has_trigger

    @property
    def is_background(self) -> bool:
        """True if the answer goes on when its client has left."""
        return bool(self.echo["background"])

    @property
    def reasoning_form(self) -> ReasoningForm:
        """How the response shows reasoning."""
        return get_reasoning_form(self.echo)

    @property
    def instructions(self) -> str:
        """The instructions of this response alone."""
        return self.echo["instructions"] or ""


def parse_response_request(
    user: User,
    value: Any,
    headers: Mapping[str, str],
    load_item: ItemLoader,
    default_model: AiModel | None,
    keeping: Keeping,
) -> ResponseRequest:
    """Return the request of a JSON body.

    `default_model` answers a body that names no model. The name of a session wins over
    `store`, which the response then shows as true. Raises the 400 problem that names the field,
    404 for an unknown model, and TooLargeProblem.
    """
    body = ResponseBody.parse(value)
    response_input = parse_input(value.get("input"), load_item)
    name = headers.get(SESSION_HEADER, "")[:MAX_SESSION_NAME_CHARS]
    thread, has_store = name_thread(name, headers, value, keeping), "store" in body.model_fields_set
    if thread.name:
        # Some programs send `store: false` with every request, and their user cannot change it.
        body = body.model_copy(update={"store": True})
    model = default_model
    if body.model is not None or model is None:
        model = get_usable_model(user, body.model)
    passes_on = load_protocol(model.provider.protocol).capabilities.has_messages_params
    request_tools = parse_tools(body.tools, response_input.lifted_tools, passes_on=passes_on)
    servers = _select_servers(body, request_tools, model)
    tools = build_tools(list(request_tools.definitions.values()), model)
    if isinstance(body.tool_choice, AllowedTools):
        allowed_names = body.tool_choice.list_names(request_tools)
        tools = [tool for tool in tools if tool["name"] in allowed_names]
    choice, left_out = _build_choice(body, request_tools)
    conversation_id = _parse_conversation_id(body, response_input)
    params = _build_params(body, model, choice if tools or servers else None)
    thresholds = [entry.compact_threshold for entry in body.context_management]
    return ResponseRequest(
        model=model,
        input=response_input,
        tools=tools,
        servers=servers,
        params=params,
        echo=_build_echo(body, request_tools, model),
        stream=body.stream,
        previous_response_id=body.previous_response_id,
        conversation_id=conversation_id,
        thread=thread,
        has_store=has_store,
        keeping=keeping,
        compact_threshold=next((each for each in reversed(thresholds) if each), None),
        ignored_fields=(
            *request_tools.ignored_fields,
            *left_out,
            *response_input.ignored_fields,
            *list_refused_params(model, params),
        ),
    )


def _parse_conversation_id(body: ResponseBody, response_input: ResponseInput) -> str:
    """Return the id of the conversation that the request names; empty if it names none.

    Raises the 400 problem for fields that exclude each other.
    """
    conversation = body.conversation
    conversation_id = conversation if isinstance(conversation, str) else conversation.id or ""
    if conversation_id and body.previous_response_id:
        detail = "Either previous_response_id or conversation, not both."
        raise InvalidFieldError("previous_response_id", detail)
    reasons = {
        "`background`": body.background,
        "`conversation`": conversation_id,
        "a compaction trigger": response_input.has_trigger,
    }
    for reason, is_given in reasons.items():
        if is_given and not body.store:
            raise InvalidFieldError("store", f"It must be true with {reason}.")
    return conversation_id


def get_reasoning_form(echo: Mapping[str, Any]) -> ReasoningForm:
    """Return how a response with these fields shows reasoning."""
    reasoning = echo.get("reasoning") or {}
    return ReasoningForm(
        is_summary=bool(reasoning.get("summary")),
        is_sealed=SEALED_REASONING in echo.get("include", ()),
    )


def _select_servers(body: ResponseBody, tools: RequestTools, model: AiModel) -> list[RequestServer]:
    """Return the servers of a request, without those that its choice leaves out."""
    if tools.servers and not model.may_call_tools:
        detail = f"The language model {model} calls no tools. {client_tools.WHERE_TO_CHANGE}"
        raise InvalidFieldError("tools", detail)
    choice = body.tool_choice
    return [
        server
        for label, server in tools.servers.items()
        if not isinstance(choice, AllowedTools) or choice.names_server(label)
    ]


def _build_echo(body: ResponseBody, tools: RequestTools, model: AiModel) -> dict[str, object]:
    """Return the fields that the response repeats, with their defaults."""
    text, reasoning, choice = body.text, body.reasoning, body.tool_choice
    return body.model_dump(include=REPEATED_FIELDS) | {
        "model": body.model or str(model),
        "instructions": body.instructions or None,
        "tools": tools.echo,
        "tool_choice": choice if isinstance(choice, str) else choice.build_echo(),
        "text": {"format": text.format.build_echo() if text.format else {"type": "text"}}
        | ({"verbosity": text.verbosity} if text.verbosity else {}),
        "reasoning": {
            "effort": reasoning.effort,
            "summary": reasoning.summary or reasoning.generate_summary,
        },
        "include": [SEALED_REASONING] if SEALED_REASONING in body.include else [],
        "top_logprobs": 0,
        "service_tier": "default",
    }


def _build_choice(body: ResponseBody, tools: RequestTools) -> tuple[object, list[str]]:
    """Return the choice of a tool in the words of chat completions, and what was left out of it.

    A tool that is left out, or is not known, cannot be chosen.
    """
    choice = body.tool_choice
    if not isinstance(choice, TypeChoice):
        return (choice if isinstance(choice, str) else choice.build_param()), []
    name = tools.find_by_type(choice.type)
    if name is None:
        return "auto", [f"tool_choice.{choice.type[:64]}"]
    return {"type": "function", "function": {"name": name}}, []


def _build_params(body: ResponseBody, model: AiModel, choice: object) -> dict[str, object]:
    """Return the parameters for the provider, checked like those of a session.

    `choice` is that of a tool; None without tools.
    """
    values = body.model_dump(include=NUMBERS, exclude_unset=True)
    values |= {
        "max_tokens": body.max_output_tokens,
        "prompt_cache_key": body.prompt_cache_key or None,
        "verbosity": body.text.verbosity,
        "reasoning_effort": body.reasoning.effort,
        "response_format": body.text.format.build_param() if body.text.format else None,
    }
    if choice:
        if choice != "auto":
            values["tool_choice"] = choice
        # A model that knows that it may make one call chooses the one that it needs most.
        if not body.parallel_tool_calls or body.max_tool_calls == 1:
            values["parallel_tool_calls"] = False
    params = ParamsField().to_internal_value(values)
    try:
        own_params = load_protocol(model.provider.protocol).translate_params(params)
    except InvalidParam as error:
        name = "text.format" if error.name == "response_format" else error.name
        raise InvalidFieldError(name, error.detail) from None
    require_room(own_params, model, max_tokens="max_output_tokens")
    return own_params


def build_not_found(kind: str, id: str, *, param: str | None = None) -> OpenAIProblem:
    """Build the 404 problem for an id that names nothing of the user's."""
    return OpenAIProblem(404, "not_found", f"{kind} with id '{id[:100]}' not found.", param=param)
