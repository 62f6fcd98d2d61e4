"""Choose the media type of a response: always JSON."""

from collections.abc import Iterable

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class JsonOnlyNegotiation(DefaultContentNegotiation):
    """Content negotiation that ignores the Accept header.

    A browser, or a client that accepts only `text/event-stream`, can then still read a problem.
    """

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the first renderer and its media type."""
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)
