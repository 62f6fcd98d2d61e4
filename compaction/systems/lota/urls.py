"""The routes of Lota: the structured state and the memory of a session over REST."""

from django.urls import include, path

from chatcore.base.rest.routes import build_url_patterns
from compaction.systems.lota import api

urlpatterns = [
    path(
        "api/v1/",
        include(
            build_url_patterns(
                {
                    "sessions/<uuid:session_id>/state": api.WorkingStateView,
                    "sessions/<uuid:session_id>/memory": api.MemoryView,
                }
            )
        ),
    ),
]
