"""A request that is too long is understood in the words of every provider, with its numbers."""

import pytest

from chatcore.providers.base import ChatMessage
from chatcore.providers.errors import (
    ContextOverflow,
)
from tests.support.provider_calls import (
    PROTOCOLS,
    build_connection,
    build_error_event,
    build_refusal,
    catch_error,
    make_request,
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


# About 3,600 tokens by our own count.
LONG_REQUEST = make_request(ChatMessage(role="user", content="word " * 2_880))
# ruff: noqa: E501 - the words of providers
TOO_LONG = [
    (
        400,
        "The decoder prompt (length 4012) is longer than the maximum model length of 3000. Make sure that `max_model_len` is no smaller",
    ),
    (400, "The input (4012 tokens) is longer than the model's context length (3000 tokens)."),
    (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 3000]"),
    (
        400,
        "Trying to keep the first 4012 tokens when context the overflows. However, the model is loaded with context length of only 3000 tokens",
    ),
    (
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 3000. Given: 4012 `inputs` tokens and 512 `max_new_tokens`",
    ),
    (
        500,
        "rpc error: code = Internal desc = request (4012 tokens) exceeds the available context size (3000 tokens), try increasing it",
    ),
    (400, "Requested tokens (4012) exceed context window of 3000"),
    (400, "exceed max message tokens 3000"),
    (400, "Request body exceeds maximum allowed content length 12000 bytes"),
    (
        413,
        "Request too large for model `llama` in organization on tokens per minute (TPM): Limit 3000, Requested 4012, please reduce your message size and try again.",
    ),
    (
        429,
        "Request too large for gpt-4 on tokens per min (TPM): Limit 3000, Requested 4012. The input or output tokens must be reduced",
    ),
    (400, "Die Anfrage hat 4012 Token, erlaubt sind 3000."),
    (400, "输入内容过长"),
    (400, "Prompt exceeds max prompt token limit (4012 > 3000)"),
    (400, "prompt token count of 4012 exceeds the limit of 3000"),
    (400, "prompt too long; exceeded max context length by 1012 tokens"),
    (
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 6000 input tokens (4096 > 8192 - 6000).",
    ),
    (
        400,
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    ),
    (400, "The conversation is too long for this model: 4,012 of 3,000 tokens"),
    (400, "Votre message dépasse la limite de 3000 jetons (4012 jetons)"),
    (500, "Prompt 超长"),
]
NOT_TOO_LONG = [
    (
        400,
        "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 46 instead.",
    ),
    (400, "tools.0.custom.name: String should have at most 64 characters"),
    (400, "stop: exceeds max length 64"),
    (400, "name exceeds max length 64"),
    (
        400,
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
    ),
    (400, "too many tokens, please wait before trying again"),
    (429, "Too many tokens, please wait before trying again."),
    (
        400,
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
    ),
    (400, "Range of max_tokens should be [1, 8192]"),
    (400, "max_completion_tokens is too large: 40000"),
    (400, "`max_tokens` must be less than or equal to `8192`"),
    (
        429,
        "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 3000, Used 2500, Requested 1000. Please try again in 6m0s.",
    ),
    (
        429,
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
    ),
    (400, "ValidationException: the security token included in the request is invalid"),
    (
        400,
        "messages.5.content.1.image.source.base64: image exceeds 5 MB maximum: 5900000 bytes > 5242880 bytes",
    ),
    (400, "Too many images in request: 25 > 20"),
    (400, "thinking.budget_tokens: Input should be greater than or equal to 1024"),
    (400, "Invalid 'metadata.topic': string too long. Expected a string with maximum length 512"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (
        400,
        "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 100 instead.",
    ),
    (400, "Function description is too long: 2000 characters, limit 1024"),
    (400, "Invalid 'stop': too many stop sequences; at most 4"),
    (400, "The requested number of tokens for the answer exceeds the model's output limit of 8192"),
    (400, "Input should be less than or equal to 2"),
    (400, "tool result content exceeds"),
    (400, "the schema of the tool exceeds the maximum size of 10000 characters"),
    (403, "Content violates usage guidelines"),
]
OPEN = [
    (400, "Der Text ist zu lang."),
    (400, "Invalid request Error"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("status", "message"), TOO_LONG)
async def test_too_long_is_understood_in_any_words(
    protocol: str, status: int, message: str, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(status, message))
    error = await catch_error(build_connection(scripted, protocol), LONG_REQUEST)
    assert isinstance(error, ContextOverflow)
    if "3000" in message or "3,000" in message or "12000" in message:
        assert error.window == 3000


@pytest.mark.parametrize(("status", "message"), NOT_TOO_LONG)
async def test_what_only_looks_like_it_is_none(
    status: int, message: str, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(status, message))
    error = await catch_error(build_connection(scripted, "openai"), LONG_REQUEST)
    assert not isinstance(error, ContextOverflow)


@pytest.mark.parametrize(
    ("status", "message"),
    [(500, "Internal server error"), (502, "Bad Gateway"), (503, "Nobody is here"), (500, "")],
)
async def test_a_breakdown_is_no_reason_to_leave_words_out(
    status: int, message: str, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(status, message))
    error = await catch_error(build_connection(scripted, "openai"), LONG_REQUEST)
    assert not error.may_be_overflow


@pytest.mark.parametrize(("status", "message"), OPEN)
async def test_what_says_nothing_known_may_be_one(
    status: int, message: str, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(status, message), build_refusal(status, message))
    error = await catch_error(build_connection(scripted, "openai"), LONG_REQUEST)
    assert not isinstance(error, ContextOverflow)
    assert error.may_be_overflow
    error = await catch_error(build_connection(scripted, "openai"), make_request())
    assert not error.may_be_overflow
