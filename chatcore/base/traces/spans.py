"""Open spans around work. Without `start_traces` they are nothing, and cost a comparison."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

TRACER = "chatcore"


class _Switch:
    """Whether this process makes traces, with what, and whether they have contents."""

    tracer: Any = None
    provider: Any = None
    has_contents: bool = False


def start_traces(*, has_contents: bool) -> None:
    """Send traces from now on; OTEL_EXPORTER_OTLP_ENDPOINT and the like say where to and how.

    A collector that does not answer costs nobody anything: its spans are dropped.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # What OTEL_SERVICE_NAME says comes last, and wins.
    resource = Resource.create({"service.name": TRACER}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _Switch.provider, _Switch.tracer = provider, provider.get_tracer(TRACER)
    _Switch.has_contents = has_contents


def stop_traces() -> None:
    """Send what is left, and make no more traces."""
    provider, _Switch.provider, _Switch.tracer = _Switch.provider, None, None
    if provider:
        provider.shutdown()


def are_on() -> bool:
    """Return True if this process makes traces."""
    return _Switch.tracer is not None


def have_contents() -> bool:
    """Return True if spans may say what people and models wrote."""
    return _Switch.has_contents


@contextlib.contextmanager
def open_span(
    name: str,
    attributes: Mapping[str, object],
    *,
    kind: str = "internal",
    headers: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """Open a span around the work inside; what is opened there is a part of it. Yields it, or None.

    `headers` are those of a request, which may name the trace that it belongs to. An error gives
    its class and not its text, which may have contents.
    """
    if _Switch.tracer is None:
        yield None
        return
    from opentelemetry import trace

    span = begin_span(name, attributes, kind=kind, headers=headers)
    with trace.use_span(
        span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    ):
        try:
            yield span
        except BaseException as error:
            note_error(span, type(error).__name__)
            raise


def begin_span(
    name: str,
    attributes: Mapping[str, object],
    *,
    kind: str = "internal",
    headers: Mapping[str, str] | None = None,
    start: datetime | None = None,
) -> Any:
    """Begin a span that the caller ends. Traces must be on. `start` is a moment in the past."""
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return _Switch.tracer.start_span(
        name,
        context=TraceContextTextMapPropagator().extract(headers) if headers else None,
        kind=SpanKind[kind.upper()],
        attributes={key: value for key, value in attributes.items() if value is not None},
        start_time=None if start is None else int(start.timestamp() * 1_000_000_000),
    )


def note_error(span: Any, error_type: str) -> None:
    """Mark a span as failed."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def note(attributes: Mapping[str, Any], *, error_type: str = "") -> None:
    """Add attributes to the span around this moment, and mark it as failed with `error_type`."""
    if _Switch.tracer is None:
        return
    from opentelemetry import trace

    span = trace.get_current_span()
    span.set_attributes({key: value for key, value in attributes.items() if value is not None})
    if error_type:
        note_error(span, error_type)


def send_spans(seconds: float = 1.0) -> None:
    """Send what has ended so far, for a process that may end at any moment."""
    if _Switch.provider is not None:
        _Switch.provider.force_flush(int(seconds * 1000))
