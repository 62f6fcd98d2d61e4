"""What stands in the way of an answer is told as what it is."""

import asyncio
import json
import ssl
from datetime import timedelta
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
