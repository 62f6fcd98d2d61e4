"""What turns, calls, tools and compactions take is told here; without the app of tracing nobody
listens.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatcore.providers.base import Connection, Request, StreamPart, ToolCall

Value = str | float | Sequence[str] | None  # None is left out
Attributes = Mapping[str, Value]


class Traces:
    """What can be traced; each method does nothing until an app says more."""

    def open_span(
        self,
        name: str,
        attributes: Attributes,
        *,
        kind: str = "internal",
        headers: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[object]:
        """Open a span around the work inside; what is opened there is a part of it.

        `headers` are those of a request, which may name the trace that it belongs to. An error
        gives its class and not its text, which may have contents.
        """
        return nullcontext()

    def note(self, attributes: Attributes, *, name: str = "", error_type: str = "") -> None:
        """Add attributes to the span around this moment, and give it a name.

        With `error_type` it has failed.
        """

    def note_wait(self, name: str, begin: datetime) -> None:
        """Add a span of a wait that ends now."""

    def trace_call(
        self, connection: "Connection", request: "Request", parts: "AsyncGenerator[StreamPart]"
    ) -> "AsyncGenerator[StreamPart]":
        """Return the parts of a call of a provider; a span ends with them."""
        return parts

    def trace_tool(self, call: "ToolCall") -> AbstractContextManager[object]:
        """Open a span around a call of a tool."""
        return nullcontext()

    def send(self) -> None:
        """Send what has ended so far, for a process that may end at any moment."""


class _Chosen:
    traces = Traces()


def get_traces() -> Traces:
    """Return what traces in this process."""
    return _Chosen.traces


def set_traces(traces: Traces) -> None:
    """Have this trace from now on."""
    _Chosen.traces = traces
