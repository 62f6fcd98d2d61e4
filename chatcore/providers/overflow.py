"""Telling, from a provider's refusal, that the request was longer than the window; and reading the numbers it gives."""

import re
from collections.abc import Sequence
from typing import Any

from chatcore.providers.errors import ContextOverflow

_TEXTS = re.compile(
    r"""
    exceed_context_size_error | exceeds?\ the\ available\ context\ size                  # llama.cpp
    | cont(ext|ent)_length_exceeded | context\ length\ exceeded                          # OpenAI, OpenRouter, Azure, Mistral
    | maximum\ (context|prompt)\ length | reduce\ the\ length\ of\ the\ messages         # OpenAI, vLLM, DeepSeek, xAI
    | input\ exceeds\ the\ context\ window | context\ window\ exceeds                    # OpenAI, MiniMax
    | model_max_prompt_tokens_exceeded | tokens_limit_reached | exceeded\ model\ token\ limit   # Copilot, GitHub, Moonshot
    | (prompt|input|content)\ is\ too\ long | prompt\ too\ long | exceeds?\ max(imum)?\ length  # Anthropic, Bedrock, Google, Ollama
    | exceeds?\ context\ limit | exceed\ context\ limit | too\ many\ tokens              # Anthropic, Cohere
    | maximum\ number\ of\ (input\ )?tokens | exceeds\ the\ model's\ maximum             # Google, Mistral, Bedrock
    | validationexception.*token                                                         # Bedrock
    | greater\ than\ the\ context\ length | request_too_large                            # LM Studio, Anthropic
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_N = r"(\d[\d,]*)"
_WINDOW = [
    rf"n_ctx\W+{_N}",
    rf"maximum (?:context|prompt) length (?:is|of)\D{{0,20}}{_N}",
    rf"tokens? > {_N}",
    rf"\+ {_N} > (?P<n>\d[\d,]*)",
    rf"maximum number of tokens(?: allowed)? \({_N}\)",
    rf"{_N} maximum context length",
    rf"cannot exceed {_N}",
    rf"(?:max size|token limit): {_N}",
    rf"context size \({_N} tokens\)",
]
_TOKENS = [
    rf"n_prompt_tokens\W+{_N}",
    rf"too long: {_N} tokens",
    rf"context limit: {_N} \+",
    rf"(?:requested|resulted in|request has|request contains|prompt contains)(?: about)? {_N}(?: input)? tokens",
    rf"input token count \({_N}\)",
    rf"received {_N}",
]


def recognize(text: str, body: Any, detail: str) -> ContextOverflow | None:
    """The overflow that a refusal's text or body tells of, with the provider's own numbers; None when it is about something else."""
    if not _TEXTS.search(text):
        return None
    fields = body if isinstance(body, dict) else {}
    tokens = _whole(fields.get("n_prompt_tokens")) or _number(_TOKENS, text)
    return ContextOverflow(
        detail, tokens=tokens, window=_whole(fields.get("n_ctx")) or _number(_WINDOW, text)
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _number(patterns: Sequence[str], text: str) -> int | None:
    for pattern in patterns:
        if found := re.search(pattern, text, re.IGNORECASE):
            return int((found.groupdict().get("n") or found[1]).replace(",", "")) or None
    return None
