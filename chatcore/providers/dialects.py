"""What the servers of one family need beside the normal form, found by address and model's name.

The rules of some contradict each other: Kimi refuses a call without its reasoning, Mistral one with
it. What each family takes, and where that is written, stands in docs/providers.md. A provider's
option `dialect` sets single fields for servers that are known by no name.

What a server does not know is learned from its refusals. Such a fact is an option of the provider's
row, for one model at one address: fields that are left out of requests (`without`), also with one
value alone (`without_values`), the name of the limit of an answer (`max_tokens_field`), whether
there is a role for system texts (`system_role`), and the fields of its `dialect`. The row's own
options, which an operator sets, go before what was learned. Facts are stored in the row
(`Provider.learned`), seen and edited in the admin, and void once the address is another.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from chatcore.providers.base import Connection, Request
from chatcore.providers.normal_form import MAX_CALLS
from chatcore.providers.protocols import load_protocol
from models_registry.provider_options import ProviderOptions

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How one server wants a history.

    `reasoning` says what comes back of it: `own`, what this model thought before it called tools;
    `all`, that of every answer, and where none is kept a text that says so; `none`, nothing,
    because the server refuses fields that it does not know. With `needs_signatures`, each step's
    first call has one, if need be without `keeps_signatures`: not its own but one that its server
    takes for any call.
    With `has_tagged_thoughts` an answer comes back with the thoughts that stood in tags before it.
    With `needs_thoughts` each answer in Anthropic's protocol comes back with a block of thoughts,
    which need no signature; where none is kept, the block says so.
    `has_empty_texts` is False where an answer that only calls tools must leave its text out.
    `begins_thinking` is True where an answer begins inside a thought, whose opening tag the chat
    template has written.
    """

    reasoning: Literal["own", "all", "none"] = "own"
    reasoning_field: str = "reasoning_content"
    has_reasoned_texts: bool = True
    has_tagged_thoughts: bool = False
    needs_thoughts: bool = False
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
_FAMILIES: tuple[tuple[str, dict[str, object]], ...] = (
    (r"deepseek|moonshot|kimi|bigmodel|z\.ai|glm-|minimax|mimo", {"reasoning": "all"}),
    (r"minimax", {"has_tagged_thoughts": True}),
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
    protocol = load_protocol(connection.protocol)
    host = urlsplit(connection.base_url).hostname or protocol.vendor_host
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


Facts = dict[str, object]

_MAX_TOKENS_FIELDS = ("max_tokens", "max_completion_tokens")
# Fields that an answer does not need, beside the session's parameters. The first ones are added
# here, so a refusal that names one is about that field, whatever its words.
_UNASKED_FIELDS = ("stream_options", "stream", "return_progress")
_OWN_FIELDS = (*_UNASKED_FIELDS, "parallel_tool_calls", *_MAX_TOKENS_FIELDS)
_UNKNOWN = (
    r"not (?:be )?(?:support|permit|allow|accept|available|recogni|implement)|unsupported|unknown"
    r"|does(?: not|n't) support|unrecogni[sz]ed|unexpected|extra (?:inputs|fields|field)|no such"
    r"|extra_forbidden|incompatible|deprecated|forbidden|cannot be (?:set|used|specified)"
    r"|only (?:the default|1|0\.6|0\.95)|invalid (?:field|parameter|argument)"
    r"|additional propert|not defined|is not a valid (?:parameter|field)"
)
_IS_UNKNOWN = re.compile(_UNKNOWN, re.IGNORECASE)
# Another value would be taken. Any other sentence about a field, in any language, refuses it.
_IS_ABOUT_VALUE = re.compile(
    r"\d|requir|missing|must|should|expect|invalid|type|range|between|enum|one of|allowed values"
    r"|范围|取值|必须|必須|範囲|格式|类型",
    re.IGNORECASE,
)
_STATUS = re.compile(r"\AThe provider (?:refused the request|failed) with \d+: ")
_STREAMING = re.compile(
    r"(?<![a-z])stream(?:ing|ed)?(?![a-z_]|[ -]?options)|ストリー|流式|串流|스트리|стрим|потоков"
    r"|البث|תזרים|สตรีม|स्ट्रीम",
    re.IGNORECASE,
)
_NO_SYSTEM_ROLE = re.compile(
    r"system role (?:is )?not supported|(?:role|messages?)\W.{0,60}\W(?:system|developer)\b.{0,60}"
    r"(?:not|unsupported|invalid)|only user and assistant roles|unsupported.{0,40}'?system'? role"
    r"|does not support.{0,40}system (?:role|message|prompt)"
    r"|(?:developer|system) instructions? (?:is|are) not (?:enabled|supported)",
    re.IGNORECASE | re.DOTALL,
)


def apply_facts(connection: Connection, model: str) -> Connection:
    """Return the connection with what was learned of its server among its options."""
    facts = connection.learned.get(model)
    return add_facts(connection, facts, goes_first=False) if facts else connection


def add_facts(
    connection: Connection, facts: Mapping[str, Any], *, goes_first: bool = True
) -> Connection:
    """Return the connection with further facts; those that it has stay unless these go first."""
    options = connection.options
    joined = join_facts(options, facts) if goes_first else join_facts(facts, options)
    return replace(connection, options=cast(ProviderOptions, joined))


async def remember(connection: Connection, model: str, facts: Facts) -> None:
    """Use facts for the server's later requests too, after a request in their form was answered."""
    if connection.keep_facts is not None:
        await connection.keep_facts(model, facts)


def join_facts(known: Mapping[str, Any], new: Mapping[str, Any]) -> Facts:
    """Return the facts of both; the new ones go first."""
    joined = {**known, **new}
    for name in ("without", "without_values"):
        if name in known or name in new:
            joined[name] = sorted({*known.get(name, ()), *new.get(name, ())})
    if "dialect" in known or "dialect" in new:
        joined["dialect"] = {**(known.get("dialect") or {}), **(new.get("dialect") or {})}
    return joined


def find_unknown_field(
    connection: Connection, request: Request, refusal: str, *, only_unknown: bool = False
) -> Facts | None:
    """Return what a refusal says of a field or a role that its server does not know, or None.

    With `only_unknown` it must say in known words that there is no such field.
    """
    has_variants = load_protocol(connection.protocol).capabilities.has_variants
    has_role = connection.options.get("system_role") is not False and bool(request.system)
    if has_variants and has_role and _NO_SYSTEM_ROLE.search(refusal):
        return {"system_role": False}
    text = _STATUS.sub("", refusal)
    left_out = set(connection.options.get("without", ()))
    names = [name for name in (*_OWN_FIELDS, *request.params) if name not in left_out]
    named = [name for name in names if _find_field(text, name) >= 0]
    if not _IS_UNKNOWN.search(text):
        is_other = only_unknown or _IS_ABOUT_VALUE.search(text)
        sure_names = () if only_unknown else _UNASKED_FIELDS
        refusable = sure_names if is_other else {*names} - {*_MAX_TOKENS_FIELDS}
        named = [name for name in named if name in refusable]
    if "stream_options" in named:
        named = [name for name in named if name != "stream"]
    if set(named) & set(_MAX_TOKENS_FIELDS):
        return _choose_other_limit(connection, named, text) if has_variants else None
    return {"without": sorted({*left_out, *named})} if named else None


def _choose_other_limit(connection: Connection, named: Iterable[str], refusal: str) -> Facts | None:
    tried = connection.options.get("max_tokens_field")
    # The field that is named first is the one that was refused; the other one is advised.
    places = {name: _find_field(refusal, name) for name in _MAX_TOKENS_FIELDS if name in named}
    refused = min(places, key=lambda name: places[name])
    other = next(name for name in _MAX_TOKENS_FIELDS if name != refused)
    return {"max_tokens_field": other} if other != tried else None


def names_field(refusal: str, names: Iterable[str]) -> bool:
    """Return whether a refusal names one of the fields."""
    text = _STATUS.sub("", refusal)
    return any(_find_field(text, name) >= 0 for name in names)


def _find_field(refusal: str, name: str) -> int:
    """Return where a refusal names a field, in any spelling, or -1."""
    if name == "stream":
        match = _STREAMING.search(refusal)
        return match.start() if match else -1
    spelling = "[_ -]?".join(map(re.escape, name.split("_")))
    match = re.search(rf"(?<![a-z]){spelling}(?![a-z_])", refusal, re.IGNORECASE)
    return match.start() if match else -1
