"""Disbelieve a count of tokens that cannot be that of the request which was sent.

A server that cuts a request in silence counts what is left of it; others leave out what they had in
a cache, or count nonsense. Such a number would make the meter lie, and compaction come too late or
for nothing.
"""

import re

from chatcore.providers import overflow
from chatcore.providers.base import Request, Usage

# A shorter request is mostly framing.
MIN_TOKENS = 1_000
# No text has more than twice the usual four characters a token, runs of one sign apart.
MIN_SHARE = 2
# None has less than half a character a token; a server may add a text of its own.
MAX_SHARE = 8
ADDED_TOKENS = 10_000
IMAGE_TOKENS = 4_000
SHORTFALL = "The server read about"
_RUN = re.compile(r"(\s|[^\w\s]|\w)\1{3,}")


def is_possible(request: Request, usage: Usage, window: int | None) -> bool:
    """Return whether the provider can have counted this for an answered request."""
    return not (is_far_below(request, usage) or _is_far_above(request, usage, window))


def is_far_below(request: Request, usage: Usage) -> bool:
    """Return whether the count is that of a part of the request."""
    size = overflow.measure_request(request).tokens
    if not usage.input or size < MIN_TOKENS or usage.input >= size / MIN_SHARE:
        return False
    texts = [message.content for message in request.messages]
    run_chars = sum(
        len(match[0]) - 1 for text in (request.system, *texts) for match in _RUN.finditer(text)
    )
    return usage.input < (size - run_chars / 4) / MIN_SHARE


def describe_shortfall(request: Request, usage: Usage) -> str:
    """Return a sentence for the person whose request was not read whole."""
    size = overflow.measure_request(request).tokens
    return (
        f"{SHORTFALL} {usage.input:,} of {size:,} tokens, by its own count. It may leave"
        " out the beginning of a long conversation. Let it read more (with Ollama: num_ctx), or"
        " enter the window that it really has: Language models, in the admin."
    )


def _is_far_above(request: Request, usage: Usage, window: int | None) -> bool:
    image_count = sum(len(message.images) for message in request.messages)
    size = overflow.measure_request(request).tokens + image_count * IMAGE_TOKENS
    if usage.input > size * MAX_SHARE + ADDED_TOKENS:
        return True
    return bool(window) and usage.input > max(window or 0, size * MIN_SHARE)
