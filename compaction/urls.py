"""The routes of compaction: its REST API, and what pages of a chat ask it."""

from django.urls import include, path

from compaction.runs.model_change import preview_switch

urlpatterns = [
    path("api/v1/", include("compaction.api.urls")),
    path("c/<uuid:pk>/switch/", preview_switch, name="preview_switch"),
]
