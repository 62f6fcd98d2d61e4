"""Parameters of OpenAI's chat completions in the words of the Anthropic protocol."""

from collections.abc import Mapping
from typing import Any

from chatcore.providers.errors import InvalidParam

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


def translate_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters in the protocol's words. Raises InvalidParam.

    Parameters that the protocol does not know are left out, because it would refuse the request.
    """
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


def list_ignored_params(params: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters that the protocol does not know."""
    return sorted(params.keys() - _KNOWN_PARAMS)


def _build_output_config(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form and the effort of the answer. Raises InvalidParam for another form."""
    output_config: dict[str, Any] = {}
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


def _translate_tool_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"type": _TOOL_CHOICES.get(choice, "auto")}
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InvalidParam("tool_choice", "auto, none, required, or a function by its name.")
    return {"type": "tool", "name": function["name"]}
