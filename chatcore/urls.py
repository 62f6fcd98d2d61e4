"""The URLs of the project. Those of compaction are included by string, without an import."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path

from chatcore.api import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    re_path(r"^livez/?$", health.report_liveness),
    re_path(r"^readyz/?$", health.report_readiness),
    path("api/v1/", include("compaction.api.urls")),
    path("api/", include("chatcore.api.urls")),
    path("v1/", include("chatcore.faces.chat_completions.urls")),
    path("", include("chatcore.web.urls")),
]
