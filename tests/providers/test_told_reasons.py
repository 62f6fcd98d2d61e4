"""What stands in the way of an answer is told as what it is."""

import asyncio
import json
import ssl
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from django.utils import timezone

from chatcore.providers.base import Connection
from chatcore.providers.errors import ProviderAuth, ProviderRateLimited, ProviderRejected
from tests.providers.test_http_over_tls import make_certificate
from tests.support.provider_calls import build_connection, build_refusal, catch_error
from tests.support.raw_servers import answer_with, serve
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

PROTOCOLS = ["openai", "anthropic"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (403, "Content violates usage guidelines", ProviderRejected),
        (403, "The request was flagged by moderation", ProviderRejected),
        (403, "Your usage limit of this billing cycle is reached", ProviderRejected),
        (403, "This model is not available in your region", ProviderRejected),
        (403, "You have no permission to use this model", ProviderAuth),
        (401, "Invalid API key", ProviderAuth),
    ],
)
async def test_a_403_is_no_bad_key_where_it_says_something_else(
    protocol: str, status: int, message: str, kind: type, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(status, message))
    error = await catch_error(build_connection(scripted, protocol))
    assert type(error) is kind
    assert message in error.detail
    assert ("API key:" in error.detail) is (kind is ProviderAuth)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_404_says_which_address_was_asked(protocol: str, scripted: ScriptedModel) -> None:
    scripted.script(build_refusal(404, "Not Found"))
    connection = build_connection(scripted, protocol)
    error = await catch_error(connection)
    assert f"This address was asked: {connection.base_url}/" in error.detail


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_redirect_is_told_with_where_it_leads(
    protocol: str, scripted: ScriptedModel
) -> None:
    there = f"{scripted.base_url}/there"
    scripted.script(Reply(status=301, body=b"", headers={"Location": there}))
    error = await catch_error(build_connection(scripted, protocol))
    assert f"only redirects; enter the one it leads to: {there}" in error.detail


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("message", "headers", "seconds"),
    [
        ("Slow down.", {"Retry-After": "600"}, 600),
        ("Rate limit reached. Please try again in 6m0s.", {}, 360),
        ("Too many requests, retry after 90 seconds", {}, 90),
        ("The limit resets in 2 hours", {}, 7200),
        ("Rate limit reached. Please try again in 850ms.", {}, 0.85),
        (
            "Rate limit reached.",
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2m3.5s",
                "x-ratelimit-remaining-tokens": "41",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            123.5,
        ),
    ],
)
async def test_a_wait_is_said_with_its_end(
    protocol: str,
    message: str,
    headers: dict[str, str],
    seconds: float,
    scripted: ScriptedModel,
) -> None:
    refusal = build_refusal(429, message)
    scripted.script(Reply(status=429, body=refusal.body, headers=headers))
    error = await catch_error(build_connection(scripted, protocol))
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == pytest.approx(seconds)
    assert ("It asks to wait until" in error.detail) is (seconds >= 60)


@pytest.mark.parametrize(
    ("seconds_ahead", "remaining", "is_read"), [(40, "0", True), (40, "3", False), (-5, "0", False)]
)
async def test_a_limit_that_is_used_up_says_when_it_is_reset(
    seconds_ahead: int, remaining: str, is_read: bool, scripted: ScriptedModel
) -> None:
    reset = (timezone.now() + timedelta(seconds=seconds_ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")
    headers = {
        "anthropic-ratelimit-requests-remaining": remaining,
        "anthropic-ratelimit-requests-reset": reset,
    }
    body = build_refusal(429, "Number of requests exceeds your limit.").body
    scripted.script(Reply(status=429, body=body, headers=headers))
    error = await catch_error(build_connection(scripted, "anthropic"))
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == (pytest.approx(seconds_ahead, abs=5) if is_read else None)


@pytest.mark.parametrize("name", ["retry_after", "retryAfter", "retry_after_seconds", "retryDelay"])
@pytest.mark.parametrize("value", [7, 7.0, "7", "7s"])
async def test_a_wait_in_a_field_is_read(name: str, value: object, scripted: ScriptedModel) -> None:
    inner = json.dumps({"error": {"message": "Slow down.", name: value}})
    body = {"error": {"message": "Provider returned error", "metadata": {"raw": inner}}}
    scripted.script(Reply(status=429, body=json.dumps(body).encode()))
    error = await catch_error(build_connection(scripted, "openai"))
    assert (type(error), error.retry_after) == (ProviderRateLimited, 7.0)


WAITS_IN_WORDS = {
    "Limite atteinte : 20 requêtes par 60 secondes. Réessayez dans 12 secondes.": 12,
    "Zu viele Anfragen. Bitte in 20 Sekunden erneut versuchen.": 20,
    "Versuchen Sie es in 2 Stunden und 5 Minuten erneut.": 7500,
    "请求过于频繁，请稍后 30 秒再试": 30,
    "レート制限に達しました。1分30秒後に再度お試しください。": 90,
    "تم تجاوز الحد. حاول مرة أخرى بعد ٣٠ ثانية": 30,
    "Слишком много запросов, повторите через 40 секунд": 40,
    "Límite superado; inténtelo de nuevo en 2,5 segundos": 2.5,
    "요청이 너무 많습니다. 15초 후에 다시 시도하세요.": 15,
    "Quota reached, next slot: PT1M30S": 90,
    "You exceeded 60 requests per 60 seconds.": None,
    "The quota is 1500 requests in 24 hours.": None,
    "每60秒最多20次": None,
}


@pytest.mark.parametrize(("message", "seconds"), WAITS_IN_WORDS.items())
async def test_a_wait_is_read_in_any_language(
    message: str, seconds: float | None, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(429, message))
    error = await catch_error(build_connection(scripted, "openai"))
    assert (type(error), error.retry_after) == (ProviderRateLimited, seconds)


def fill_time(value: object) -> object:
    """Return a value in which a form of time stands for the time in 40 seconds."""
    time = timezone.now() + timedelta(seconds=40)
    if value == "HTTP":
        return format_datetime(time, usegmt=True)
    if value == "EPOCH":
        return str(int(time.timestamp()))
    return time.isoformat() if value == "ISO" else value


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "PT40S"},
        {"Retry-After": "HTTP"},
        {"Retry-After": "EPOCH"},
        {"x-ms-retry-after-ms": "40000"},
        {"x-ratelimit-reset": "40"},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "EPOCH"},
        {"x-ratelimit-reset-tokens-minute": "40.2", "x-ratelimit-reset-requests-day": "33011.4"},
        {"RateLimit": "limit=100, remaining=0, reset=40"},
        {"RateLimit": '"burst";r=7;t=1, "daily";r=0;t=40'},
    ],
    ids=str,
)
async def test_a_wait_is_read_from_any_header(
    headers: dict[str, str], scripted: ScriptedModel
) -> None:
    body = build_refusal(429, "Slow down.").body
    filled_headers = {name: str(fill_time(value)) for name, value in headers.items()}
    scripted.script(Reply(status=429, body=body, headers=filled_headers))
    error = await catch_error(build_connection(scripted, "openai"))
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == pytest.approx(40, abs=15)


@pytest.mark.parametrize(
    "fields",
    [
        {"resets_in_seconds": 40},
        {"retryAfterMs": 40_000},
        {"estimated_time": 40.0},
        {"retry_delay": {"seconds": 40}},
        {"next_retry_at": "ISO"},
        {"resets_at": "EPOCH"},
        {"cooldown": "PT40S", "max_retries": 3, "retry": True},
    ],
)
async def test_a_wait_is_read_from_a_field_of_any_name(
    fields: dict[str, object], scripted: ScriptedModel
) -> None:
    filled_fields = {name: fill_time(value) for name, value in fields.items()}
    scripted.script(build_refusal(429, "Slow down.", **filled_fields))
    error = await catch_error(build_connection(scripted, "openai"))
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after == pytest.approx(40, abs=15)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_address_that_speaks_no_tls_is_told(protocol: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with serve(answer) as address:
        connection = Connection(
            protocol=protocol,
            base_url=address.replace("http:", "https:"),
            api_key="k",
            timeout_seconds=10,
            max_retries=0,
        )
        error = await catch_error(connection)
    assert "speaks no TLS" in error.detail


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_certificate_that_is_not_accepted_is_named(protocol: str, tmp_path: Path) -> None:
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(make_certificate(tmp_path))
    async with serve(answer_with(b""), ssl_context=server_context) as address:
        connection = Connection(
            protocol=protocol, base_url=address, api_key="k", timeout_seconds=10, max_retries=0
        )
        error = await catch_error(connection)
    assert error.detail == (
        "The certificate of the provider's server was not accepted: self-signed certificate."
    )
