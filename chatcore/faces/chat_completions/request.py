"""What a client asks of `/v1/chat/completions`: the whole body, read. What is not known is ignored, as OpenAI's clients expect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chatcore.api.params import ParamsField
from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.messages import ClientMessage, parse_messages
from chatcore.models import Session
from chatcore.rest.problems import InvalidFieldError
from chatcore.turns import client_tools
from models_registry.models import AiModel, Provider

SESSION_HEADER = "X-Session-Id"
MAX_SESSION_NAME_CHARS = 255  # characters of a session's name
_PROVIDER_PARAMS = (
    *(
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "stop",
        "seed",
        "n",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
    ),
    *(
        "logit_bias",
        "response_format",
        "reasoning_effort",
        "verbosity",
        "prompt_cache_key",
        "max_tokens",
    ),
)
_TOOL_PARAMS = ("tool_choice", "parallel_tool_calls")
_ANTHROPIC_TOOL_CHOICES = {
    "auto": "auto",
    "required": "any",
    "none": "none",
}  # OpenAI's words for a choice of tools, and Anthropic's


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """One request. `model` is the registry's, `name` what the client called it; `params` are in the words of the model's protocol."""

    model: AiModel
    model_name: str
    system: str | None
    messages: list[ClientMessage]
    tools: list[dict[str, Any]] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    session_name: str = ""


def parse_completion_request(body: Any, headers: Mapping[str, str]) -> CompletionRequest:
    """The request. Raises 400 that names the field, 404 for an unknown model, 413."""
    if not isinstance(body, Mapping):
        raise InvalidFieldError("body", "A JSON object.")
    model = get_usable_model(body.get("model"))
    system, messages = parse_messages(body.get("messages"))
    tools = _parse_tools(body.get("tools"), model)
    stream, stream_options = body.get("stream") or False, body.get("stream_options") or {}
    if not isinstance(stream, bool):
        raise InvalidFieldError("stream", "Either true or false.")
    if not isinstance(stream_options, Mapping):
        raise InvalidFieldError("stream_options", "An object.")
    return CompletionRequest(
        model=model,
        model_name=str(body["model"]),
        system=system,
        messages=messages,
        tools=tools,
        params=_parse_params(body, model, has_tools=bool(tools)),
        stream=stream,
        include_usage=bool(stream_options.get("include_usage")),
        session_name=_parse_session_name(body, headers),
    )


def get_usable_model(name: Any) -> AiModel:
    """The usable model of this name, or `provider/name`. Raises 404 as OpenAI does."""
    if not isinstance(name, str) or not name:
        raise InvalidFieldError("model", "The name of a model.")
    model = AiModel.objects.find_by_name(name)
    if model is None:
        raise OpenAIProblem(
            404,
            "model_not_found",
            f"The model `{name[:100]}` does not exist or you do not have access to it.",
        )
    return model


def _parse_session_name(body: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """What the client calls its session; empty: it wants no memory."""
    metadata = body.get("metadata")
    source, name = SESSION_HEADER, headers.get(SESSION_HEADER)
    if not name and isinstance(metadata, Mapping):
        source, name = "metadata.session_id", metadata.get("session_id")
    if not name:
        return ""
    if not isinstance(name, str) or len(name) > MAX_SESSION_NAME_CHARS or not name.isprintable():
        raise InvalidFieldError(source, f"A text of at most {MAX_SESSION_NAME_CHARS} characters.")
    return name


def _parse_tools(value: Any, model: AiModel) -> list[dict[str, Any]]:
    if not value:
        return []
    if not isinstance(value, list):
        raise InvalidFieldError("tools", "A list of tools.")
    definitions = [_parse_tool(item, f"tools[{index}]") for index, item in enumerate(value)]
    try:
        return client_tools.validate_tools(Session(model=model, tools=[]), definitions)
    except client_tools.InvalidClientTools as error:
        raise InvalidFieldError(error.field, error.detail) from None


def _parse_tool(item: Any, path: str) -> dict[str, Any]:
    function = (
        item.get("function")
        if isinstance(item, Mapping) and item.get("type", "function") == "function"
        else None
    )
    if not isinstance(function, Mapping):
        raise InvalidFieldError(path, "A tool of type function.")
    for name, kind in (("name", str), ("description", str), ("parameters", Mapping)):
        if not isinstance(function.get(name), kind) and (
            name == "name" or function.get(name) is not None
        ):
            raise InvalidFieldError(
                f"{path}.function.{name}", "An object." if kind is Mapping else "A text."
            )
    return {name: function.get(name) for name in ("name", "description", "parameters")}


def _parse_params(body: Mapping[str, Any], model: AiModel, *, has_tools: bool) -> dict[str, Any]:
    """What is said to the provider beside the messages, checked as a session's params are."""
    body_values = dict(body) | {
        "max_tokens": body.get("max_completion_tokens") or body.get("max_tokens")
    }
    values = {
        name: body_values[name]
        for name in (*_PROVIDER_PARAMS, *(_TOOL_PARAMS if has_tools else ()))
        if body_values.get(name) is not None
    }
    params = ParamsField().to_internal_value(values)
    params.pop("n", None)
    return (
        _to_anthropic_params(params)
        if model.provider.protocol == Provider.Protocol.ANTHROPIC
        else params
    )


def _to_anthropic_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the other protocol's words; what it has no word for, it would refuse."""
    anthropic_params = {
        name: params[name]
        for name in ("temperature", "top_p", "top_k", "max_tokens")
        if name in params
    }
    if "temperature" in anthropic_params:
        anthropic_params["temperature"] = min(1, anthropic_params["temperature"])
    if stop := params.get("stop"):
        anthropic_params["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    tool_choice = params.get("tool_choice", "auto")
    choice: dict[str, Any] = (
        {"type": _ANTHROPIC_TOOL_CHOICES.get(tool_choice, "auto")}
        if isinstance(tool_choice, str)
        else _parse_tool_choice(tool_choice)
    )
    if params.get("parallel_tool_calls") is False and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return anthropic_params | ({"tool_choice": choice} if choice != {"type": "auto"} else {})


def _parse_tool_choice(choice: Any) -> dict[str, Any]:
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InvalidFieldError("tool_choice", "auto, none, required, or a function by its name.")
    return {"type": "tool", "name": function["name"]}
