"""The headers of every response: what a page may load, and that no disk keeps its words."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# Messages are texts of models and strangers. The page cleans them; if that ever fails, a script of
# theirs still does not run and a picture of theirs does not call home. Inline styles are allowed,
# because pages of the admin contain some (chatcore/admin/texts.py). The policy of the admin is
# in chatcore/admin/site.py.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class SecurityHeaders:
    """Middleware that adds the headers to every response without such headers of its own.

    Pages and the API are not stored: they are words of people, and a browser's cache outlives their
    signing out. Static files say themselves how long they may be kept.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Cache-Control", "no-store")
        return response
