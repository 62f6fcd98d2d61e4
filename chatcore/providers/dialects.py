"""What the servers of one family need beside the normal form, found by address and model's name.

The rules of some contradict each other: Kimi refuses a call without its reasoning, Mistral one with
it. What each family takes, and where that is written, stands in docs/providers.md. A provider's
option `dialect` sets single fields for servers that are known by no name.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from chatcore.providers.base import Connection
from chatcore.providers.normal_form import MAX_CALLS

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one server wants a history.

    `reasoning` says what comes back of it: `own`, what this model thought before it called tools;
    `all`, the same, and an empty text for each other answer; `none`, nothing, because the server
    refuses fields that it does not know. With `needs_signatures`, each step's first call has one,
    if need be without `keeps_signatures`: not its own but one that its server takes for any call.
    `has_empty_texts` is False where an answer that only calls tools must leave its text out.
    `begins_thinking` is True where an answer begins inside a thought, whose opening tag the chat
    template has written.
    """

    reasoning: Literal["own", "all", "none"] = "own"
    reasoning_field: str = "reasoning_content"
    has_reasoned_texts: bool = True
    has_empty_texts: bool = True
    has_named_call_ids: bool = False
    needs_signatures: bool = False
    keeps_signatures: bool = True
    max_calls: int = MAX_CALLS
    has_simple_schemas: bool = False
    max_images: int = 100
    image_types: frozenset[str] = IMAGE_TYPES
    begins_thinking: bool = False


# Each is looked for in the address and the model's name; what comes later goes before.
_FAMILIES: tuple[tuple[str, dict[str, Any]], ...] = (
    (r"deepseek|moonshot|kimi|bigmodel|z\.ai|glm-|minimax|mimo", {"reasoning": "all"}),
    (
        r"moonshot|kimi",
        {"has_empty_texts": False, "has_named_call_ids": True, "has_simple_schemas": True},
    ),
    (r"claude|anthropic", {"has_empty_texts": False}),
    (
        r"gemini",
        {
            "needs_signatures": True,
            "has_simple_schemas": True,
            "image_types": IMAGE_TYPES - {"image/gif"},
        },
    ),
    (r"grok|api\.x\.ai", {"image_types": frozenset({"image/png", "image/jpeg"})}),
    (r"bedrock|amazonaws", {"max_images": 20}),
    (r"llama-?3", {"max_calls": 1}),
    (r"gpt-oss", {"has_reasoned_texts": False}),
    (r"mistral|mixtral|ministral|magistral|devstral|codestral", {"reasoning": "none"}),
    (r"groq\.com|cerebras\.ai|api\.openai\.com|azure\.com", {"reasoning": "none"}),
    (r"openrouter\.ai", {"reasoning_field": "reasoning", "needs_signatures": False}),
)
_FIELD_NAMES = frozenset(field.name for field in dataclasses.fields(Dialect))


def find_dialect(connection: Connection, model: str) -> Dialect:
    """Return what the server of a connection needs for a model."""
    host = urlsplit(connection.base_url).hostname or _get_vendor_host(connection.protocol)
    known_dialect = _find_known_dialect(f"{host} {model}".lower())
    changes = _read_options(connection)
    return dataclasses.replace(known_dialect, **changes) if changes else known_dialect


def _read_options(connection: Connection) -> dict[str, Any]:
    options = connection.options.get("dialect")
    if not isinstance(options, Mapping):
        return {}
    return {name: value for name, value in options.items() if name in _FIELD_NAMES}


@functools.lru_cache(maxsize=1000)
def _find_known_dialect(name: str) -> Dialect:
    changes: dict[str, Any] = {}
    for pattern, family_changes in _FAMILIES:
        if re.search(pattern, name):
            changes |= family_changes
    return Dialect(**changes)


def _get_vendor_host(protocol: str) -> str:
    return "api.openai.com" if protocol == "openai" else "api.anthropic.com"
