"""Send a refused request once more in the form that its refusal asks for.

A server that is known by no name tells what it needs in its refusal: reasoning or none, a
signature, one call at a time, another field for the limit, no such field at all. What helped is
used for later requests too (`dialects.py`).
"""

import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from chatcore.providers import dialects, output_limits, provider_data
from chatcore.providers.base import (
    Connection,
    Request,
    StreamEnd,
    StreamPart,
    Tool,
)
from chatcore.providers.dialects import find_dialect
from chatcore.providers.errors import ProviderRejected, ProviderUnavailable
from chatcore.providers.normal_form import clear_thoughts, list_thoughtful
from chatcore.providers.protocols import load_protocol
from chatcore.providers.sent_images import fit_images
from chatcore.providers.tool_names import fit_tool_names, restore_tool_names

MAX_TRIES = 6
_GATEWAY_STATUSES = (500, 501, 502)
# The fact that names tools which the server has refused.
_REFUSED_TOOLS: Final = "without_tools"
_TOOL_REFUSED = re.compile(r"schema|unknown name|\bparameters\b|\btools?[.\[]|\bfunctions?\b")
_TOOL_INDEX = re.compile(r"\btools?(?:\[|\.)(\d+)")
_REFUSED = r"unsupported|not (?:permitted|allowed|supported)|extra|unexpected|unknown|unrecognized"
# DeepSeek's name of the field; OpenRouter's stands in quotes, because it is also a plain word.
_REASONING_FIELD = r"(?:reasoning_content\b|[\"'`.]reasoning\b)"
# Words of a refusal, in lower case, and what they ask for; the first that match.
_DIALECT_HINTS: tuple[tuple[str, Mapping[str, object]], ...] = (
    (rf"(?:{_REFUSED}).{{0,200}}reasoning", {"reasoning": "none"}),
    (rf"reasoning(?:_content|_details)?\b.{{0,60}}(?:{_REFUSED})", {"reasoning": "none"}),
    (
        rf"{_REASONING_FIELD}.{{0,100}}(?:missing|must be|passed back|required)",
        {"reasoning": "all"},
    ),
    (rf"(?:missing|requires?|must).{{0,100}}{_REASONING_FIELD}", {"reasoning": "all"}),
    (r"(?:missing|requires?|must).{0,40}thought.?signature", {"needs_signatures": True}),
    (
        r"(?:invalid|corrupted?).{0,20}thought.?signature",
        {"needs_signatures": True, "keeps_signatures": False},
    ),
    (r"text content.{0,40}(?:empty|whitespace)", {"has_empty_texts": False}),
    (r"only supports? (?:a )?single tool.?call", {"max_calls": 1}),
)
_IMAGE_COUNT = re.compile(
    r"(?:at most|maximum(?: of)?|up to|limit(?: is|:)?|more than) (\d{1,3}) images?\b"
    r"|images?.{0,40}(?:at most|maximum|limit|up to)\D{0,12}(\d{1,3})\b"
    r"(?!\s*(?:[km]i?b|bytes|px|pixels|megapixels)\b)"
)
_THOUGHTS_REFUSED = re.compile(
    r"signature.{0,60}thinking|thinking.{0,60}(?:signature|cannot be mod)"
)
# DeepSeek's words for blocks of thoughts, which it does not sign.
_THOUGHTS_WANTED = re.compile(
    r"thinking\b.{0,80}(?:(?:passed|sent|given) back|returned|must be (?:included|provided|kept)"
    r"|is (?:missing|required))|missing.{0,40}\bthinking\b"
)
_THOUGHTS_MISSED = re.compile(r"expected .{0,20}thinking.{0,40}but found|thinking.{0,40}must start")

StreamFunction = Callable[[Connection, Request], AsyncGenerator[StreamPart]]


async def stream_adapted(
    stream: StreamFunction, connection: Connection, request: Request
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of an answer; a refusal that says what is wrong is followed by a new try.

    The last part names the tools that were left out because they were refused now.
    """
    connection = dialects.apply_facts(connection, request.model)
    refused_marks = connection.options.get(_REFUSED_TOOLS) or ()
    request, own_names = fit_tool_names(request)
    request = _select_tools(request, lambda tool: _mark_tool(tool) not in refused_marks)
    offered_tools = request.tools
    learned: dialects.Facts = {}
    for tries in range(MAX_TRIES):
        has_begun = False
        fitted_request = await fit_images(request, find_dialect(connection, request.model))
        fitted_request = _limit_output(fitted_request, connection.options.get("output_limit"))
        try:
            async with aclosing(stream(connection, fitted_request)) as parts:
                async for part in parts:
                    if learned and not has_begun:
                        await dialects.remember(connection, request.model, learned)
                    has_begun = True
                    if isinstance(part, StreamEnd) and part.learned:
                        await dialects.remember(connection, request.model, part.learned)
                    if isinstance(part, StreamEnd) and request.tools is not offered_tools:
                        names = [tool.name for tool in offered_tools if tool not in request.tools]
                        part = replace(part, refused_tools=tuple(names))
                    if isinstance(part, StreamEnd):
                        part = restore_tool_names(part, own_names)
                    yield part
            return
        except (ProviderRejected, ProviderUnavailable) as error:
            is_last = has_begun or tries == MAX_TRIES - 1
            adapted = None if is_last else _adapt_to_error(connection, fitted_request, error)
            if adapted is None:
                raise
            facts, request = adapted
            learned = dialects.join_facts(learned, facts)
            connection = dialects.add_facts(connection, facts)


def _adapt_to_error(
    connection: Connection, request: Request, error: ProviderRejected | ProviderUnavailable
) -> tuple[dialects.Facts, Request] | None:
    """Return what a failed attempt shows, as `_adapt` does.

    A gateway may report the refusal of the server behind it as a breakdown of its own. That is read
    only where it names something of the history, or a field that is not known.
    """
    if isinstance(error, ProviderUnavailable):
        facts = None
        if error.refused_status:
            facts = _find_dialect_changes(connection, request, error.detail.lower())
        if not facts and error.refused_status in _GATEWAY_STATUSES:
            facts = dialects.find_unknown_field(
                connection, request, error.detail, only_unknown=True
            )
        return (facts, request) if facts else None
    if type(error) is not ProviderRejected:
        return None
    return _adapt(connection, request, error.detail)


def _adapt(
    connection: Connection, request: Request, refusal: str
) -> tuple[dialects.Facts, Request] | None:
    """Return what a refusal tells, and what is sent instead; None if it says nothing of use."""
    limit = output_limits.find_limit(refusal, request.max_tokens)
    if limit is not None:
        return {"output_limit": limit}, request
    facts = dialects.find_unknown_field(connection, request, refusal)
    refusal = refusal.lower()
    facts = facts or _limit_images(connection, request, refusal)
    facts = facts or _find_dialect_changes(connection, request, refusal)
    if facts:
        return facts, request
    thoughtless_request = _adapt_thoughts(request, refusal)
    if thoughtless_request:
        return {}, thoughtless_request
    return _adapt_tools(connection, request, refusal)


def _limit_output(request: Request, limit: int | None) -> Request:
    """Return the request with no more room for its answer than the model is known to take."""
    if not limit or request.max_tokens is None or request.max_tokens <= limit:
        return request
    return replace(request, max_tokens=limit)


def _find_dialect_changes(
    connection: Connection, request: Request, refusal: str
) -> dialects.Facts | None:
    dialect = find_dialect(connection, request.model)
    for pattern, hint in _DIALECT_HINTS:
        changes = dict(hint)
        if changes == {"reasoning": "all"}:
            changes["reasoning_field"] = _choose_reasoning_field(request, refusal)
        is_new = any(getattr(dialect, name) != value for name, value in changes.items())
        if is_new and re.search(pattern, refusal, re.DOTALL):
            return {"dialect": changes}
    has_blocks = load_protocol(connection.protocol).capabilities.has_signed_thoughts
    is_wanted = _THOUGHTS_WANTED.search(refusal) and not _THOUGHTS_MISSED.search(refusal)
    if has_blocks and is_wanted and not dialect.needs_thoughts and "signature" not in refusal:
        return {"dialect": {"needs_thoughts": True}}
    return None


def _choose_reasoning_field(request: Request, refusal: str) -> str:
    """Return the name under which a server wants its reasoning back.

    It is the one under which reasoning came, else the one that the refusal names: a gateway repeats
    the refusal of the server behind it, which may name the field otherwise.
    """
    stored = (provider_data.select_reasoning(each.provider_data) for each in request.messages)
    named = "reasoning_content" if "reasoning_content" in refusal else "reasoning"
    return next((reasoning.field for reasoning in stored if reasoning.field), named)


def _adapt_tools(
    connection: Connection, request: Request, refusal: str
) -> tuple[dialects.Facts, Request] | None:
    """Return simpler schemas first; then the tools without those that a refusal names."""
    if not request.tools or not _TOOL_REFUSED.search(refusal):
        return None
    if not find_dialect(connection, request.model).has_simple_schemas:
        return {"dialect": {"has_simple_schemas": True}}, request
    numbers = {int(number) for number in _TOOL_INDEX.findall(refusal)}
    refused_tools = [tool for number, tool in enumerate(request.tools) if number in numbers]
    if not refused_tools:
        words = set(re.findall(r"[\w-]+", refusal))
        refused_tools = [tool for tool in request.tools if tool.name.lower() in words]
    if not refused_tools:
        return None
    old_marks = connection.options.get(_REFUSED_TOOLS) or ()
    marks = sorted({*old_marks, *map(_mark_tool, refused_tools)})
    smaller_request = _select_tools(request, lambda tool: tool not in refused_tools)
    return {_REFUSED_TOOLS: marks}, smaller_request


def _select_tools(request: Request, is_taken: Callable[[Tool], bool]) -> Request:
    tools = [tool for tool in request.tools if is_taken(tool)]
    return request if len(tools) == len(request.tools) else replace(request, tools=tools)


def _mark_tool(tool: Tool) -> str:
    """Return the name of a tool with a mark of its description: another one is tried again."""
    return f"{tool.name} {hashlib.blake2b(tool.text.encode(), digest_size=4).hexdigest()}"


def _limit_images(connection: Connection, request: Request, refusal: str) -> dialects.Facts | None:
    """Return the number of images that a refusal names, if there are more."""
    count = sum(len(message.images) for message in request.messages)
    found = _IMAGE_COUNT.search(refusal)
    limit = int(found[1] or found[2]) if found else count
    is_new = limit < min(count, find_dialect(connection, request.model).max_images)
    return {"dialect": {"max_images": limit}} if is_new else None


def _adapt_thoughts(request: Request, refusal: str) -> Request | None:
    """Return the request without the signed thoughts that were refused.

    Older models want some in the running turn while they think; then they think not.
    """
    if _THOUGHTS_MISSED.search(refusal) and "thinking" in request.params:
        params = {name: value for name, value in request.params.items() if name != "thinking"}
        return replace(request, params=params)
    thoughtful = list_thoughtful(request.messages)
    if not (thoughtful and _THOUGHTS_REFUSED.search(refusal)):
        return None
    return clear_thoughts(request, thoughtful)
