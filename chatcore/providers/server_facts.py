"""What a server does not know, learned from its refusals: one place for all of it.

A fact is an option of the provider's row, for one model at one address: fields that are left out of
requests (`without`), the name of the limit of an answer (`max_tokens_field`), whether there is a
role for system texts (`system_role`), and the fields of its `dialect`. The row's own options, which
an operator sets, go before what was learned. Facts are stored in the row (`Provider.learned`), seen
and edited in the admin, and void once the address is another.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from chatcore.providers.base import Connection, Request

Facts = dict[str, Any]

# For connections that belong to no row of the registry.
_learned: dict[tuple[str, str], Facts] = {}
_MAX_TOKENS_FIELDS = ("max_tokens", "max_completion_tokens")
# Fields of a request that are not needed for an answer, beside the session's params.
_OWN_FIELDS = (
    "stream_options",
    "parallel_tool_calls",
    "return_progress",
    *_MAX_TOKENS_FIELDS,
)
_UNKNOWN = (
    r"not (?:be )?(?:support|permit|allow|accept|available|recogni|implement)|unsupported|unknown"
    r"|does(?: not|n't) support|unrecogni[sz]ed|unexpected|extra (?:inputs|fields|field)|no such"
    r"|extra_forbidden|incompatible|deprecated|forbidden|cannot be (?:set|used|specified)"
    r"|only (?:the default|1|0\.6|0\.95)|invalid (?:field|parameter|argument)"
    r"|additional propert|not defined|is not a valid (?:parameter|field)"
)
_IS_UNKNOWN = re.compile(_UNKNOWN, re.IGNORECASE)
_NO_SYSTEM_ROLE = re.compile(
    r"system role (?:is )?not supported|(?:role|messages?)\W.{0,60}\W(?:system|developer)\b.{0,60}"
    r"(?:not|unsupported|invalid)|only user and assistant roles|unsupported.{0,40}'?system'? role"
    r"|does not support.{0,40}system (?:role|message|prompt)",
    re.IGNORECASE | re.DOTALL,
)


def apply_facts(connection: Connection, model: str) -> Connection:
    """Return the connection with what was learned of its server among its options."""
    if connection.keep_facts is None:
        facts = _learned.get((connection.base_url, model), {})
    else:
        facts = dict(connection.learned.get(model, {}))
    return add_facts(connection, facts, goes_first=False) if facts else connection


def add_facts(
    connection: Connection, facts: Mapping[str, Any], *, goes_first: bool = True
) -> Connection:
    """Return the connection with further facts; those that it has stay unless these go first."""
    options = connection.options
    merged = {**options, **facts} if goes_first else {**facts, **options}
    merged["without"] = sorted({*options.get("without", ()), *facts.get("without", ())})
    dialects = [facts.get("dialect") or {}, options.get("dialect") or {}]
    if goes_first:
        dialects.reverse()
    merged["dialect"] = {**dialects[0], **dialects[1]}
    return replace(connection, options=merged)


async def remember(connection: Connection, model: str, facts: Facts) -> None:
    """Use facts for the server's later requests too, after a request in their form was answered."""
    if connection.keep_facts is not None:
        await connection.keep_facts(model, facts)
        return
    key = (connection.base_url, model)
    _learned[key] = join_facts(_learned.get(key, {}), facts)


def join_facts(known: Mapping[str, Any], new: Mapping[str, Any]) -> Facts:
    """Return the facts of both; the new ones go first."""
    joined = {**known, **new}
    if "without" in known or "without" in new:
        joined["without"] = sorted({*known.get("without", ()), *new.get("without", ())})
    if "dialect" in known or "dialect" in new:
        joined["dialect"] = {**known.get("dialect", {}), **new.get("dialect", {})}
    return joined


def find_unknown_field(connection: Connection, request: Request, refusal: str) -> Facts | None:
    """Return what a refusal says of a field or a role that its server does not know, or None."""
    has_role = connection.options.get("system_role") is not False and bool(request.system)
    if connection.protocol == "openai" and has_role and _NO_SYSTEM_ROLE.search(refusal):
        return {"system_role": False}
    if not _IS_UNKNOWN.search(refusal):
        return None
    left_out = set(connection.options.get("without", ()))
    names = [name for name in (*_OWN_FIELDS, *request.params) if name not in left_out]
    named = [name for name in names if _names_field(refusal, name)]
    if set(named) & set(_MAX_TOKENS_FIELDS):
        return _choose_other_limit(connection, named, refusal)
    return {"without": sorted({*left_out, *named})} if named else None


def _choose_other_limit(connection: Connection, named: Iterable[str], refusal: str) -> Facts | None:
    if connection.protocol != "openai":
        return None
    tried = connection.options.get("max_tokens_field")
    # The field that is named first is the one that was refused; the other one is advised.
    places = {name: _find_field(refusal, name) for name in _MAX_TOKENS_FIELDS if name in named}
    refused = min(places, key=lambda name: places[name])
    other = next(name for name in _MAX_TOKENS_FIELDS if name != refused)
    return {"max_tokens_field": other} if other != tried else None


def _names_field(refusal: str, name: str) -> bool:
    return _find_field(refusal, name) >= 0


def _find_field(refusal: str, name: str) -> int:
    """Return where a refusal names a field, in any spelling, or -1."""
    spelling = "[_ -]?".join(map(re.escape, name.split("_")))
    match = re.search(rf"(?<![a-z]){spelling}(?![a-z_])", refusal, re.IGNORECASE)
    return match.start() if match else -1


def select_fields(connection: Connection, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return params without the fields that the server does not know."""
    left_out = connection.options.get("without") or ()
    return {name: value for name, value in params.items() if name not in left_out}
