"""A request that is too long is understood in the words of every provider, with its numbers."""

import pytest

from chatcore.providers.errors import (
    ContextOverflow,
)
from tests.support.provider_calls import (
    PROTOCOLS,
    build_connection,
    build_error_event,
    build_refusal,
    catch_error,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

SSE = {"Content-Type": "text/event-stream"}


OVERFLOWS: list[tuple[Reply, int | None, int | None]] = [
    (make_overflow(tokens=9000, window=8192), 9000, 8192),
    (
        build_error_event(
            code=400,
            type="exceed_context_size_error",
            message="too long",
            n_prompt_tokens=9000,
            n_ctx=8192,
        ),
        9000,
        8192,
    ),
    (
        build_refusal(
            400,
            "This model's maximum context length is 8192 tokens. However, your messages "
            "resulted in 9,001 tokens. "
            "Please reduce the length of the messages.",
            type="invalid_request_error",
            code="context_length_exceeded",
        ),
        9001,
        8192,
    ),
    (
        build_refusal(
            400,
            (
                "This endpoint's maximum context length is 8192 tokens. However, you "
                "requested about 9000 tokens (8000 of text input)."
            ),
        ),
        9000,
        8192,
    ),
    (
        build_refusal(
            400,
            (
                "This model's maximum context length is 2048 tokens. However, your request "
                "has 3000 input tokens."
            ),
        ),
        3000,
        2048,
    ),
    (
        build_refusal(
            400,
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
            "300000 tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
        ),
        300000,
        272000,
    ),
    (
        build_refusal(
            400,
            "Your input exceeds the context window of this model.",
            code="context_length_exceeded",
        ),
        None,
        None,
    ),
    (
        build_refusal(
            400, "prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error"
        ),
        210000,
        200000,
    ),
    (
        build_refusal(
            400,
            (
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > "
                "200000, decrease either"
            ),
        ),
        190000,
        200000,
    ),
    (build_refusal(413, "Request exceeds the maximum size", type="request_too_large"), None, None),
    (
        build_refusal(
            400,
            (
                "The input token count (1200000) exceeds the maximum number of tokens "
                "allowed (1048576)."
            ),
        ),
        1200000,
        1048576,
    ),
    (
        build_refusal(
            400,
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with "
                "32768 maximum context length"
            ),
        ),
        40000,
        32768,
    ),
    (
        build_refusal(400, "Input is too long for requested model.", type="ValidationException"),
        None,
        None,
    ),
    (build_refusal(400, "too big", code="content_length_exceeded"), None, None),
    (build_refusal(400, "Requested tokens: context length exceeded"), None, None),
    (build_refusal(400, "content is too long"), None, None),
    (
        build_refusal(400, "too many tokens: the prompt cannot exceed 4081 - received 4292."),
        4292,
        4081,
    ),
    (
        Reply(
            status=413,
            body=b"<html>Request Entity Too Large</html>",
            headers={"Content-Type": "text/html"},
        ),
        None,
        None,
    ),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("reply", "tokens", "window"), OVERFLOWS)
async def test_overflow_is_understood_in_every_dialect_with_its_numbers(
    protocol: str, reply: Reply, tokens: int | None, window: int | None, scripted: ScriptedModel
) -> None:
    scripted.script(reply)
    error = await catch_error(build_connection(scripted, protocol))
    assert isinstance(error, ContextOverflow)
    assert (error.tokens, error.window) == (tokens, window)
