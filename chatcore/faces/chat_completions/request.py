"""What a client asks of `/v1/chat/completions`: the whole body, read. What is not known is ignored, as OpenAI's clients expect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chatcore.api.params import Params
from chatcore.faces.chat_completions.errors import Refused
from chatcore.faces.chat_completions.messages import Said, read
from chatcore.models import Session
from chatcore.rest.problems import Invalid
from chatcore.turns import client_tools
from models_registry.models import AiModel, Provider

HEADER = "X-Session-Id"
LONGEST_NAME = 255  # characters of a session's name
_PASSED = (
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
_OF_TOOLS = ("tool_choice", "parallel_tool_calls")
_CHOICES = {
    "auto": "auto",
    "required": "any",
    "none": "none",
}  # OpenAI's words for a choice of tools, and Anthropic's


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request. `model` is the registry's, `name` what the client called it; `params` are in the words of the model's protocol."""

    model: AiModel
    name: str
    system: str | None
    said: list[Said]
    tools: list[dict[str, Any]] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = False
    session: str = ""


def understood(body: Any, headers: Mapping[str, str]) -> Asked:
    """The request. Raises 400 that names the field, 404 for an unknown model, 413."""
    if not isinstance(body, Mapping):
        raise Invalid("body", "A JSON object.")
    model = model_named(body.get("model"))
    system, said = read(body.get("messages"))
    tools = _tools(body.get("tools"), model)
    stream, options = body.get("stream") or False, body.get("stream_options") or {}
    if not isinstance(stream, bool):
        raise Invalid("stream", "Either true or false.")
    if not isinstance(options, Mapping):
        raise Invalid("stream_options", "An object.")
    return Asked(
        model=model,
        name=str(body["model"]),
        system=system,
        said=said,
        tools=tools,
        params=_params(body, model, with_tools=bool(tools)),
        stream=stream,
        include_usage=bool(options.get("include_usage")),
        session=_session(body, headers),
    )


def model_named(name: Any) -> AiModel:
    """The usable model of this name, or `provider/name`. Raises 404 as OpenAI does."""
    if not isinstance(name, str) or not name:
        raise Invalid("model", "The name of a model.")
    model = AiModel.objects.named(name)
    if model is None:
        raise Refused(
            404,
            "model_not_found",
            f"The model `{name[:100]}` does not exist or you do not have access to it.",
        )
    return model


def _session(body: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """What the client calls its session; empty: it wants no memory."""
    metadata = body.get("metadata")
    place, name = HEADER, headers.get(HEADER)
    if not name and isinstance(metadata, Mapping):
        place, name = "metadata.session_id", metadata.get("session_id")
    if not name:
        return ""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid(place, f"A text of at most {LONGEST_NAME} characters.")
    return name


def _tools(given: Any, model: AiModel) -> list[dict[str, Any]]:
    if not given:
        return []
    if not isinstance(given, list):
        raise Invalid("tools", "A list of tools.")
    own = [_tool(item, f"tools[{index}]") for index, item in enumerate(given)]
    try:
        return client_tools.check(Session(model=model, tools=[]), own)
    except client_tools.ToolsRefused as wrong:
        raise Invalid(wrong.field, wrong.detail) from None


def _tool(item: Any, path: str) -> dict[str, Any]:
    function = (
        item.get("function")
        if isinstance(item, Mapping) and item.get("type", "function") == "function"
        else None
    )
    if not isinstance(function, Mapping):
        raise Invalid(path, "A tool of type function.")
    for name, kind in (("name", str), ("description", str), ("parameters", Mapping)):
        if not isinstance(function.get(name), kind) and (
            name == "name" or function.get(name) is not None
        ):
            raise Invalid(f"{path}.function.{name}", "An object." if kind is Mapping else "A text.")
    return {name: function.get(name) for name in ("name", "description", "parameters")}


def _params(body: Mapping[str, Any], model: AiModel, *, with_tools: bool) -> dict[str, Any]:
    """What is said to the provider beside the messages, checked as a session's params are."""
    named = dict(body) | {"max_tokens": body.get("max_completion_tokens") or body.get("max_tokens")}
    taken = {
        name: named[name]
        for name in (*_PASSED, *(_OF_TOOLS if with_tools else ()))
        if named.get(name) is not None
    }
    params = Params().to_internal_value(taken)
    params.pop("n", None)
    return (
        _for_anthropic(params) if model.provider.protocol == Provider.Protocol.ANTHROPIC else params
    )


def _for_anthropic(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the other protocol's words; what it has no word for, it would refuse."""
    theirs = {
        name: params[name]
        for name in ("temperature", "top_p", "top_k", "max_tokens")
        if name in params
    }
    if "temperature" in theirs:
        theirs["temperature"] = min(1, theirs["temperature"])
    if stop := params.get("stop"):
        theirs["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    chosen = params.get("tool_choice", "auto")
    choice: dict[str, Any] = (
        {"type": _CHOICES.get(chosen, "auto")} if isinstance(chosen, str) else _this_tool(chosen)
    )
    if params.get("parallel_tool_calls") is False and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return theirs | ({"tool_choice": choice} if choice != {"type": "auto"} else {})


def _this_tool(choice: Any) -> dict[str, Any]:
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Invalid("tool_choice", "auto, none, required, or a function by its name.")
    return {"type": "tool", "name": function["name"]}
