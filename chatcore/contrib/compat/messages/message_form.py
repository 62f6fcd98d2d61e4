"""Answers as Anthropic's messages (the protocol AnswerForm)."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from uuid import UUID

from chatcore.base.threads import run_in_thread
from chatcore.context import summary_block
from chatcore.context.clearing import clear_request, list_applied_edits, load_applied_edits
from chatcore.contrib.compat.chat_completions.errors import describe_failure
from chatcore.contrib.compat.chat_completions.stateless import build_provider_request
from chatcore.contrib.compat.client_messages import convert_messages
from chatcore.contrib.compat.messages import errors
from chatcore.contrib.compat.messages.input_messages import OWN_SIGNATURE
from chatcore.contrib.compat.messages.message_format import (
    PING_EVENT,
    Block,
    Compaction,
    MessageEnvelope,
    add_iterations,
    build_content,
    build_seals,
    format_event,
    format_usage,
    get_stop_members,
    write_compaction,
)
from chatcore.contrib.compat.messages.request import MessageRequest
from chatcore.contrib.compat.messages.threads import format_message_id
from chatcore.models import Turn
from chatcore.providers.base import (
    ReasoningDelta,
    Request,
    StreamEnd,
    StreamPart,
    TextDelta,
    ToolCall,
)


class MessageForm:
    """The form of one message."""

    def __init__(
        self, message_request: MessageRequest, compaction: Compaction | None = None
    ) -> None:
        self._request = message_request
        self._compaction = compaction
        self._applied_edits: list[dict[str, object]] = []
        self._turn_id: UUID | None = None
        # The events are written when the request itself, and the log's notes of it, are over.
        self._request_id = errors.get_request_id()
        self._envelope = MessageEnvelope(model=message_request.model_name)

    def name_answer(self, turn: Turn, after_seq: int) -> None:
        """Give the message an id by which a thread goes on, and note the turn it is from."""
        self._turn_id = turn.pk
        self._envelope = replace(self._envelope, id=format_message_id(turn, after_seq))

    def build_provider_request(self) -> Request:
        """Return the request without a memory, before it is made to fit.

        What the client wants left out is left out, and noted for the answer.
        """
        request = self._build_whole_request()
        if self._request.clearing:
            request = clear_request(self._request.model, request, self._request.clearing)
        self._applied_edits = list_applied_edits(request)
        return request

    def _build_whole_request(self) -> Request:
        request = self._request
        texts = [request.system]
        if request.summary:
            texts.append(summary_block.wrap_in_envelope(request.summary))
        messages = convert_messages(request.messages, request.model)
        provider_request = build_provider_request(
            request.model, texts, messages, request.tools, request.params
        )
        return replace(
            provider_request,
            system_cache_control=request.system_cache_control,
            wants_thoughts=True,
        )

    def format_answer(self, text: str, reasoning: str, final_part: StreamEnd) -> dict[str, object]:
        """Return the whole message."""
        self._note_applied_edits()
        content = build_content(text, reasoning, final_part)
        if self._compaction:
            content.insert(0, self._compaction.block)
        return self._envelope.format_message(
            content,
            add_iterations(format_usage(final_part.usage), self._compaction),
            **get_stop_members(final_part),
            **self._format_edits(),
        )

    async def stream(
        self, parts: AsyncGenerator[StreamPart | None], count_input: Callable[[], int]
    ) -> AsyncGenerator[bytes]:
        """Yield the message as events."""
        writer = BlockWriter(self._format_end)
        has_started = False
        async with aclosing(parts):
            async for part in parts:
                if not has_started:
                    usage = {"input_tokens": await run_in_thread(count_input)}
                    yield self._format_start(usage)
                    has_started = True
                    if self._compaction:
                        yield writer.add_compaction(self._compaction)
                if part is None:
                    yield PING_EVENT
                    continue
                if isinstance(part, StreamEnd):
                    await run_in_thread(self._note_applied_edits)
                for event in writer.add_part(part):
                    yield event

    def format_failure(self, error: Exception) -> bytes:
        """Return the event that ends a stream with an error."""
        _, body = errors.format_error(describe_failure(error))
        return format_event("error", error=body["error"], request_id=self._request_id)

    def _note_applied_edits(self) -> None:
        """Note what was left out of the newest request of a session's turn."""
        if self._turn_id and self._request.clearing:
            self._applied_edits = load_applied_edits(self._turn_id)

    def _format_edits(self) -> dict[str, object]:
        if not self._request.edits.are_named:
            return {}
        return {"context_management": {"applied_edits": self._applied_edits}}

    def _format_end(self, final_part: StreamEnd) -> bytes:
        usage = format_usage(final_part.usage)
        if final_part.usage is None:
            usage = {"output_tokens": 0}
        return format_event(
            "message_delta",
            delta=get_stop_members(final_part),
            usage=add_iterations(usage, self._compaction),
            **self._format_edits(),
        )

    def _format_start(self, usage: dict[str, Any]) -> bytes:
        usage = format_usage(None) | usage
        return format_event("message_start", message=self._envelope.format_message([], usage))


class BlockWriter:
    """Writes the parts of an answer as content blocks, one after the other.

    `format_end` returns the event that says how the message ended.
    """

    def __init__(self, format_end: Callable[[StreamEnd], bytes]) -> None:
        self._format_end = format_end
        self._index = -1
        self._open_type = ""

    def add_compaction(self, compaction: Compaction) -> bytes:
        """Return the events of the block that comes before the answer."""
        self._index += 1
        return b"".join(write_compaction(compaction))

    def add_part(self, part: StreamPart) -> Iterator[bytes]:
        """Yield the events of a part; those of the last one end the message."""
        if isinstance(part, TextDelta):
            yield from self._open({"type": "text", "text": ""})
            yield self._format_delta("text_delta", text=part.text)
        elif isinstance(part, ReasoningDelta):
            yield from self._add_reasoning(part)
        else:
            yield from self._end(part)

    def _add_reasoning(self, part: ReasoningDelta) -> Iterator[bytes]:
        thought = part.thought
        if thought and thought["type"] == "redacted_thinking":
            yield from self._close()
            yield from self._open(thought)
            yield from self._close()
            return
        yield from self._open({"type": "thinking", "thinking": "", "signature": ""})
        if part.text:
            yield self._format_delta("thinking_delta", thinking=part.text)
        if thought:
            yield from self._close(signature=thought.get("signature", ""))

    def _end(self, final_part: StreamEnd) -> Iterator[bytes]:
        yield from self._close()
        for block in build_seals(final_part):
            yield from self._open(block)
            yield from self._close()
        for call in final_part.tool_calls:
            yield from self._write_call(call)
        yield self._format_end(final_part)
        yield format_event("message_stop")

    def _write_call(self, call: ToolCall) -> Iterator[bytes]:
        yield from self._open({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
        arguments = json.dumps(call.parse_arguments(), ensure_ascii=False)
        yield self._format_delta("input_json_delta", partial_json=arguments)
        yield from self._close()

    def _open(self, block: Block) -> Iterator[bytes]:
        """Begin a block, unless one of its type is open."""
        if self._open_type == block["type"]:
            return
        yield from self._close()
        self._index += 1
        self._open_type = block["type"]
        yield format_event("content_block_start", index=self._index, content_block=block)

    def _close(self, *, signature: object = OWN_SIGNATURE) -> Iterator[bytes]:
        if not self._open_type:
            return
        if self._open_type == "thinking":
            yield self._format_delta("signature_delta", signature=signature)
        self._open_type = ""
        yield format_event("content_block_stop", index=self._index)

    def _format_delta(self, type: str, **members: object) -> bytes:
        return format_event(
            "content_block_delta", index=self._index, delta={"type": type} | members
        )
