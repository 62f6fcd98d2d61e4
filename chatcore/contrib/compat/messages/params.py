"""The parameters of a request, in the words of the protocol that its model speaks."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from chatcore.api.params import ParamsField
from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.bodies import Body
from chatcore.contrib.compat.messages.request_tools import ToolChoice
from chatcore.providers.params import PARAM_NAMES, list_extra_names
from chatcore.providers.registry import get_capabilities
from models_registry.models import AiModel

OWN_NAMES = PARAM_NAMES["anthropic"] - {"metadata"}
TRANSLATED_NAMES = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "stop_sequences",
        "tool_choice",
        "output_config",
    }
)
TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "xhigh"}
# An answer may take at most this part of the window, since clients ask for more than a small model
# has, and nothing would be left of the window for the question.
MAX_WINDOW_SHARE = 2


class AnswerFormat(Body):
    type: Literal["json_schema"]
    json_schema: dict[str, Any] = Field(alias="schema")


class OutputConfig(Body):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: AnswerFormat | None = None


def build_params(
    body: Mapping[str, object], model: AiModel, choice: ToolChoice | None
) -> dict[str, Any]:
    """Return the parameters for the provider. Raises the 400 problem that names the field."""
    values = {name: body[name] for name in OWN_NAMES if body.get(name) is not None}
    if "max_tokens" not in values:
        raise InvalidFieldError("max_tokens", "Field required")
    values["tool_choice"] = choice.model_dump(exclude_none=True) if choice else None
    params = ParamsField().to_internal_value(values)
    params["max_tokens"] = _limit_answer(params["max_tokens"], model)
    extra_names = list_extra_names(model.provider) - OWN_NAMES
    extra_values = {name: body[name] for name in extra_names if name in body}
    extra_params = ParamsField().to_internal_value(extra_values)
    if get_capabilities(model.provider.protocol).has_messages_params:
        metadata = body.get("metadata")
        if isinstance(metadata, Mapping) and isinstance(metadata.get("user_id"), str):
            params["metadata"] = {"user_id": metadata["user_id"]}
        return extra_params | params
    return extra_params | _translate_to_openai(params)


def list_untranslated(body: Mapping[str, object], model: AiModel) -> list[str]:
    """Return the parameters of which nothing comes with a model of this protocol."""
    if get_capabilities(model.provider.protocol).has_messages_params:
        return []
    names = OWN_NAMES - TRANSLATED_NAMES - list_extra_names(model.provider)
    return sorted(name for name in names if body.get(name) is not None)


def _limit_answer(max_tokens: int, model: AiModel) -> int:
    """Return how long an answer may get: no longer than the model can write."""
    limits = [max_tokens]
    if model.max_output_tokens:
        limits.append(model.max_output_tokens)
    if model.context_window_size:
        limits.append(max(1, model.context_window_size // MAX_WINDOW_SHARE))
    return min(limits)


def _translate_to_openai(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters in the words of chat completions."""
    translated_params = {
        name: params[name]
        for name in ("temperature", "top_p", "top_k", "max_tokens")
        if name in params
    }
    if params.get("stop_sequences"):
        translated_params["stop"] = params["stop_sequences"]
    choice = params.get("tool_choice")
    if choice:
        if choice["type"] == "tool":
            function = {"name": choice["name"]}
            translated_params["tool_choice"] = {"type": "function", "function": function}
        elif choice["type"] != "auto":
            translated_params["tool_choice"] = TOOL_CHOICES[choice["type"]]
        if choice.get("disable_parallel_tool_use"):
            translated_params["parallel_tool_calls"] = False
    config = params.get("output_config") or {}
    if config.get("effort"):
        translated_params["reasoning_effort"] = EFFORTS[config["effort"]]
    if config.get("format"):
        schema = {"name": "answer", "schema": config["format"]["schema"], "strict": True}
        translated_params["response_format"] = {"type": "json_schema", "json_schema": schema}
    return translated_params
