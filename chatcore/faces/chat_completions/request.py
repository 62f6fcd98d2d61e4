"""Parse the body of `/v1/chat/completions`.

Unknown fields are ignored, as OpenAI does: its clients send new ones before servers know them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chatcore.api.params import ParamsField
from chatcore.faces.chat_completions.errors import OpenAIProblem
from chatcore.faces.chat_completions.messages import ClientMessage, parse_messages
from chatcore.models import Session
from chatcore.providers import registry as provider_registry
from chatcore.providers.errors import InvalidParam
from chatcore.rest.problems import InvalidFieldError
from chatcore.turns import client_tools
from models_registry.models import AiModel

SESSION_HEADER = "X-Session-Id"
MAX_SESSION_NAME_CHARS = 255
PROVIDER_PARAMS = (
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
    "logit_bias",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "prompt_cache_key",
    "max_tokens",
)
TOOL_PARAMS = ("tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """A request for a chat completion.

    `model` is the row of the registry, and `model_name` what the client called it. `params` are in
    the words of the provider's protocol. An empty `session_name` means an answer without memory.
    """

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
    """Return the request of a JSON body.

    Raises the 400 problem that names the field, 404 for an unknown model, and TooLargeProblem.
    """
    if not isinstance(body, Mapping):
        raise InvalidFieldError("body", "A JSON object.")
    model = get_usable_model(body.get("model"))
    system, messages = parse_messages(body.get("messages"))
    tools = _parse_tools(body.get("tools"), model)
    stream = body.get("stream") or False
    if not isinstance(stream, bool):
        raise InvalidFieldError("stream", "Either true or false.")
    stream_options = body.get("stream_options") or {}
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
    """Return the usable model of this name, or of `provider/name`. Raises 404 as OpenAI does."""
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
    """Return the session's name from the header, or else from the metadata; empty if none."""
    source = SESSION_HEADER
    name: Any = headers.get(SESSION_HEADER)
    metadata = body.get("metadata")
    if not name and isinstance(metadata, Mapping):
        source = "metadata.session_id"
        name = metadata.get("session_id")
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
    # An unsaved session without tools of its own, since the client's are the only ones here.
    return client_tools.validate_tools(Session(model=model, tools=[]), definitions)


def _parse_tool(item: Any, path: str) -> dict[str, Any]:
    function = None
    if isinstance(item, Mapping) and item.get("type", "function") == "function":
        function = item.get("function")
    if not isinstance(function, Mapping):
        raise InvalidFieldError(path, "A tool of the type function.")
    name, description, parameters = (
        function.get(key) for key in ("name", "description", "parameters")
    )
    if not isinstance(name, str):
        raise InvalidFieldError(f"{path}.function.name", "A text.")
    if description is not None and not isinstance(description, str):
        raise InvalidFieldError(f"{path}.function.description", "A text.")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidFieldError(f"{path}.function.parameters", "An object.")
    return {"name": name, "description": description, "parameters": parameters}


def _parse_params(body: Mapping[str, Any], model: AiModel, *, has_tools: bool) -> dict[str, Any]:
    """Return the parameters for the provider, checked like those of a session."""
    values = dict(body)
    # OpenAI's newer name for the same limit.
    values["max_tokens"] = body.get("max_completion_tokens") or body.get("max_tokens")
    names = PROVIDER_PARAMS + TOOL_PARAMS if has_tools else PROVIDER_PARAMS
    params = ParamsField().to_internal_value(
        {name: values[name] for name in names if values.get(name) is not None}
    )
    params.pop("n", None)  # it can only be 1
    try:
        return provider_registry.translate_params(model.provider.protocol, params)
    except InvalidParam as error:
        raise InvalidFieldError(error.name, error.detail) from None
