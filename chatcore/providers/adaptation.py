"""Send a refused request once more in the form that its refusal asks for.

A server that is known by no name tells what it needs in its refusal: reasoning or none, a
signature, one call at a time. What helped is used for later requests too, in this process.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from chatcore.providers.base import ChatMessage, Connection, Request, StreamPart
from chatcore.providers.dialects import find_dialect, remember_dialect
from chatcore.providers.errors import ProviderRejected
from chatcore.providers.sent_images import fit_images

MAX_TRIES = 3
_REFUSED = r"unsupported|not (?:permitted|allowed|supported)|extra|unexpected|unknown|unrecognized"
# Words of a refusal, in lower case, and what they ask for; the first that match.
_DIALECT_HINTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    (rf"(?:{_REFUSED}).{{0,200}}reasoning", {"reasoning": "none"}),
    (rf"reasoning(?:_content|_details)?\b.{{0,60}}(?:{_REFUSED})", {"reasoning": "none"}),
    (r"reasoning_content.{0,100}(?:missing|must be|passed back|required)", {"reasoning": "all"}),
    (r"(?:missing|requires?|must).{0,100}reasoning_content", {"reasoning": "all"}),
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
_THOUGHTS_MISSED = re.compile(r"expected .{0,20}thinking.{0,40}but found|thinking.{0,40}must start")

StreamFunction = Callable[[Connection, Request], AsyncGenerator[StreamPart]]


async def stream_adapted(
    stream: StreamFunction, connection: Connection, request: Request
) -> AsyncGenerator[StreamPart]:
    """Yield the parts of an answer; a refusal that says what is wrong is followed by a new try."""
    for tries in range(MAX_TRIES):
        has_begun = False
        fitted_request = await fit_images(request, find_dialect(connection, request.model))
        try:
            async with aclosing(stream(connection, fitted_request)) as parts:
                async for part in parts:
                    if tries and not has_begun:
                        remember_dialect(connection, request.model)
                    has_begun = True
                    yield part
            return
        except ProviderRejected as error:
            adapted = (
                None
                if has_begun or tries == MAX_TRIES - 1
                else _adapt(connection, request, error.detail.lower())
            )
            if type(error) is not ProviderRejected or adapted is None:
                raise
            connection, request = adapted


def _adapt(
    connection: Connection, request: Request, refusal: str
) -> tuple[Connection, Request] | None:
    """Return what is sent instead of a refused request; None if the refusal says nothing of use."""
    adapted_connection = _adapt_images(connection, request, refusal)
    if adapted_connection:
        return adapted_connection, request
    if connection.protocol == "anthropic":
        adapted_request = _adapt_thoughts(request, refusal)
        return (connection, adapted_request) if adapted_request else None
    dialect = find_dialect(connection, request.model)
    for pattern, changes in _DIALECT_HINTS:
        is_new = any(getattr(dialect, name) != value for name, value in changes.items())
        if is_new and re.search(pattern, refusal, re.DOTALL):
            return _change_dialect(connection, changes), request
    return None


def _change_dialect(connection: Connection, changes: Mapping[str, Any]) -> Connection:
    options = connection.options.get("dialect") or {}
    new_options = {**connection.options, "dialect": {**options, **changes}}
    return replace(connection, options=new_options)


def _adapt_images(connection: Connection, request: Request, refusal: str) -> Connection | None:
    """Return the connection with the number of images that a refusal names, if there are more."""
    count = sum(len(message.images) for message in request.messages)
    found = _IMAGE_COUNT.search(refusal)
    limit = int(found[1] or found[2]) if found else count
    is_new = limit < min(count, find_dialect(connection, request.model).max_images)
    return _change_dialect(connection, {"max_images": limit}) if is_new else None


def _adapt_thoughts(request: Request, refusal: str) -> Request | None:
    """Return the request without the signed thoughts that were refused.

    Older models want some in the running turn while they think; then they think not.
    """
    if _THOUGHTS_MISSED.search(refusal) and "thinking" in request.params:
        params = {name: value for name, value in request.params.items() if name != "thinking"}
        return replace(request, params=params)
    has_thoughts = any("anthropic" in message.provider_data for message in request.messages)
    if not (has_thoughts and _THOUGHTS_REFUSED.search(refusal)):
        return None
    return replace(request, messages=[_drop_thoughts(message) for message in request.messages])


def _drop_thoughts(message: ChatMessage) -> ChatMessage:
    data = {name: value for name, value in message.provider_data.items() if name != "anthropic"}
    return replace(message, provider_data=data) if data != message.provider_data else message
