"""Every failure of a provider becomes a ProviderError, with the real SDKs on real sockets."""

import logging
import socket

import pytest

from chatcore.providers.base import Connection
from chatcore.providers.errors import (
    ProviderAuth,
    ProviderError,
    ProviderOverloaded,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
)
from tests.support.provider_calls import (
    KEY,
    PROTOCOLS,
    build_connection,
    build_error_event,
    build_refusal,
    catch_error,
    collect_parts,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

SSE = {"Content-Type": "text/event-stream"}


GARBAGE = {
    "an empty stream": Reply(body=b"", headers=SSE),
    "a stream that ends without saying why": Reply(text="Once upon", finish=None),
    "a stream that says nothing and ends": Reply(finish=None),
    "a cut stream": Reply(text="Once upon a time there was", cut_after=2),
    "a connection cut before the first word": Reply(text="Once", cut_after=0),
    "a page": Reply(
        body=b"<html><body>Welcome to nginx!</body></html>", headers={"Content-Type": "text/html"}
    ),
    "a page with status 502": Reply(
        status=502, body=b"<html>Bad Gateway</html>", headers={"Content-Type": "text/html"}
    ),
    "JSON where a stream was asked": Reply(body=b'{"choices": [], "content": []}'),
    "broken JSON in an event": Reply(
        body=b'event: message_start\ndata: {"choices": [\n\n', headers=SSE
    ),
    "JSON of no known shape": Reply(
        body=b'event: message_start\ndata: {"type": "message_start", "choices": 7}\n\n', headers=SSE
    ),
    "a list": Reply(body=b"event: message_start\ndata: [1, 2]\n\n", headers=SSE),
    "bytes that are no text": Reply(
        body=b"event: message_start\ndata: \xff\xfe\x80\n\n", headers=SSE
    ),
    "a compressed body that is none": Reply(
        body=b"nonsense", headers=SSE | {"Content-Encoding": "gzip"}
    ),
    "a failure": Reply(status=500, text="Internal error"),
    "a failure with an empty body": Reply(status=500, body=b""),
    "a failure with broken JSON": Reply(
        status=500, body=b'{"error": {"mess', headers={"Content-Type": "application/json"}
    ),
    "an overload": Reply(status=529, text="Overloaded"),
    "a redirect to nowhere": Reply(
        status=302, body=b"", headers={"Location": "http://127.0.0.1:1/"}
    ),
    "an error event": build_error_event(type="api_error", message="Internal server error"),
    "an overload in the middle of a stream": build_error_event(
        type="overloaded_error", message="Overloaded"
    ),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
async def test_garbage_is_a_clear_error(
    protocol: str, garbage: Reply, scripted: ScriptedModel
) -> None:
    scripted.script(garbage)
    error = await catch_error(build_connection(scripted, protocol))
    assert type(error) in (ProviderUnavailable, ProviderOverloaded)
    assert error.detail.startswith("The provider")
    assert not {"<", "{"} & set(error.detail)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "silence",
    [Reply(hang=True), Reply(text="Once upon a time", cut_after=1, hang=True), Reply(delay=30)],
)
async def test_silence_is_a_time_out_before_and_within_an_answer(
    protocol: str, silence: Reply, scripted: ScriptedModel
) -> None:
    scripted.script(silence)
    assert (
        type(await catch_error(build_connection(scripted, protocol, timeout_seconds=0.5)))
        is ProviderTimeout
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_events_that_never_come_to_an_end_are_a_time_out(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(body=b": PROCESSING\n\n", headers=SSE | {"Content-Length": "999"}))
    assert (
        type(await catch_error(build_connection(scripted, protocol, timeout_seconds=0.5)))
        is ProviderTimeout
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_unreachable_provider_is_unavailable(protocol: str) -> None:
    with socket.socket() as blocked_socket:
        blocked_socket.bind(("127.0.0.1", 0))
        connection = Connection(
            protocol=protocol,
            base_url=f"http://127.0.0.1:{blocked_socket.getsockname()[1]}",
            api_key=KEY,
            max_retries=0,
        )
        assert type(await catch_error(connection)) is ProviderUnavailable


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (build_refusal(401, "Incorrect API key"), ProviderAuth),
        (build_refusal(403, "Not allowed this model"), ProviderAuth),
        (
            build_refusal(
                400, "API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"
            ),
            ProviderAuth,
        ),
        (build_refusal(400, "Unknown field: foo"), ProviderRejected),
        (build_refusal(404, "No such model"), ProviderRejected),
        (build_refusal(402, "Insufficient credits"), ProviderRejected),
        (build_refusal(408, "Took too long"), ProviderTimeout),
        (build_refusal(504, "Upstream took too long"), ProviderTimeout),
        (build_refusal(503, "The model is overloaded"), ProviderUnavailable),
        (build_error_event(type="authentication_error", message="invalid key"), ProviderAuth),
        (build_error_event(type="invalid_request_error", message="odd"), ProviderRejected),
        (build_error_event(type="rate_limit_error", message="slow down"), ProviderRateLimited),
        (build_error_event(type="server_error", code=504, message="late"), ProviderTimeout),
        (Reply(status=400, body=b'{"error": "a bare string"}'), ProviderRejected),
        (
            Reply(status=422, body=b'{"detail": [{"loc": ["body"], "msg": "bad"}]}'),
            ProviderRejected,
        ),
        (
            Reply(
                status=429,
                body=b'[{"error": {"code": 429, "message": "slow",'
                b' "status": "RESOURCE_EXHAUSTED"}}]',
            ),
            ProviderRateLimited,
        ),
    ],
)
async def test_a_refusal_is_told_by_what_can_be_done_about_it(
    protocol: str, reply: Reply, kind: type[ProviderError], scripted: ScriptedModel
) -> None:
    scripted.script(reply)
    assert type(await catch_error(build_connection(scripted, protocol))) is kind


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "reply",
    [
        build_refusal(
            429,
            "This model's maximum context length is 8192 tokens",
            code="context_length_exceeded",
        ),
        build_refusal(429, "Resource has been exhausted", status="RESOURCE_EXHAUSTED"),
        build_refusal(
            400, "Too many tokens, please wait before trying again.", type="ThrottlingException"
        ),
        build_refusal(
            413,
            "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5000, Requested 3000",
            code="rate_limit_exceeded",
        ),
        build_refusal(429, "You exceeded your current quota", code="insufficient_quota"),
    ],
)
async def test_throttling_is_never_overflow(
    protocol: str, reply: Reply, scripted: ScriptedModel
) -> None:
    scripted.script(reply)
    assert type(await catch_error(build_connection(scripted, protocol))) is ProviderRateLimited


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("17", 17),
        ("0.5", 0.5),
        ("inf", 86_400),
        ("-3", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("tomorrow", None),
    ],
)
async def test_throttling_tells_how_long_to_wait(
    protocol: str, header: str, seconds: float | None, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=429, headers={"Retry-After": header}))
    assert (await catch_error(build_connection(scripted, protocol))).retry_after == seconds


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_key_never_appears_in_an_error(
    protocol: str, status: int, scripted: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    other = "sk-proj-abcdefghijklmnop"
    scripted.script(Reply(status=status, text=f"Key {KEY} (or {other}) is no good. " + "x" * 1000))
    error = await catch_error(build_connection(scripted, protocol))
    visible_text = f"{error!r} {error.detail} {error.__cause__!r} {caplog.text}"
    assert KEY not in visible_text
    assert other not in visible_text
    assert len(error.detail) < 600


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("key", ["schlüssel-des-hauses", "one\ntwo"])
async def test_a_key_that_cannot_be_sent_is_a_matter_of_the_key(
    protocol: str, key: str, scripted: ScriptedModel
) -> None:
    error = await catch_error(build_connection(scripted, protocol, api_key=key))
    assert isinstance(error, ProviderAuth)
    assert key not in error.detail
    assert scripted.requests == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_call_after_a_failure_is_as_good_as_any(
    protocol: str, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=500), Reply(text="Back again."))
    await catch_error(build_connection(scripted, protocol))
    assert await collect_parts(build_connection(scripted, protocol))


TRACES = [
    'Traceback (most recent call last):\n  File "/srv/app/main.py", line 42, in handle\n'
    "    raise ValueError(x)\nValueError: no such option",
    'Traceback (most recent call last): File "/srv/app/main.py", line 42, in handle raise',
    "boom\n\tat com.example.app.Main.handle(Main.java:42)\n\tat com.example.App.run(App.java:7)",
    "boom\n    at handle (/srv/app/index.js:42:13)\n    at async run (/srv/app/index.js:7:1)",
    "boom\n   at App.Main.Handle(String x) in /srv/app/Main.cs:line 42",
    "boom\ngoroutine 1 [running]:\nmain.handle()\n\t/srv/app/main.go:42 +0x1d",
]


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("status", [400, 429, 500])
async def test_no_error_shows_where_a_servers_code_failed(
    trace: str, status: int, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=status, text=f"Not now. {trace}")
    error = await catch_error(build_connection(scripted, "openai", max_retries=0))
    assert "Not now." in error.detail
    assert not any(
        word in error.detail for word in ("Traceback", "srv", "42", ".java", "goroutine")
    )
