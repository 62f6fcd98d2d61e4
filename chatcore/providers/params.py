"""The parameters of an answer that users may set, and the values each may have.

Each protocol names its own (`param_names`). A gateway understands many more: other addresses, keys,
models, prices. So a name that no protocol has is not sent, unless the provider's option `params`
names it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from chatcore.base.json_schema import Validator
from chatcore.providers.base import parse_count
from chatcore.providers.protocols import load_protocol
from models_registry.models import AiModel, Provider

MAX_STOPS = 16
MAX_BIASES = 1_024
MAX_STOP_CHARS = 1000
MAX_TEXT_CHARS = 200
MAX_INTEGER = 2**31 - 1

# A request has fields of its own for these.
RESERVED_NAMES = frozenset(
    {"model", "messages", "system", "stream", "stream_options", "tools", "functions"}
)


@dataclass(frozen=True)
class ParamRule:
    """The values that one parameter may have, as a JSON schema, and what is said of others."""

    error_detail: str
    schema: Mapping[str, object]

    def is_valid(self, value: object) -> bool:
        """Return whether the parameter may have this value. A float is never infinite."""
        is_finite = not isinstance(value, float) or isfinite(value)
        return is_finite and bool(Validator(self.schema).is_valid(value))


def _build_number_rule(low: float, high: float) -> ParamRule:
    schema = {"type": ["number", "null"], "minimum": low, "maximum": high}
    return ParamRule(f"A number from {low:g} to {high:g}.", schema)


def _build_integer_rule(low: int, high: int) -> ParamRule:
    schema = {"type": ["integer", "null"], "minimum": low, "maximum": high}
    return ParamRule(f"A whole number from {low} to {high}.", schema)


_STOP_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS}
_STOPS_SCHEMA = {"type": "array", "items": _STOP_SCHEMA, "maxItems": MAX_STOPS}
_STOP_RULE = ParamRule(
    f"A text, or a list of at most {MAX_STOPS}.",
    {"anyOf": [_STOP_SCHEMA, _STOPS_SCHEMA, {"type": "null"}]},
)
_TEXT_RULE = ParamRule(
    f"A text of at most {MAX_TEXT_CHARS} characters.",
    {"type": ["string", "null"], "minLength": 1, "maxLength": MAX_TEXT_CHARS},
)
_BIAS_RULE = ParamRule(
    f"At most {MAX_BIASES} numbers of tokens, each with a number from -100 to 100.",
    {
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^[0-9]+$"},
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
        "maxProperties": MAX_BIASES,
    },
)
_OBJECT_RULE = ParamRule("An object.", {"type": ["object", "null"]})
_CHOICE_RULE = ParamRule("A text or an object.", {"type": ["string", "object", "null"]})
_FLAG_RULE = ParamRule("true or false.", {"type": ["boolean", "null"]})

PARAM_RULES = {
    "temperature": _build_number_rule(0, 2),
    "top_p": _build_number_rule(0, 1),
    "min_p": _build_number_rule(0, 1),
    "presence_penalty": _build_number_rule(-2, 2),
    "frequency_penalty": _build_number_rule(-2, 2),
    "repetition_penalty": _build_number_rule(0, 10),
    "max_tokens": _build_integer_rule(1, MAX_INTEGER),
    "top_k": _build_integer_rule(0, MAX_INTEGER),
    "seed": _build_integer_rule(-(2**63), 2**63 - 1),
    "n": _build_integer_rule(1, 1),
    "stop": _STOP_RULE,
    "stop_sequences": _STOP_RULE,
    "reasoning_effort": _TEXT_RULE,
    "verbosity": _TEXT_RULE,
    "prompt_cache_key": _TEXT_RULE,
    "parallel_tool_calls": _FLAG_RULE,
    "tool_choice": _CHOICE_RULE,
    "logit_bias": _BIAS_RULE,
    "response_format": _OBJECT_RULE,
    "cache_control": _OBJECT_RULE,
    "metadata": _OBJECT_RULE,
    "output_config": _OBJECT_RULE,
    "thinking": _OBJECT_RULE,
}


def list_extra_names(provider: Provider) -> frozenset[str]:
    """Return the parameters that the operator allows for this provider."""
    names = provider.options.get("params")
    if not isinstance(names, list):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str)) - RESERVED_NAMES


def list_param_names(provider: Provider | None) -> frozenset[str]:
    """Return the parameters that may be sent to this provider.

    Without one, those of all protocols: the session has no language model yet.
    """
    if provider is None:
        protocols = map(load_protocol, Provider.Protocol.values)
        return frozenset().union(*(protocol.param_names for protocol in protocols))
    return load_protocol(provider.protocol).param_names | list_extra_names(provider)


def select_params(params: Mapping[str, object], provider: Provider | None) -> dict[str, Any]:
    """Return the parameters that may be sent.

    Others are stored where a session had a model of another protocol, or by an earlier version.
    """
    names = list_param_names(provider)
    return {name: value for name, value in params.items() if name in names}


def find_unknown_names(params: Mapping[str, object], provider: Provider | None) -> dict[str, str]:
    """Return what to say of each parameter that may not be sent to this provider."""
    names = list_param_names(provider)
    detail = "The provider of this language model is not sent such a parameter."
    return {name: detail for name in params if name not in names}


def get_thinking(params: Mapping[str, object], model: AiModel) -> Mapping[str, object]:
    """Return the parameter `thinking` as it is sent; empty if the model is not asked to think.

    That of the provider's option `body` stands above the others.
    """
    body = model.provider.options.get("body")
    sent_params = {**params, **(body if isinstance(body, Mapping) else {})}
    thinking = sent_params.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") == "disabled":
        return {}
    return thinking


def find_missing_room(params: Mapping[str, object], model: AiModel) -> dict[str, str]:
    """Return what to say of parameters with which the thoughts would leave an answer no room.

    Each request with them would be refused.
    """
    thinking = get_thinking(params, model)
    budget = parse_count(thinking.get("budget_tokens")) or 0
    limit = model.max_output_tokens
    if thinking is params.get("thinking") and budget and limit and budget >= limit:
        return {"thinking": f"budget_tokens must be less than the {limit} that the model writes."}
    max_tokens = parse_count(params.get("max_tokens"))
    if max_tokens and max_tokens <= budget:
        return {"max_tokens": f"It must be more than thinking.budget_tokens, which is {budget}."}
    return {}


def find_bad_values(params: Mapping[str, object]) -> dict[str, str]:
    """Return what to say of each parameter whose value is wrong, whatever the provider."""
    errors = {}
    for name, value in params.items():
        rule = PARAM_RULES.get(name)
        if name in RESERVED_NAMES:
            errors[name] = "The request has a field of its own for this."
        elif rule is not None and not rule.is_valid(value):
            errors[name] = rule.error_detail
    return errors
