"""Read the chunks of a streamed chat completion as parts of an answer."""

from collections.abc import Callable, Iterable, Mapping

from chatcore.providers.answer_reader import (
    END_MARK,
    ErrorEvent,
    PartJoiner,
    check_end,
    classify_end,
    number_twin_calls,
    parse_error,
    parse_objects,
    reports_error,
)
from chatcore.providers.base import StreamEnd, StreamPart, Usage, mend_surrogates, parse_count
from chatcore.providers.call_pieces import CallCollector
from chatcore.providers.collected_text import CollectedText
from chatcore.providers.provider_data import REASONING_FIELDS
from chatcore.providers.quirks.reasoning_details import ReasoningDetails
from chatcore.providers.server_sent_events import Event


def parse_usage(api_usage: object, timings: object = None) -> Usage | None:
    """Return the reported tokens, or None. Here `prompt_tokens` includes the cached ones.

    `timings` are llama.cpp's. Some servers leave the cached tokens out of `prompt_tokens`: they
    are added where the numbers say so.
    """
    if not isinstance(api_usage, dict):
        return None
    input_tokens = parse_count(api_usage.get("prompt_tokens"))
    if input_tokens is None:
        return None
    details = api_usage.get("prompt_tokens_details")
    if not isinstance(details, dict):
        details = {}
    cache_read = parse_count(details.get("cached_tokens"))
    cache_write = parse_count(details.get("cache_write_tokens"))
    if isinstance(timings, dict) and parse_count(timings.get("prompt_n")) == input_tokens:
        cache_read = parse_count(timings.get("cache_n")) or cache_read
        input_tokens += parse_count(timings.get("cache_n")) or 0
    elif input_tokens and (cache_read or 0) > input_tokens:
        input_tokens += cache_read or 0
    return Usage(
        input=input_tokens,
        output=parse_count(api_usage.get("completion_tokens")) or 0,
        cache_read=cache_read,
        cache_write=cache_write,
    )


class OpenAIStreamReader:
    """Collects an answer while its chunks arrive (the protocol AnswerReader).

    `model` is stored with the data that only this model may receive again. The names of the
    request's tools tell a call that begins from one that goes on. With `begins_thinking` the
    opening tag of the answer's thought does not arrive. `tell_reading` is the connection's.
    """

    def __init__(
        self,
        model: str,
        tool_names: Iterable[str] = (),
        *,
        begins_thinking: bool = False,
        tell_reading: Callable[[int, int], None] | None = None,
    ) -> None:
        self.event_count = 0
        self.is_done = False
        self._model = model
        self._tell_reading = tell_reading
        self._part_joiner = PartJoiner(begins_thinking=begins_thinking)
        self._thoughts = CollectedText()
        self._reasoning_field = ""
        self._reasoning_details = ReasoningDetails()
        self._calls = CallCollector(frozenset(tool_names))
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._stop_sequence: str | None = None
        self._is_refusal = False
        self._has_output = False
        self._is_whole = False

    def read_events(self, events: Iterable[Event]) -> None:
        """Collect events. Raises ErrorEvent, and any exception for JSON of an unexpected shape."""
        for name, data in events:
            if data.lstrip(b'" ').startswith(END_MARK):
                self.is_done = True
                return
            if name == b"error":
                raise ErrorEvent(parse_error(data))
            for chunk in parse_objects(data):
                if reports_error(chunk):
                    raise ErrorEvent(chunk)
                self.event_count += 1
                self._read_chunk(chunk)

    def end(self) -> None:
        """Release what was held back, before the last parts are taken."""
        self._part_joiner.end(is_cut=classify_end(self._finish_reason or "stop") == "length")

    def take_parts(self) -> list[StreamPart]:
        """Return the deltas since the last time; neighbors of one kind are one part."""
        return self._part_joiner.take_parts()

    def build_stream_end(self) -> StreamEnd:
        """Return the last part.

        Raises ProviderUnavailable if nothing ended the answer, and ContextOverflow if the window
        was full before anything was written.
        """
        reason = check_end(
            self._finish_reason,
            is_marked=self.is_done or self._is_whole,
            has_output=self._has_output or bool(self._calls),
        )
        word = self._finish_reason or ""
        if self._is_refusal:
            reason = "refusal"
        if reason not in ("stop", "tool_calls"):
            # Calls of an answer that was cut or refused may be incomplete, so they are dropped.
            return StreamEnd(reason=reason, word=word, usage=self._usage)
        tool_calls = number_twin_calls(self._calls.build_calls())
        return StreamEnd(
            # Not every server distinguishes the two, so the calls decide.
            reason="tool_calls" if tool_calls else "stop",
            stop_sequence=self._stop_sequence,
            word=word,
            tool_calls=tool_calls,
            usage=self._usage,
            provider_data=self._build_provider_data(),
            learned=self._build_facts(),
        )

    def _build_facts(self) -> dict[str, object]:
        begins_thinking = self._part_joiner.should_begin_thinking
        if begins_thinking is None:
            return {}
        return {"dialect": {"begins_thinking": begins_thinking}}

    def _build_provider_data(self) -> dict[str, object]:
        """Return what some servers require back with the answer.

        DeepSeek requires the reasoning with calls, OpenRouter the details of it, Gemini a signature
        for each call, MiniMax the thoughts that stood in tags, as they stood.
        """
        data: dict[str, object] = {}
        extras = {id: extra for id, extra in self._calls.extras.items() if extra}
        thoughts = mend_surrogates(self._thoughts.join()) if self._calls else ""
        details = self._reasoning_details.join() if self._calls else []
        if details:
            data |= {"reasoning_details": details, "extras": extras}
        elif thoughts or extras:
            data |= {"reasoning": thoughts, "extras": extras}
            if thoughts and self._reasoning_field != REASONING_FIELDS[0]:
                data["reasoning_field"] = self._reasoning_field
        tagged_thoughts = mend_surrogates(self._part_joiner.tagged_thoughts)
        if tagged_thoughts:
            data["tagged_thoughts"] = tagged_thoughts
        return {"openai": {"model": self._model} | data} if data else {}

    def _read_chunk(self, chunk: Mapping[str, object]) -> None:
        self._record_usage(chunk.get("usage"), chunk.get("timings"))
        self._read_progress(chunk.get("prompt_progress"))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._read_choice(choice)

    def _read_progress(self, progress: object) -> None:
        """Tell how far llama.cpp has read; what its cache holds is not read again."""
        if self._tell_reading is None or not isinstance(progress, dict):
            return
        processed = parse_count(progress.get("processed"))
        total = parse_count(progress.get("total"))
        cached = parse_count(progress.get("cache")) or 0
        if processed is not None and total is not None and cached <= processed <= total > cached:
            self._tell_reading(processed - cached, total - cached)

    def _record_usage(self, api_usage: object, timings: object) -> None:
        if api_usage:
            self._usage = parse_usage(api_usage, timings) or self._usage

    def _read_choice(self, choice: Mapping[str, object]) -> None:
        if choice.get("error"):  # OpenRouter's
            raise ErrorEvent(choice)
        self._record_usage(choice.get("usage"), None)  # Moonshot's place
        finish_reason = choice.get("finish_reason")
        if finish_reason:
            self._finish_reason = str(finish_reason)
        stop_sequence = choice.get("stop_reason")  # vLLM's
        if isinstance(stop_sequence, str):
            self._stop_sequence = stop_sequence
        delta = choice.get("delta")
        if not delta and not self._has_output and not self._calls:
            # A server that cannot stream sends the whole message.
            delta = choice.get("message")
            self._is_whole = self._is_whole or isinstance(delta, dict)
        if isinstance(delta, dict):
            self._read_delta(delta)

    def _read_delta(self, delta: Mapping[str, object]) -> None:
        for field in REASONING_FIELDS:
            reasoning = delta.get(field)
            if reasoning and isinstance(reasoning, str):
                self._has_output = True
                self._reasoning_field = field
                self._thoughts.add_piece(reasoning)
                self._part_joiner.add_reasoning(reasoning)
                break  # some servers send the same words under both names
        self._reasoning_details.add_pieces(delta.get("reasoning_details"))
        content = delta.get("content")
        if content:
            self._read_content(content)
        refusal = delta.get("refusal")
        if refusal:
            self._is_refusal = True
            self._add_text(str(refusal))
        self._calls.add_delta(delta)

    def _read_content(self, content: object) -> None:
        """Collect text; Mistral's reasoning models send a list of typed pieces instead."""
        if isinstance(content, str):
            self._add_text(content)
            return
        for piece in content if isinstance(content, list) else [content]:
            if isinstance(piece, str):
                self._add_text(piece)
            elif isinstance(piece, dict):
                self._read_piece(piece)

    def _read_piece(self, piece: Mapping[str, object]) -> None:
        thinking = piece.get("thinking")
        text = piece.get("text")
        if isinstance(thinking, list):
            thinking = "".join(str(thought.get("text", "")) for thought in thinking)
        if thinking:
            self._has_output = True
            self._part_joiner.add_reasoning(str(thinking))
        elif isinstance(text, str) and text:
            self._add_text(text)

    def _add_text(self, text: str) -> None:
        self._has_output = True
        self._part_joiner.add_text(text)
