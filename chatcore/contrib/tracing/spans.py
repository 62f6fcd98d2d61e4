"""Spans by OpenTelemetry's own classes. Imported only where traces are made."""

import json
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from datetime import datetime
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from chatcore.base.tracing import Attributes, Traces, Value, get_traces, set_traces
from chatcore.providers.base import Connection, Request, StreamEnd, StreamPart, TextDelta, ToolCall

NAME = "chatcore"
# The parameters of a request that the conventions have a name for.
PARAM_NAMES = (
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
)


def start_traces(*, has_contents: bool) -> None:
    """Send traces from now on; OTEL_EXPORTER_OTLP_ENDPOINT and the like say where to and how.

    A collector that does not answer costs nobody anything: its spans are dropped.
    """
    # What OTEL_SERVICE_NAME says comes last, and wins.
    resource = Resource.create({"service.name": NAME}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_traces(OpenTelemetryTraces(provider, has_contents=has_contents))


def stop_traces() -> None:
    """Send what is left, and make no more traces."""
    traces = get_traces()
    set_traces(Traces())
    if isinstance(traces, OpenTelemetryTraces):
        traces.provider.shutdown()


class OpenTelemetryTraces(Traces):
    """Traces that are sent. With contents, spans say what people and models wrote."""

    def __init__(self, provider: TracerProvider, *, has_contents: bool) -> None:
        self.provider = provider
        self.tracer = provider.get_tracer(NAME)
        self.has_contents = has_contents

    @contextmanager
    def open_span(
        self,
        name: str,
        attributes: Attributes,
        *,
        kind: str = "internal",
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[None]:
        context = TraceContextTextMapPropagator().extract(headers) if headers else None
        span = self.tracer.start_span(
            name, context, SpanKind[kind.upper()], attributes=select_known(attributes)
        )
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield
            except BaseException as error:
                note_error(span, type(error).__name__)
                raise

    def note(self, attributes: Attributes, *, name: str = "", error_type: str = "") -> None:
        span = trace.get_current_span()
        span.set_attributes(select_known(attributes))
        if name:
            span.update_name(name)
        if error_type:
            note_error(span, error_type)

    def note_wait(self, name: str, begin: datetime) -> None:
        self.tracer.start_span(name, start_time=int(begin.timestamp() * 1_000_000_000)).end()

    async def trace_call(
        self, connection: Connection, request: Request, parts: AsyncGenerator[StreamPart]
    ) -> AsyncGenerator[StreamPart]:
        # Not the current span: what runs between two parts belongs to the reader.
        attributes = describe_request(connection, request, has_contents=self.has_contents)
        span = self.tracer.start_span(
            f"chat {request.model}", kind=SpanKind.CLIENT, attributes=select_known(attributes)
        )
        begin = time.monotonic()
        texts: list[str] = []
        has_begun = False
        try:
            async with aclosing(parts):
                async for part in parts:
                    if not has_begun:
                        has_begun = True
                        seconds = time.monotonic() - begin
                        span.set_attribute("gen_ai.response.time_to_first_chunk", seconds)
                    if isinstance(part, StreamEnd):
                        end = describe_end(part, texts, has_contents=self.has_contents)
                        span.set_attributes(select_known(end))
                    elif self.has_contents and isinstance(part, TextDelta):
                        texts.append(part.text)
                    yield part
        except GeneratorExit:
            note_error(span, "cancelled")
            raise
        except BaseException as error:
            note_error(span, getattr(error, "type", type(error).__name__))
            raise
        finally:
            span.end()

    def trace_tool(self, call: ToolCall) -> AbstractContextManager[object]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.arguments": call.arguments if self.has_contents else None,
        }
        return self.open_span(f"execute_tool {call.name}", attributes)

    def send(self) -> None:
        self.provider.force_flush(1_000)  # milliseconds


def select_known(attributes: Attributes) -> Attributes:
    """Leave out what is None."""
    return {key: value for key, value in attributes.items() if value is not None}


def note_error(span: Span, error_type: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def describe_request(
    connection: Connection, request: Request, *, has_contents: bool
) -> dict[str, Value]:
    address = urlsplit(connection.base_url)
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": connection.protocol,
        "gen_ai.request.model": request.model,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.stream": True,
        "server.address": address.hostname,
        "server.port": address.port,
    }
    for name in PARAM_NAMES:
        value = request.params.get(name)
        attributes[f"gen_ai.request.{name}"] = value if isinstance(value, int | float) else None
    if has_contents:
        messages = [_format_message(item.role, item.content) for item in request.messages]
        texts = filter(None, (request.system, request.preface))
        attributes["gen_ai.system_instructions"] = json.dumps(
            [{"type": "text", "content": text} for text in texts]
        )
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    return attributes


def describe_end(end: StreamEnd, texts: list[str], *, has_contents: bool) -> dict[str, Value]:
    attributes: dict[str, Value] = {"gen_ai.response.finish_reasons": [end.reason]}
    if end.usage:
        usage = {
            "input_tokens": end.usage.input,
            "output_tokens": end.usage.output,
            "cache_read.input_tokens": end.usage.cache_read,
            "cache_creation.input_tokens": end.usage.cache_write,
        }
        attributes |= {f"gen_ai.usage.{name}": count for name, count in usage.items()}
    if has_contents:
        message = _format_message("assistant", "".join(texts))
        attributes["gen_ai.output.messages"] = json.dumps([message])
    return attributes


def _format_message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}
