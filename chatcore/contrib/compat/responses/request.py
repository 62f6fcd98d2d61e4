"""Parse the body of `POST /v1/responses`.

Unknown fields are ignored, as OpenAI does: its clients send new ones before servers know them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatcore.api.params import ParamsField
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.chat_completions.errors import OpenAIProblem
from chatcore.contrib.compat.chat_completions.request import SESSION_HEADER, get_usable_model
from chatcore.contrib.compat.content_parts import parse_text
from chatcore.contrib.compat.responses import request_tools
from chatcore.contrib.compat.responses.input_items import ItemLoader, ResponseInput, parse_input
from chatcore.contrib.compat.responses.mcp import request_servers
from chatcore.contrib.compat.responses.output_items import ReasoningForm
from chatcore.providers import registry as provider_registry
from chatcore.providers.errors import InvalidParam
from chatcore.tools.mcp.turn_servers import RequestServer
from models_registry.models import AiModel

INCLUDES = ("reasoning.encrypted_content",)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITIES = ("low", "medium", "high")
TRUNCATIONS = ("auto", "disabled")
MAX_METADATA = 16
MAX_METADATA_KEY = 64
MAX_METADATA_VALUE = 512
MIN_OUTPUT_TOKENS = 16
# By name: what a response says when the request says nothing.
NUMBER_DEFAULTS = {
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
TEXT_FIELDS = ("instructions", "safety_identifier", "prompt_cache_key")
FLAG_DEFAULTS = {"parallel_tool_calls": True, "store": True, "background": False}


@dataclass(frozen=True, kw_only=True)
class ResponseRequest:
    """A request for a response.

    `model` is None if the body names none. `params` are in the words of the provider's protocol,
    and `echo` are the fields that the response repeats. `compact_threshold` is a number of tokens.
    """

    body: Mapping[str, Any]
    model: AiModel
    names_model: bool
    input: ResponseInput
    tools: list[dict[str, Any]]
    servers: list[RequestServer]
    params: dict[str, Any]
    echo: dict[str, Any]
    stream: bool = False
    previous_response_id: str = ""
    conversation_id: str = ""
    session_name: str = ""
    compact_threshold: int | None = None

    @property
    def is_stored(self) -> bool:
        """False if nothing of the answer may stay."""
        return bool(self.echo["store"])

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
    user: Any,
    body: Any,
    headers: Mapping[str, str],
    load_item: ItemLoader,
    default_model: AiModel | None,
) -> ResponseRequest:
    """Return the request of a JSON body.

    `default_model` answers a body that names no model. Raises the 400 problem that names the field,
    404 for an unknown model, and TooLargeProblem.
    """
    if not isinstance(body, Mapping):
        raise InvalidFieldError("body", "A JSON object.")
    model = default_model
    if body.get("model") is not None or model is None:
        model = get_usable_model(user, body.get("model"))
    if body.get("prompt"):
        raise InvalidFieldError("prompt", "Prompt templates are not kept here.")
    servers = request_servers.parse_servers(body.get("tools"), body.get("tool_choice"), model)
    echo = _parse_echo(body, model)
    tools = request_tools.parse_tools(body.get("tools"), body.get("tool_choice"), model)
    conversation_id = parse_conversation(body.get("conversation"))
    previous_id = _parse_optional_text(body, "previous_response_id")
    if conversation_id and previous_id:
        detail = "Either previous_response_id or conversation, not both."
        raise InvalidFieldError("previous_response_id", detail)
    for name, value in (("background", echo["background"]), ("conversation", conversation_id)):
        if value and not echo["store"]:
            raise InvalidFieldError("store", f"It must be true with `{name}`.")
    response_input = parse_input(body.get("input"), load_item)
    if response_input.has_trigger and not echo["store"]:
        raise InvalidFieldError("store", "It must be true with a compaction trigger.")
    return ResponseRequest(
        body=body,
        model=model,
        names_model=body.get("model") is not None,
        input=response_input,
        tools=tools,
        servers=servers,
        params=_build_params(body, model, echo, has_tools=bool(tools or servers)),
        echo=echo,
        stream=_parse_flag(body, "stream", default=False),
        previous_response_id=previous_id,
        conversation_id=conversation_id,
        session_name=headers.get(SESSION_HEADER, "")[:255],
        compact_threshold=_parse_context_management(body.get("context_management")),
    )


def get_reasoning_form(echo: Mapping[str, Any]) -> ReasoningForm:
    """Return how a response with these fields shows reasoning."""
    reasoning = echo.get("reasoning") or {}
    return ReasoningForm(
        is_summary=bool(reasoning.get("summary")),
        is_sealed="reasoning.encrypted_content" in echo.get("include", ()),
    )


def parse_metadata(value: Any) -> dict[str, str]:
    """Return up to 16 pairs of texts. Raises the 400 problem."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_METADATA:
        raise InvalidFieldError("metadata", f"An object with at most {MAX_METADATA} texts.")
    for name, text in value.items():
        if len(name) > MAX_METADATA_KEY:
            raise InvalidFieldError("metadata", f"A key has at most {MAX_METADATA_KEY} characters.")
        if not isinstance(text, str) or len(text) > MAX_METADATA_VALUE:
            detail = f"A text of at most {MAX_METADATA_VALUE} characters."
            raise InvalidFieldError(f"metadata.{name}", detail)
    return dict(value)


def parse_conversation(value: Any) -> str:
    """Return the id of a conversation, given as it is or in an object; empty for none."""
    if isinstance(value, Mapping):
        value = value.get("id")
    if value is None:
        return ""
    return parse_text(value, "conversation")


def _parse_echo(body: Mapping[str, Any], model: AiModel) -> dict[str, Any]:
    """Return the fields that the response repeats, with their defaults."""
    echo: dict[str, Any] = {"model": str(body.get("model") or model)}
    for name, default in NUMBER_DEFAULTS.items():
        echo[name] = default if body.get(name) is None else body[name]
    for name in TEXT_FIELDS:
        echo[name] = _parse_optional_text(body, name) or None
    for name, flag in FLAG_DEFAULTS.items():
        echo[name] = _parse_flag(body, name, default=flag)
    echo["max_output_tokens"] = _parse_count(body, "max_output_tokens", MIN_OUTPUT_TOKENS)
    echo["max_tool_calls"] = _parse_count(body, "max_tool_calls", 1)
    echo["metadata"] = parse_metadata(body.get("metadata"))
    echo["truncation"] = body.get("truncation") or "auto"
    if echo["truncation"] not in TRUNCATIONS:
        raise InvalidFieldError("truncation", "Either auto or disabled.")
    echo["tools"] = request_tools.build_tool_echo(body.get("tools"))
    echo["tool_choice"] = request_tools.build_choice_echo(body.get("tool_choice"))
    echo["text"] = _parse_text_options(body.get("text"))
    echo["reasoning"] = _parse_reasoning(body.get("reasoning"))
    echo["include"] = _parse_include(body.get("include"))
    if body.get("top_logprobs"):
        raise InvalidFieldError("top_logprobs", "Probabilities of tokens are not available.")
    echo["top_logprobs"] = 0
    echo["service_tier"] = "default"
    return echo


def _parse_text_options(value: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"format": {"type": "text"}}
    if value is None:
        return options
    if not isinstance(value, Mapping):
        raise InvalidFieldError("text", "An object.")
    if value.get("verbosity") is not None:
        if value["verbosity"] not in VERBOSITIES:
            raise InvalidFieldError("text.verbosity", "One of low, medium, high.")
        options["verbosity"] = value["verbosity"]
    text_format = value.get("format")
    if text_format is None:
        return options
    type = text_format.get("type") if isinstance(text_format, Mapping) else None
    if type in ("text", "json_object"):
        options["format"] = {"type": type}
    elif type == "json_schema":
        if not isinstance(text_format.get("schema"), Mapping):
            raise InvalidFieldError("text.format.schema", "A JSON schema.")
        options["format"] = {
            "type": type,
            "name": parse_text(text_format.get("name") or "response", "text.format.name"),
            "description": _parse_optional_text(text_format, "description") or None,
            # The standard has null here, because the client has the schema.
            "schema": None,
            "strict": bool(text_format.get("strict")),
        }
    else:
        raise InvalidFieldError("text.format.type", "One of text, json_object, json_schema.")
    return options


def _parse_reasoning(value: Any) -> dict[str, Any]:
    if value is None:
        return {"effort": None, "summary": None}
    if not isinstance(value, Mapping):
        raise InvalidFieldError("reasoning", "An object.")
    # `generate_summary` is OpenAI's earlier name of the same.
    summary = value.get("summary") or value.get("generate_summary")
    if summary not in (None, "auto", "concise", "detailed"):
        raise InvalidFieldError("reasoning.summary", "One of auto, concise, detailed.")
    effort = value.get("effort")
    if effort is not None and effort not in EFFORTS:
        raise InvalidFieldError("reasoning.effort", f"One of {', '.join(EFFORTS)}.")
    return {"effort": effort, "summary": summary}


def _parse_include(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidFieldError("include", "A list of names.")
    for index, name in enumerate(value):
        if name == "message.output_text.logprobs":
            detail = "Probabilities of tokens are not available."
            raise InvalidFieldError(f"include[{index}]", detail)
    return [name for name in INCLUDES if name in value]


def _parse_context_management(value: Any) -> int | None:
    """Return the number of tokens from which on to compact; None for the policy's own."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise InvalidFieldError("context_management", "A list of objects.")
    threshold = None
    for index, entry in enumerate(value):
        path = f"context_management[{index}]"
        if not isinstance(entry, Mapping) or entry.get("type") != "compaction":
            raise InvalidFieldError(f"{path}.type", "Only compaction.")
        if entry.get("compact_threshold") is not None:
            threshold = _check_count(entry["compact_threshold"], f"{path}.compact_threshold", 1)
    return threshold


def _build_params(
    body: Mapping[str, Any], model: AiModel, echo: Mapping[str, Any], *, has_tools: bool
) -> dict[str, Any]:
    """Return the parameters for the provider, checked like those of a session."""
    values = {name: body.get(name) for name in NUMBER_DEFAULTS}
    values["max_tokens"] = echo["max_output_tokens"]
    values["prompt_cache_key"] = echo["prompt_cache_key"]
    values["verbosity"] = echo["text"].get("verbosity")
    values["reasoning_effort"] = echo["reasoning"]["effort"]
    values["response_format"] = _build_response_format(body.get("text"), echo["text"]["format"])
    if has_tools:
        values["tool_choice"] = request_tools.build_choice_param(body.get("tool_choice"))
        # A model that knows that it may make one call chooses the one that it needs most.
        if not echo["parallel_tool_calls"] or echo["max_tool_calls"] == 1:
            values["parallel_tool_calls"] = False
    params = ParamsField().to_internal_value(values)
    try:
        return provider_registry.translate_params(model.provider.protocol, params)
    except InvalidParam as error:
        name = "text.format" if error.name == "response_format" else error.name
        raise InvalidFieldError(name, error.detail) from None


def _build_response_format(text: Any, text_format: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the format of the answer in the words of chat completions; None for plain text."""
    if text_format["type"] == "text":
        return None
    if text_format["type"] == "json_object":
        return {"type": "json_object"}
    schema = {"name": text_format["name"], "schema": text["format"]["schema"]}
    for name in ("description", "strict"):
        if text["format"].get(name) is not None:
            schema[name] = text["format"][name]
    return {"type": "json_schema", "json_schema": schema}


def _parse_optional_text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return "" if value is None else parse_text(value, name)


def _parse_flag(body: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidFieldError(name, "Either true or false.")
    return value


def _parse_count(body: Mapping[str, Any], name: str, low: int) -> int | None:
    return None if body.get(name) is None else _check_count(body[name], name, low)


def _check_count(value: Any, path: str, low: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value < 2**31:
        raise InvalidFieldError(path, f"A whole number from {low}.")
    return value


def build_not_found(kind: str, id: str, *, param: str | None = None) -> OpenAIProblem:
    """Build the 404 problem for an id that names nothing of the user's."""
    return OpenAIProblem(404, "not_found", f"{kind} with id '{id[:100]}' not found.", param=param)
