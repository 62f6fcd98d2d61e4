"""Routes of the API: build them, build links to them, and answer for paths that are none."""

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView

from chatcore.base.rest.problems import MEDIA_TYPE, build_body


def build_url_patterns(routes: Mapping[str, type[APIView]]) -> list[URLPattern]:
    """Build the URL patterns of views, each with and without a slash at its end."""
    return [
        path(route + end, view.as_view()) for route, view in routes.items() for end in ("", "/")
    ]


def get_base_path() -> str:
    """Return the path below which everything is, without a slash at its end; mostly empty.

    Django's own `get_script_prefix` knows it in threads of a request only.
    """
    return settings.FORCE_SCRIPT_NAME or ""


def build_api_path(request: Request, path: str) -> str:
    """Return the path of another resource in the same version of the API.

    It begins where the API is mounted, which the path of the request shows.
    """
    mount, _, _ = request.path_info.partition("/v1/")
    return f"{get_base_path()}{mount}/v1/{path}"


# Without the exemption, a POST to an unknown path would be 403 and not 404.
@csrf_exempt
def handle_unknown_path(request: HttpRequest, **kwargs: object) -> JsonResponse:
    """Answer any method on an unknown path with a 404 problem instead of a page."""
    return JsonResponse(build_body(NotFound()), status=404, content_type=MEDIA_TYPE)
