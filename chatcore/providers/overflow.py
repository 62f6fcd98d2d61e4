"""Recognize that a provider refused a request for its length, and find the numbers it gives."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from chatcore.providers.errors import ContextOverflow

# Throttling is recognized first: its words are close to those of an overflow ("too many tokens per
# minute"), and compacting would be wrong.
_THROTTLING_PATTERN = re.compile(
    r"rate.?limit|too many requests|resource.?exhausted|throttl|insufficient_quota"
    r"|tokens per (minute|day)|tokens, please",
    re.IGNORECASE,
)
# The words of each provider, in the order in which they are tried: where two providers share some,
# the first is named. (NeuroLink, Error Detection)
_OVERFLOW_PATTERNS = {
    "openai": r"maximum (context|prompt) length|reduce the length of the messages"
    r"|input exceeds the context window",
    "azure": r"content_length_exceeded",
    "google": r"exceeds the maximum number of tokens|content is too long",
    "bedrock": r"validationexception.*token|Input is too long|exceeds the model's maximum",
    "mistral": r"context length exceeded|maximum number of (input )?tokens",
    "openrouter": r"context_length_exceeded",
    "anthropic": r"prompt is too long|input is too long|too many tokens|exceeds? context limit"
    r"|request_too_large",
    "llama.cpp": r"exceed_context_size_error|exceeds? the available context size",
    "github": r"model_max_prompt_tokens_exceeded|tokens_limit_reached",
    "moonshot": r"exceeded model token limit",
    "minimax": r"context window exceeds",
    "ollama": r"prompt too long|exceeds? max(imum)? length",
    "lm-studio": r"greater than the context length",
}
_OVERFLOW_REGEXES = {
    name: re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for name, pattern in _OVERFLOW_PATTERNS.items()
}
_MAX_CAUSES = 10
_NUMBER = r"(\d[\d,]*)"
_WINDOW_PATTERNS = [
    rf"n_ctx\W+{_NUMBER}",
    rf"configured limit of {_NUMBER}",
    rf"maximum (?:context|prompt) length (?:is|of)\D{{0,20}}{_NUMBER}",
    rf"tokens? > {_NUMBER}",
    rf"\+ {_NUMBER} > (?P<n>\d[\d,]*)",
    rf"maximum number of tokens(?: allowed)? \({_NUMBER}\)",
    rf"{_NUMBER} maximum context length",
    rf"cannot exceed {_NUMBER}",
    rf"(?:max size|token limit): {_NUMBER}",
    rf"context size \({_NUMBER} tokens\)",
]
_TOKEN_PATTERNS = [
    rf"n_prompt_tokens\W+{_NUMBER}",
    rf"too long: {_NUMBER} tokens",
    rf"context limit: {_NUMBER} \+",
    r"(?:requested|resulted in|request has|request contains|prompt contains)"
    rf"(?: about)? {_NUMBER}(?: input)? tokens",
    rf"input token count \({_NUMBER}\)",
    rf"received {_NUMBER}",
]


def is_throttling(text: str) -> bool:
    """Return whether a refusal says that there were too many requests."""
    return _THROTTLING_PATTERN.search(text) is not None


def find_overflow_provider(text: str) -> str | None:
    """Return the provider in whose words a text says that a request is too long, or None."""
    if is_throttling(text):
        return None
    providers = (name for name, regex in _OVERFLOW_REGEXES.items() if regex.search(text))
    return next(providers, None)


def name_overflow(error: object) -> str | None:
    """Return the provider in whose words an error says that a request is too long.

    The error is an exception, a text, or a mapping as a provider sends it; its causes count too.
    Returns an empty text for an overflow in nobody's words, and None for any other error.
    """
    for link in islice(_iterate_causes(error), _MAX_CAUSES):
        provider = find_overflow_provider(_join_texts(link))
        if provider is not None:
            return provider
        if isinstance(link, ContextOverflow):
            return ""
    return None


def _iterate_causes(error: object) -> Iterator[object]:
    while error is not None:
        yield error
        if isinstance(error, Mapping):
            error = error.get("cause")
        else:
            error = getattr(error, "__cause__", None)


def _join_texts(error: object) -> str:
    return " ".join(str(part) for part in (error, getattr(error, "body", None)) if part)


def recognize_overflow(text: str, body: Any, detail: str) -> ContextOverflow | None:
    """Return the overflow that a refusal reports, with the provider's numbers, or None."""
    if find_overflow_provider(text) is None:
        return None
    fields = body if isinstance(body, dict) else {}
    tokens = _parse_count(fields.get("n_prompt_tokens")) or _find_number(_TOKEN_PATTERNS, text)
    return ContextOverflow(
        detail,
        tokens=tokens,
        window=_parse_count(fields.get("n_ctx")) or _find_number(_WINDOW_PATTERNS, text),
    )


def _parse_count(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _find_number(patterns: Sequence[str], text: str) -> int | None:
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            # Of a pattern with two numbers, the one in the group `n` is meant.
            digits = match.groupdict().get("n") or match[1]
            return int(digits.replace(",", "")) or None
    return None
