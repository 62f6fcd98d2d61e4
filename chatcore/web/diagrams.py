"""The page inside a frame that draws a diagram: it has no origin, and no way to any network."""

import secrets

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET

# A diagram is a text of a model or a stranger, and what draws it is large. Two scripts run here and
# no other; whatever a diagram makes of them, there is nothing to read and nobody to tell.
DIAGRAM_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'nonce-{nonce}'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


@require_GET
@xframe_options_sameorigin
def show_diagram_page(request: HttpRequest) -> HttpResponse:
    """Return the page, which waits for a diagram. It holds nothing of anybody."""
    nonce = secrets.token_urlsafe(16)
    response = render(request, "chatcore/diagram.html", {"nonce": nonce})
    response.headers["Content-Security-Policy"] = DIAGRAM_POLICY.format(nonce=nonce)
    return response
