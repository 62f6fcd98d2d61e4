"""The addresses that a browser asks for when it installs the pages as an app."""

from pathlib import Path

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_GET

# Those of the light theme (css/tokens.css); the pages themselves name both.
THEME_COLOR = "#fdfdfc"
ICONS = (
    ("mark.svg", "any", "any"),
    ("icons/icon-192.png", "192x192", "any"),
    ("icons/icon-512.png", "512x512", "any"),
    ("icons/maskable.svg", "any", "maskable"),
    ("icons/maskable-512.png", "512x512", "maskable"),
)
TYPES = {"svg": "image/svg+xml", "png": "image/png"}
SERVICE_WORKER = Path(__file__).parents[2] / "static/chatcore/service_worker.js"


@require_GET
@cache_control(no_cache=True)
def show_manifest(request: HttpRequest) -> HttpResponse:
    """Return the manifest of the app."""
    home = reverse("home")
    manifest = {
        "name": "Chatcore",
        "short_name": "Chatcore",
        "id": home,
        "start_url": home,
        "scope": home,
        "display": "standalone",
        "background_color": THEME_COLOR,
        "theme_color": THEME_COLOR,
        "icons": [
            {
                "src": static(f"chatcore/{name}"),
                "sizes": sizes,
                "type": TYPES[name.rpartition(".")[2]],
                "purpose": purpose,
            }
            for name, sizes, purpose in ICONS
        ],
    }
    return JsonResponse(manifest, content_type="application/manifest+json")


@require_GET
@cache_control(no_cache=True)
def show_service_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker. Its address is at the top, because that is its scope."""
    return HttpResponse(SERVICE_WORKER.read_bytes(), content_type="text/javascript")


@require_GET
def show_offline_page(request: HttpRequest) -> HttpResponse:
    """Show the page that the service worker keeps. It needs no other file."""
    return render(request, "chatcore/offline.html")
