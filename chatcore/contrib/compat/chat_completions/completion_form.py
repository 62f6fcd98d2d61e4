"""Answers as OpenAI's completions (the protocol AnswerForm)."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from chatcore.contrib.compat.chat_completions import streams
from chatcore.contrib.compat.chat_completions.completion_format import CompletionEnvelope
from chatcore.contrib.compat.chat_completions.request import CompletionRequest
from chatcore.contrib.compat.chat_completions.stateless import build_provider_request
from chatcore.models import Turn
from chatcore.providers.base import Request, StreamEnd, StreamPart


class CompletionForm:
    """The form of one completion."""

    def __init__(self, completion_request: CompletionRequest) -> None:
        self._request = completion_request
        self._envelope = CompletionEnvelope(model=completion_request.model_name)

    def build_provider_request(self) -> Request:
        """Return the request without a memory, before it is made to fit."""
        return build_provider_request(self._request)

    def name_answer(self, turn: Turn, after_seq: int) -> None:
        """Do nothing: the ids of completions lead nowhere."""

    def stream(
        self, parts: AsyncGenerator[StreamPart | None], count_input: Callable[[], int]
    ) -> AsyncGenerator[bytes]:
        """Yield the answer in chunks."""
        include_usage = self._request.include_usage
        return streams.stream_chunks(parts, self._envelope, include_usage=include_usage)

    def format_answer(self, text: str, reasoning: str, final_part: StreamEnd) -> dict[str, Any]:
        """Return the whole completion."""
        return self._envelope.format_completion(text, reasoning, final_part)
