"""Every address; the other apps' are included by string."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from chatcore.api import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    re_path(r"^livez/?$", health.live),
    re_path(r"^readyz/?$", health.ready),
    path("api/v1/", include("compaction.api_urls")),
    path("api/", include("chatcore.api.urls")),
    path("v1/", include("chatcore.api.openai_face.urls")),
    path("", include("chatcore.web_urls")),
]
