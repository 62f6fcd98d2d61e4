"""Parameters of OpenAI's chat completions in the words of the Anthropic protocol."""

from collections.abc import Mapping
from typing import Any

from chatcore.providers.errors import InvalidParam

_SHARED_PARAMS = ("temperature", "top_p", "top_k", "max_tokens")
_MAX_TEMPERATURE = 1
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
    choice = _translate_tool_choice(params.get("tool_choice", "auto"))
    if params.get("parallel_tool_calls") is False and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    if choice != {"type": "auto"}:
        anthropic_params["tool_choice"] = choice
    return anthropic_params


def _translate_tool_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, str):
        return {"type": _TOOL_CHOICES.get(choice, "auto")}
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InvalidParam("tool_choice", "auto, none, required, or a function by its name.")
    return {"type": "tool", "name": function["name"]}
