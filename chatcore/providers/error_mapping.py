"""Convert every way in which an SDK fails to one of the ProviderErrors in `errors.py`."""

import json
import logging
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.utils import timezone

from chatcore.base.databases.outages import iterate_causes
from chatcore.providers import overflow, refusal_bodies, waits
from chatcore.providers.answer_reader import ErrorEvent
from chatcore.providers.base import Connection, Request
from chatcore.providers.errors import (
    ContextOverflow,
    ImagesRefused,
    ProviderAuth,
    ProviderError,
    ProviderOverloaded,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ToolsRefused,
)

if TYPE_CHECKING:  # a second to import, and most processes call no model
    import httpx2

logger = logging.getLogger(__name__)

# An error inside a stream comes after the status 200: there its own type decides.
OVERLOADED = 529  # Anthropic's own status
_STATUS_BY_KIND = {
    "invalid_request_error": 400,
    "exceed_context_size_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "timeout_error": 504,
    "overloaded_error": OVERLOADED,
}
_KIND_MEMBERS = ("type", "code", "status", "error_type", "http_code", "status_code")
_BAD_KEY_PATTERN = re.compile(
    r"api.?key.{0,20}(not valid|invalid)|(invalid|incorrect).{0,10}api.?key", re.IGNORECASE
)
# What Ollama, OpenRouter, Mistral, Groq and vLLM say of a model that calls no tools. A refusal of
# one kind of tool, or of a choice of tools, says something else.
_NO_TOOLS_PATTERN = re.compile(
    r"does(?: not|n't) support (?:tools\b|tool (?:use|call)|function call)"
    r"|no endpoints found that support tool use"
    r"|(?:function|tool) calling is not (?:enabled|supported)"
    r"|`?tool calling`? is not supported"
    r"|requires --enable-auto-tool-choice",
    re.IGNORECASE,
)
# What OpenAI, OpenRouter, Mistral, vLLM, llama.cpp, Ollama and DeepSeek say of a model that sees no
# images. llama.cpp says it with 500. A refusal of one image, or of too many, says something else.
_NO_IMAGES_PATTERN = re.compile(
    r"image_url(?: is only supported by certain models|`?, expected `?text)"
    r"|no endpoints found that support image input"
    r"|image input is not (?:enabled|supported)"
    r"|does(?: not|n't) support (?:image|vision|multimodal)"
    r"|at most 0 image\(s\)"
    r"|is not a multimodal model"
    r"|missing data required for image input",
    re.IGNORECASE,
)
# Keys by their beginnings, by what stands before them, and whatever is long, has letters and
# digits, and is no UUID.
_SECRET_PATTERN = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|gsk|pk|rk|xai|hf|r8|fw|csk|nvapi|pplx|tgp|ghp|gho|ghs|glpat|dop"
    r"|whsec|github_pat|xox[abprs])[-_][-_A-Za-z0-9*.]{6,}|(?:AIza|AKIA|ASIA|ya29\.|eyJ|SG\.|AQ\.)"
    r"[-_A-Za-z0-9*.]{8,})"
    r"|(?<=Bearer )\S+|(?<=Basic )\S+"
    r"|(?i:(?<=api-key: )|(?<=api_key=)|(?<=apikey=)|(?<=token=)|(?<=[?&]key=)|(?<=secret=)"
    r"|(?<=password=)|(?<=AccountKey=))[^\s&;,\"']+"
    r"|(?<![-_A-Za-z0-9])(?![0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3})(?=[-_A-Za-z]*+[0-9])"
    r"(?=[-_0-9]*+[A-Za-z])[-_A-Za-z0-9]{32,}"
)
_MAX_DETAIL_CHARS = 400
# Stack traces of a server: of Python, whose last line says what is wrong, of Java, JavaScript and
# .NET, and of Go.
_TRACE_PATTERN = re.compile(
    r"Traceback \(most recent call last\):?(?:\s*\n[ \t]+[^\n]*)+"
    r"|Traceback \(most recent call last\).*"
    r"|(?<!\S)File \"[^\"\n]+\", line \d+(?:, in \S+)?"
    r"|(?<!\S)at [\w.$<>/ ]{1,200}\([^()\n]*:\d+(?::\d+)?\)"
    r"|(?<!\S)at [\w.<>`]{1,200}\([^()\n]*\) in \S+:line \d+"
    r"|(?<!\S)goroutine \d+ \[[^\]\n]*\]:.*",
    re.DOTALL,
)
# They say what they are about, and it is never the length.
TELLING_STATUSES = (401, 402, 403, 404, 405, 408, 409, 425, 429, 504, 529)
_CONTENTS_PATTERN = re.compile(
    r"content|moderat|guideline|polic(?:y|ies)|safety|flagged|violat|harmful|sensitive|unsafe"
    r"|inappropriate|guardrail",
    re.IGNORECASE,
)
# What filters say with other statuses, where the words above may be about a field.
_FILTER_PATTERN = re.compile(
    r"content[ _-]?filter|content[ _-]?(?:management[ _-])?polic|moderat|safety|flagged|guardrail"
    r"|inappropriate|harmful|unsafe|prohibited|data_?inspection|content exists risk|high risk"
    r"|sensitive (?:content|words?|information|topic)|(?:in|out)put.{0,12}sensitive|usage polic"
    r"|llama.?guard|responsible ai|disallowed|abusive|security check|legal reasons|block_?reason"
    r"|(?:prompt|input|content|message|response|output)s?\b.{0,20}\b(?:blocked|filtered)\b"
    r"|filtre de contenu|inhaltsfilter|filtro de contenido|敏感|违规|内容安全|安全检查",
    re.IGNORECASE,
)
# What a 403 says that another key would not change.
_NO_KEY_PATTERN = re.compile(
    r"balance|credit|billing|usage limit|quota|region|country|territory|not available in|location"
    r"|network",
    re.IGNORECASE,
)
_BREAKDOWN_PATTERN = re.compile(
    r"it gave no reason|internal.{0,12}error|server error|bad gateway|went wrong|web page"
    r"|try again|temporar|unavailable|upstream|provider returned error",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What a provider sent in place of an answer."""

    status: int
    """The HTTP status; inside a stream, what it would have been."""
    search_text: str
    """The type, the code and the body, in which the patterns search."""
    message: str
    """A sentence for people."""
    body: object
    retry_after: float | None
    """Seconds."""
    address: str = ""
    """Where the request went."""


@contextmanager
def translate_errors(
    sdk: object, connection: Connection, request: Request | None = None
) -> Iterator[None]:
    """Surround everything that uses an SDK, and let only ProviderErrors leave.

    The size of the `request` tells whether a refusal is about its length. The cause is dropped,
    because its text may contain a key.
    """
    try:
        yield
    except ProviderError:
        raise
    # Broad on purpose: the SDKs let errors of httpx2, json and anyio through, and fail in many ways
    # on answers of an unexpected shape.
    except Exception as error:  # noqa: BLE001
        raise translate_error(error, sdk, connection, request) from None


def translate_error(
    error: Exception, sdk: Any, connection: Connection, request: Request | None = None
) -> ProviderError:
    """Return the ProviderError for an exception that an SDK, or something below it, raised."""
    import httpx2

    if _has_timed_out(error):
        return ProviderTimeout(
            f"The provider sent nothing for {connection.timeout_seconds:g} seconds, which is the"
            " time that its settings allow."
        )
    if isinstance(error, (sdk.APIConnectionError, httpx2.ConnectError)):
        return ProviderUnavailable(_explain_connection_failure(error))
    if isinstance(error, httpx2.TransportError):
        return ProviderUnavailable(
            "The provider broke the connection before its answer was complete."
        )
    if isinstance(error, (ErrorEvent, sdk.APIStatusError)):
        sent_size = overflow.measure_request(request) if request else None
        refusal = classify_refusal(parse_refusal(error, connection.api_key), sent_size)
        refusal.was_accepted = isinstance(error, ErrorEvent)
        return refusal
    logger.info("a provider's answer could not be read", exc_info=error)
    return ProviderUnavailable(f"The provider's answer cannot be read ({type(error).__name__}).")


def _has_timed_out(error: BaseException) -> bool:
    """Return True for a wait that took too long, told by the cause.

    One SDK's HTTP client names every failure of a connection a timeout.
    """
    return any(isinstance(link, TimeoutError) for link in iterate_causes(error))


def _explain_connection_failure(error: BaseException) -> str:
    # The innermost one is Python's own; those of aiohttp around it lack its message.
    tls_errors = (link for link in iterate_causes(error) if isinstance(link, ssl.SSLError))
    tls_error = next(tls_errors, None)
    if isinstance(tls_error, ssl.SSLCertVerificationError):
        return (
            "The certificate of the provider's server was not accepted:"
            f" {tls_error.verify_message or 'it cannot be verified'}."
        )
    if tls_error:
        return "The provider's address speaks no TLS, or another version of it."
    return "The provider cannot be reached, or broke the connection."


def classify_refusal(
    refusal_info: Refusal, sent_size: overflow.SentSize | None = None
) -> ProviderError:
    """Return the ProviderError for a refusal.

    Throttling is recognized first, then length, then the status.
    """
    error = _classify_by_words(refusal_info, sent_size) or _classify_by_status(refusal_info)
    error.refused_status = refusal_info.status
    is_large = sent_size is not None and sent_size.tokens >= overflow.MIN_SUSPECT_TOKENS
    # A breakdown without a word of its own passes by itself, and is no reason to leave words out.
    is_breakdown = refusal_info.status >= 500 and bool(
        refusal_info.status not in (500, 502) or _BREAKDOWN_PATTERN.search(refusal_info.message)
    )
    is_suspect = refusal_info.status not in TELLING_STATUSES and is_large and not is_breakdown
    error.may_be_overflow = is_suspect and overflow.may_be_overflow(refusal_info.search_text)
    # A gateway may report a filter as a breakdown of its own.
    error.is_about_contents = type(error) in (ProviderRejected, ProviderUnavailable) and bool(
        _FILTER_PATTERN.search(refusal_info.search_text)
    )
    return error


def _classify_by_words(
    refusal_info: Refusal, sent_size: overflow.SentSize | None
) -> ProviderError | None:
    text = refusal_info.search_text
    if refusal_info.status not in TELLING_STATUSES or refusal_info.status == 429:
        detail = f"The request is longer than the model's window: {refusal_info.message}"
        is_throttled = refusal_info.status == 429 and not overflow.is_too_large_for_rate(text)
        overflow_error = None
        if not is_throttled:
            overflow_error = overflow.recognize_overflow(text, refusal_info.body, detail, sent_size)
        if overflow_error:
            return overflow_error
    if refusal_info.status == 429 or overflow.is_throttling(text):
        return ProviderRateLimited(
            f"The provider is throttling: {refusal_info.message}"
            f"{_describe_wait(refusal_info.retry_after)}",
            retry_after=refusal_info.retry_after,
        )
    if refusal_info.status == 413:
        return ContextOverflow(detail)
    if _NO_IMAGES_PATTERN.search(text):
        return ImagesRefused(
            f"The provider refused the request with {refusal_info.status}: {refusal_info.message}"
        )
    return None


def _classify_by_status(refusal_info: Refusal) -> ProviderError:
    status, text = refusal_info.status, refusal_info.search_text
    refused = f"The provider refused the request with {status}: {refusal_info.message}"
    if status in (401, 403):
        if _CONTENTS_PATTERN.search(text) and not _BAD_KEY_PATTERN.search(text):
            return ProviderRejected(
                f"The provider refused what the request says: {refusal_info.message}"
            )
        if status == 403 and _NO_KEY_PATTERN.search(text):
            return ProviderRejected(refused)
        return ProviderAuth(f"The provider refused the API key: {refusal_info.message}")
    if status == 400 and _BAD_KEY_PATTERN.search(text):
        return ProviderAuth(f"The provider refused the API key: {refusal_info.message}")
    if status in (408, 504):
        return ProviderTimeout(
            f"The provider ran out of time: {refusal_info.message}",
            retry_after=refusal_info.retry_after,
        )
    if status >= 500 or status < 400 or status in (409, 425):
        error_class = ProviderOverloaded if status == OVERLOADED else ProviderUnavailable
        return error_class(
            f"The provider failed with {status}: {refusal_info.message}"
            f"{_describe_wait(refusal_info.retry_after)}",
            retry_after=refusal_info.retry_after,
        )
    if status in (404, 405) and refusal_info.address:
        refused += f" This address was asked: {refusal_info.address}"
    if _NO_TOOLS_PATTERN.search(text):
        return ToolsRefused(refused)
    return ProviderRejected(refused)


def _describe_wait(seconds: float | None) -> str:
    """Return a sentence about a wait that people notice; nothing for a shorter one."""
    if seconds is None or seconds < 60:
        return ""
    end = timezone.now() + timedelta(seconds=seconds)
    form = "%H:%M" if seconds < 43_200 else "%Y-%m-%d %H:%M"
    return f" It asks to wait until {end.strftime(form)} UTC."


def parse_refusal(error: Exception, api_key: str) -> Refusal:
    """Return what an SDK's error says, in any of the shapes that compatible servers give it."""
    response: httpx2.Response | None = getattr(error, "response", None)
    body = getattr(error, "body", None)
    if response is not None:
        body = _load_body(response, body)
    objects = list(refusal_bodies.iterate_objects(body))
    kinds = [str(fields[name]) for fields in objects for name in _KIND_MEMBERS if fields.get(name)]
    reason = refusal_bodies.find_reason(body)
    status = _infer_status(getattr(error, "status_code", 200), kinds)
    return Refusal(
        status=status,
        search_text=" ".join([*kinds, reason, str(body)[:10_000]]),
        message=_format_message(reason, api_key),
        body=body,
        retry_after=waits.find_wait(
            status=status,
            headers={} if response is None else response.headers,
            objects=objects,
            reason=reason,
        ),
        address=_format_address(response),
    )


def _format_address(response: "httpx2.Response | None") -> str:
    """Return the address that was asked, without its query, which may hold a key."""
    if response is None:
        return ""
    first_response = response.history[0] if response.history else response
    return str(first_response.request.url.copy_with(query=None, userinfo=b""))


def _load_body(response: "httpx2.Response", parsed_body: object) -> object:
    """Return a response's whole body. One SDK hands on its member `error` alone."""
    try:
        return response.json()
    except (ValueError, RuntimeError):  # no JSON, nested too deeply, or never read
        return parsed_body


def _infer_status(status: int, kinds: list[str]) -> int:
    if status >= 300:
        return status
    for kind in kinds:
        if kind.isdecimal() and 400 <= int(kind) < 600:
            return int(kind)
    for kind in kinds:
        if kind in _STATUS_BY_KIND:
            return _STATUS_BY_KIND[kind]
    return 502


def _format_message(message: str, api_key: str) -> str:
    """Return a message without keys and stack traces, and not too long."""
    if not message:
        return "it gave no reason."
    # A provider may quote the key. A very short one would blank out parts of ordinary words.
    if len(api_key) >= 4:
        for form in (api_key, quote(api_key, safe=""), json.dumps(api_key)[1:-1], escape(api_key)):
            message = message.replace(form, "[key]")
    message = _TRACE_PATTERN.sub("", message)
    message = " ".join(_SECRET_PATTERN.sub("[key]", message).split())
    return message if len(message) <= _MAX_DETAIL_CHARS else message[:_MAX_DETAIL_CHARS] + "…"
