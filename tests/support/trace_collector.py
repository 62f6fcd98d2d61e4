"""OpenTelemetry traces as they were posted: OTLP over HTTP, read with its own classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.support.post_collector import PostCollector


@dataclass(frozen=True)
class Span:
    """A span as it came over the wire. `failed` is its status."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int  # nanoseconds
    end: int
    failed: bool
    values: dict[str, Any]
    service: str


def list_spans(collector: PostCollector) -> list[Span]:
    """Return all spans that have come."""
    return [span for body in collector.bodies for span in _parse_spans(body)]


def _parse_spans(body: bytes) -> Iterator[Span]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        names = _read_attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    failed=span.status.code == 2,
                    values=_read_attributes(span.attributes),
                    service=names["service.name"],
                )


def _read_attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _read_value(pair.value) for pair in pairs}


def _read_value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_read_value(item) for item in value.array_value.values]
    return getattr(value, str(kind))
