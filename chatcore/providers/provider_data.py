"""What a provider wants back with an answer: signed thoughts, reasoning, extras of calls.

It is stored as the provider sent it. What does not have that form, from an import of an earlier
version, is not sent: it would be a stranger's blocks in the request, or end every later turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

# The key of a mark up to which a provider is to cache, whatever model wrote the message.
CACHE_CONTROL = "cache_control"
REASONING_FIELDS = ("reasoning_content", "reasoning")
LOST_REASONING = "The reasoning was not kept."
# The kinds in the stored order of an answer's blocks. A text stands there as its length.
THOUGHT, CALL = "thought", "call"
_SIGNED = "anthropic"  # the protocol whose thoughts are signed
_TEXT_FIELDS = {"thinking": "thinking", "redacted_thinking": "data"}


def select_thinking(provider_data: Mapping[str, object], model: str) -> list[dict[str, object]]:
    """Return the thoughts that this model wrote with an answer, in Anthropic's protocol."""
    blocks = _select_own_data(provider_data, _SIGNED, model).get("thinking")
    if not isinstance(blocks, list) or not all(map(_is_thinking, blocks)):
        return []
    return blocks


def has_thoughts(provider_data: Mapping[str, object]) -> bool:
    """Return whether an answer has signed thoughts."""
    return _SIGNED in provider_data


def drop_thoughts(provider_data: Mapping[str, object]) -> dict[str, object]:
    """Return what a provider wants back without the signed thoughts."""
    return {name: value for name, value in provider_data.items() if name != _SIGNED}


def needs_seal(provider_data: Mapping[str, object]) -> bool:
    """Return whether it wants more back than signed thoughts in their usual order."""
    data = provider_data.get(_SIGNED)
    has_order = isinstance(data, Mapping) and "order" in data
    return has_order or bool(drop_thoughts(provider_data))


def list_thoughts(provider_data: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the signed thoughts of an answer as they came, whichever model wrote them."""
    return [*_select_objects(_select_own_data(provider_data, _SIGNED, None).get("thinking"))]


def select_order(provider_data: Mapping[str, object], model: str | None = None) -> list[str | int]:
    """Return the order in which the blocks of this model's answer came; empty for the usual one."""
    order = _select_own_data(provider_data, _SIGNED, model).get("order")
    return order if isinstance(order, list) else []


def is_usual_order(order: Sequence[str | int]) -> bool:
    """Return True if all thoughts come first, then one text, then all calls."""
    kinds = [
        kind for kind, _ in groupby("text" if isinstance(each, int) else each for each in order)
    ]
    return kinds == [kind for kind in (THOUGHT, "text", CALL) if kind in kinds]


def select_cache_control(provider_data: Mapping[str, object]) -> dict[str, object] | None:
    """Return the mark that the client put behind a message, in Anthropic's protocol."""
    mark = provider_data.get(CACHE_CONTROL)
    return mark if isinstance(mark, dict) else None


@dataclass(frozen=True, kw_only=True)
class Reasoning:
    """What a model thought before it answered, in OpenAI's protocol.

    `field` is the name under which its server sent the text, empty for the usual one. `details`
    are OpenRouter's: the thoughts as their provider signed them.
    """

    text: str = ""
    field: str = ""
    details: tuple[dict[str, object], ...] = ()

    def join_details(self) -> str:
        """Return the readable text of the details."""
        texts = (detail.get("text") or detail.get("summary") for detail in self.details)
        return "".join(text for text in texts if isinstance(text, str))


def select_reasoning(provider_data: Mapping[str, object], model: str | None = None) -> Reasoning:
    """Return what this model thought, as far as it is kept; None for whichever wrote the answer."""
    data = _select_own_data(provider_data, "openai", model)
    text, name, details = (
        data.get(key) for key in ("reasoning", "reasoning_field", "reasoning_details")
    )
    return Reasoning(
        text=text if isinstance(text, str) else "",
        field=name if name in REASONING_FIELDS else "",
        details=_select_objects(details),
    )


def select_tagged_thoughts(provider_data: Mapping[str, object], model: str) -> str:
    """Return the thoughts that stood in tags before this model's answer; MiniMax wants them."""
    thoughts = _select_own_data(provider_data, "openai", model).get("tagged_thoughts")
    return thoughts if isinstance(thoughts, str) else ""


def select_extras(
    provider_data: Mapping[str, object], model: str | None = None
) -> Mapping[str, dict[str, object]]:
    """Return what the server of a model sent with each call, by the id of the call."""
    extras = _select_own_data(provider_data, "openai", model).get("extras")
    if not isinstance(extras, Mapping):
        return {}
    return {call_id: extra for call_id, extra in extras.items() if isinstance(extra, dict)}


def _select_own_data(
    provider_data: object, protocol: str, model: str | None
) -> Mapping[str, object]:
    data = provider_data.get(protocol) if isinstance(provider_data, Mapping) else None
    return data if isinstance(data, Mapping) and model in (None, data.get("model")) else {}


def _select_objects(value: object) -> tuple[dict[str, object], ...]:
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, dict))


def _is_thinking(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    text_field = _TEXT_FIELDS.get(str(block.get("type")))
    return text_field in block and all(isinstance(value, str) for value in block.values())
