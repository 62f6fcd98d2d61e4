"""Recognize that a provider refused a request for its length, and find the numbers it gives.

Words, codes and numbers tell it, in this order. What only looks like it is known first: throttling,
limits of an answer, of a name, of the number of tools. Where nothing tells, `may_be_overflow` says
whether a smaller request is worth trying.

A server may also cut a request in silence, and count what is left of it; others leave out what they
had in a cache, or count nonsense. Such a count is not believed: the meter would lie, and compaction
come too late or for nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chatcore.providers.base import Request, Usage
from chatcore.providers.errors import ContextOverflow
from chatcore.providers.refusal_bodies import find_reason, iterate_objects

# Throttling is recognized first: its words are close to those of an overflow ("too many tokens per
# minute"), and compacting would be wrong.
_THROTTLING_PATTERN = re.compile(
    r"rate.?limit|too many requests|resource.?exhausted|throttl|insufficient_quota|concurren"
    r"|(?:tokens|requests) per (?:minute|day)|tokens, please|please wait|\b[tr]p[md]\b"
    r"|请求过于频繁|频率|限流",
    re.IGNORECASE,
)
# One request above the tokens of a minute: waiting never helps. (Groq, OpenAI)
_TOO_LARGE_FOR_RATE = re.compile(
    r"request too large.{0,400}?limit:?\s*(?P<window>\d[\d,]*).{0,80}?"
    r"requested:?\s*(?P<tokens>\d[\d,]*)",
    re.IGNORECASE | re.DOTALL,
)
# The words of each provider, in the order in which they are tried: where two providers share some,
# the first is named. (NeuroLink, Error Detection)
_OVERFLOW_PATTERNS = {
    "openai": r"maximum (context|prompt) length|reduce the length of the messages"
    r"|input exceeds the context window",
    "azure": r"content_length_exceeded",
    "google": r"exceeds the maximum number of tokens|content is too long",
    "bedrock": r"validationexception.{0,300}(?:input|prompt|context|length).{0,300}token"
    r"|validationexception.{0,300}token.{0,300}(?:input|prompt|context|length)"
    r"|Input is too long|exceeds the model's maximum",
    "mistral": r"context length exceeded|maximum number of (input )?tokens"
    r"|too large for model with",
    "openrouter": r"context_length_exceeded|token_limit_exceeded|payload_too_large",
    "anthropic": r"prompt is too long|input is too long|too many tokens|exceeds? context limit"
    r"|request_too_large",
    "llama.cpp": r"exceed_context_size_error|exceeds? the available context size"
    r"|exceeds? context window of",
    "github": r"model_max_prompt_tokens_exceeded|tokens_limit_reached"
    r"|prompt token count of \d+ exceeds",
    "moonshot": r"exceeded model token limit",
    "minimax": r"context window exceeds",
    "ollama": r"prompt too long|exceeds? max(imum)? length|exceeded max context length",
    "lm-studio": r"greater than the context length|trying to keep the first \d+ tokens"
    r"|tokens to keep from the initial prompt|not fit in(?:to)? (?:the )?context",
    "vllm": r"longer than the maximum model length|decoder prompt",
    "together": r"longer than the model's context length|input \(\d+ tokens\) is longer",
    "dashscope": r"range of input length should be",
    "tgi": r"`inputs` (?:tokens \+|must have less than)",
    "volcengine": r"exceeds? max message tokens",
    "mlx": r"exceeds? max prompt token",
    "zhipu": r"\b1261\b|prompt 超长",
    # Nobody's words, and everybody's: what was sent, and that it is too much.
    "unknown": r"(?:prompt|input|context|conversation|history|messages?|request)\b[^.;]{0,80}"
    r"(?:too (?:long|large|big)|exceed|(?:longer|larger|greater|more|bigger) than|over the|beyond"
    r"|(?:does not|doesn't|cannot|can't) fit)[^;]{0,120}"
    r"(?:tokens?|context|window|length|characters?|bytes|size)\b"
    r"|(?:输入|上下文|提示|内容|消息|长度)[^。]{0,16}(?:过长|超长|超出|超过|太长)"
    r"|(?:コンテキスト|入力|プロンプト)[^。]{0,20}(?:超え|超過|長すぎ)",
}
_OVERFLOW_REGEXES = {
    name: re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for name, pattern in _OVERFLOW_PATTERNS.items()
}
# Limits of something else than the whole request. The first column may stand beside an overflow,
# whose words are then about the input.
_LIMIT_OF_ANSWER = re.compile(
    r"max[_ ](?:completion[_ ]|output[_ ]|new[_ ])?tokens|maxOutputTokens|budget_tokens"
    r"|thinking_budget|maximum tokens you requested|maximum output length",
    re.IGNORECASE,
)
_INPUT_WORDS = re.compile(
    r"\b(?:input(?! should| must)|inputs|prompt|context|messages|conversation)\b", re.IGNORECASE
)
_OTHER_LIMITS = re.compile(
    r"string_above_max_length|array_above_max_length|array[ _]too[ _]long|string too long"
    r"|\bdescription\b"
    r"|too many (?:tools|functions|images|files|messages|tool|stop|properties)"
    r"|at most \d+ (?:tools|functions|images|files|messages|documents)"
    r"|(?:image|picture|pdf|file|document|attachment|audio|video|schema|grammar|url|header)s?\b"
    r"[^.;]{0,60}(?:too (?:long|large|big|many)|exceed|larger|maximum|at most)"
    r"|tool_calls?\b|tool_call_id|tool_use\.|tools?\[?\.?\d+|function(?:'s)? name|\.name\b"
    r"|name\b[^.;]{0,40}(?:too long|exceeds? max(?:imum)? length|length)"
    r"|\bstop\b[^.;]{0,60}(?:length|long|exceed|many)|stop_?sequences?"
    # Of Anthropic's, which names the page about windows, too.
    r"|max_tokens\W{0,3}must be greater than\W{0,3}(?:thinking\.)?budget"
    r"|metadata|user_id|safety_identifier|prompt_cache_key|\btitle\b|security token",
    re.IGNORECASE,
)
# What a refusal says that is certainly about something else; a smaller request would not help.
_KNOWN_OTHERWISE = re.compile(
    r"\broles?\b|alternat|tool|function|schema|image|vision|signature|thinking|reasoning"
    r"|not found|does not exist|unknown model|no such|not support|unsupported|unrecognized"
    r"|unexpected|extra_forbidden|extra inputs|required|must be one of|invalid (?:type|value|json)"
    r"|api.?key|auth|permission|forbidden|credential|balance|credit|billing|payment|quota|arrear"
    r"|filter|policy|polici|moderat|safety|sensitive|violat|unsafe|parameter|argument|field"
    r"|temperature|top_p|stream|max_\w*tokens|loading|overload|maintenance|capacity|timed? ?out"
    r"|certificate|out of memory|template",
    re.IGNORECASE,
)
# A request of fewer tokens is not too long for any model that chats.
MIN_SUSPECT_TOKENS = 2_000
# No window is smaller; such a number limits a name, an id or a stop text.
_MIN_WINDOW = 512
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
    rf"model'?s? (?:context )?length (?:of |is )?\(?{_NUMBER}",
    rf"length should be \[\d+, ?{_NUMBER}\]",
    rf"must be <= {_NUMBER}",
    rf"less than {_NUMBER} tokens",
    rf"context window of {_NUMBER}",
    rf"allowed (?:content|input) length (?:of )?{_NUMBER}",
    rf"context length of (?:only )?{_NUMBER}",
    rf"(?:limit|maximum) (?:of|is) {_NUMBER}",
    rf"max message tokens:? {_NUMBER}",
]
_TOKEN_PATTERNS = [
    rf"n_prompt_tokens\W+{_NUMBER}",
    rf"too long: {_NUMBER} tokens",
    rf"context limit: {_NUMBER} \+",
    r"(?:requested|resulted in|request has|request contains|prompt contains)"
    rf"(?: about)? {_NUMBER}(?: input)? tokens",
    rf"input token count \({_NUMBER}\)",
    rf"received {_NUMBER}",
    rf"given: {_NUMBER}",
    rf"token count of {_NUMBER}",
    rf"keep the first {_NUMBER} tokens",
    rf"(?:input|request|prompt) \((?:length )?{_NUMBER}(?: tokens)?\)",
]
_ALL_NUMBERS = re.compile(r"(?<![\w.])\d[\d,]{2,}(?![\w.]*\d)")
_OTHER_UNITS = re.compile(r"bytes?\b|char(?:acter)?s?\b|字符|字节|文字", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class SentSize:
    """How much was sent, by our own count."""

    tokens: int
    chars: int
    max_tokens: int | None = None


def measure_request(request: Request) -> SentSize:
    """Return the size of a request; four characters are counted as a token."""
    chars = len(request.system) + len(request.preface)
    for message in request.messages:
        chars += len(message.content) + sum(len(call.arguments) for call in message.tool_calls)
    chars += sum(len(tool.text) for tool in request.tools)
    return SentSize(tokens=chars // 4, chars=chars, max_tokens=request.max_tokens)


def is_throttling(text: str) -> bool:
    """Return whether a refusal says that there were too many requests."""
    return _THROTTLING_PATTERN.search(text) is not None and not is_too_large_for_rate(text)


def find_overflow_provider(text: str) -> str | None:
    """Return the provider in whose words a text says that a request is too long, or None."""
    if is_too_large_for_rate(text):
        return "groq"
    if is_throttling(text) or _is_other_limit(text):
        return None
    providers = (name for name, regex in _OVERFLOW_REGEXES.items() if regex.search(text))
    return next(providers, None)


def recognize_overflow(
    text: str, body: object, detail: str, sent_size: SentSize | None = None
) -> ContextOverflow | None:
    """Return the overflow that a refusal reports, with the provider's numbers, or None."""
    reason = find_reason(body) or text
    is_overflow = find_overflow_provider(text) is not None
    if not is_overflow and (is_throttling(text) or _is_other_limit(text)):
        return None
    numbers = _find_numbers_near(reason, sent_size)
    if not (is_overflow or numbers):
        return None
    tokens, window = _find_stated_numbers(text, body)
    tokens = tokens or (numbers[0] if numbers else None)
    window = window or (numbers[1] if numbers else None)
    if window is not None and window < _MIN_WINDOW:
        return None
    if window and sent_size and _OTHER_UNITS.search(reason) and not re.search("token", reason):
        window = max(1, window * sent_size.tokens // max(1, sent_size.chars))
        tokens = None
    return ContextOverflow(detail, tokens=tokens, window=window)


def may_be_overflow(text: str) -> bool:
    """Return whether a refusal leaves open what it is about."""
    return not (is_throttling(text) or _is_other_limit(text) or _KNOWN_OTHERWISE.search(text))


def is_too_large_for_rate(text: str) -> bool:
    """Return whether one request alone is above the tokens of a minute: waiting never helps."""
    match = _TOO_LARGE_FOR_RATE.search(text)
    if not match:
        return False
    return _parse_digits(match["tokens"]) > _parse_digits(match["window"])


def _is_other_limit(text: str) -> bool:
    """Return whether a refusal is about the length or number of something else."""
    if _OTHER_LIMITS.search(text):
        return not _names_context(text)
    return bool(_LIMIT_OF_ANSWER.search(text)) and not _INPUT_WORDS.search(text)


def _names_context(text: str) -> bool:
    """Return whether a refusal names the window all the same, as those that count tools do."""
    return any(
        regex.search(text)
        for name, regex in _OVERFLOW_REGEXES.items()
        if name not in ("unknown", "ollama", "anthropic", "bedrock")
    )


def _find_stated_numbers(text: str, body: object) -> tuple[int | None, int | None]:
    """Return the tokens and the window that a refusal states in known words or fields."""
    match = _TOO_LARGE_FOR_RATE.search(text)
    if match:
        return _parse_digits(match["tokens"]), _parse_digits(match["window"])
    tokens = window = None
    for fields in iterate_objects(body):
        tokens = tokens or _parse_count(fields.get("n_prompt_tokens"))
        window = window or _parse_count(fields.get("n_ctx"))
    return (
        tokens or _find_number(_TOKEN_PATTERNS, text),
        window or _find_number(_WINDOW_PATTERNS, text),
    )


def _find_numbers_near(reason: str, sent_size: SentSize | None) -> tuple[int, int] | None:
    """Return the two numbers of a refusal that speak of the size of what was sent, or None.

    One is near our own count, in tokens or characters; the other is a smaller limit.
    """
    if sent_size is None or sent_size.tokens < _MIN_WINDOW:
        return None
    numbers = {_parse_digits(digits) for digits in _ALL_NUMBERS.findall(reason)}
    numbers.discard(sent_size.max_tokens or 0)
    for number in sorted(numbers, reverse=True):
        limits = [limit for limit in numbers if number * 0.02 < limit < number]
        if not limits or max(limits) < _MIN_WINDOW:
            continue
        is_near_tokens = sent_size.tokens * 0.6 <= number <= sent_size.tokens * 2
        is_near_chars = sent_size.chars * 0.8 <= number <= sent_size.chars * 1.5
        if is_near_tokens or is_near_chars:
            return number, max(limits)
    return None


def _parse_count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _parse_digits(digits: str) -> int:
    return int(digits.replace(",", "")[:18] or 0)


def _find_number(patterns: Sequence[str], text: str) -> int | None:
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            # Of a pattern with two numbers, the one in the group `n` is meant.
            return _parse_digits(match.groupdict().get("n") or match[1]) or None
    return None


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
    size = measure_request(request).tokens
    if not usage.input or size < MIN_TOKENS or usage.input >= size / MIN_SHARE:
        return False
    texts = [message.content for message in request.messages]
    run_chars = sum(
        len(match[0]) - 1 for text in (request.system, *texts) for match in _RUN.finditer(text)
    )
    return usage.input < (size - run_chars / 4) / MIN_SHARE


def describe_shortfall(request: Request, usage: Usage) -> str:
    """Return a sentence for the person whose request was not read whole."""
    size = measure_request(request).tokens
    return (
        f"{SHORTFALL} {usage.input:,} of {size:,} tokens, by its own count. It may leave"
        " out the beginning of a long conversation. Let it read more (with Ollama: num_ctx), or"
        " enter the window that it really has: Language models, in the admin."
    )


def _is_far_above(request: Request, usage: Usage, window: int | None) -> bool:
    image_count = sum(len(message.images) for message in request.messages)
    size = measure_request(request).tokens + image_count * IMAGE_TOKENS
    if usage.input > size * MAX_SHARE + ADDED_TOKENS:
        return True
    return bool(window) and usage.input > max(window or 0, size * MIN_SHARE)
