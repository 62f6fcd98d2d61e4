"""Recognize that a provider refused a request for its length, and find the numbers it gives."""

import re
from collections.abc import Sequence
from typing import Any

from chatcore.providers.errors import ContextOverflow

_OVERFLOW_PATTERN = re.compile(
    r"""
    # llama.cpp
    exceed_context_size_error | exceeds?\ the\ available\ context\ size
    # OpenAI, OpenRouter, Azure, Mistral
    | cont(ext|ent)_length_exceeded | context\ length\ exceeded
    # OpenAI, vLLM, DeepSeek, xAI
    | maximum\ (context|prompt)\ length | reduce\ the\ length\ of\ the\ messages
    # OpenAI, MiniMax
    | input\ exceeds\ the\ context\ window | context\ window\ exceeds
    # Copilot, GitHub, Moonshot
    | model_max_prompt_tokens_exceeded | tokens_limit_reached | exceeded\ model\ token\ limit
    # Anthropic, Bedrock, Google, Ollama
    | (prompt|input|content)\ is\ too\ long | prompt\ too\ long | exceeds?\ max(imum)?\ length
    # Anthropic, Cohere
    | exceeds?\ context\ limit | exceed\ context\ limit | too\ many\ tokens
    # Google, Mistral, Bedrock
    | maximum\ number\ of\ (input\ )?tokens | exceeds\ the\ model's\ maximum
    # Bedrock
    | validationexception.*token
    # LM Studio, Anthropic
    | greater\ than\ the\ context\ length | request_too_large
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_NUMBER = r"(\d[\d,]*)"
_WINDOW_PATTERNS = [
    rf"n_ctx\W+{_NUMBER}",
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


def recognize_overflow(text: str, body: Any, detail: str) -> ContextOverflow | None:
    """Return the overflow that a refusal reports, with the provider's numbers, or None."""
    if not _OVERFLOW_PATTERN.search(text):
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
