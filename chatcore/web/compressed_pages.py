"""Send pages compressed. A page is mostly markup, a seventh of which goes over the wire."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedPages(GZipMiddleware):
    """Django's middleware, which hides how well a secret compresses, for whole pages alone.

    Streams go out word by word, and other answers are for programs, which have a proxy for that.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress a page if the browser allows it."""
        is_page = response.get("Content-Type", "").startswith("text/html")
        if not isinstance(response, HttpResponse) or not is_page:
            return response
        return super().process_response(request, response)
