"""The addresses of compaction's REST face, each with and without a slash at its end."""

from django.urls import path

from compaction.api import runs, state

ROUTES = {
    "sessions/<uuid:session_id>/compact": runs.CompactView,
    "sessions/<uuid:session_id>/compactions": runs.RunListView,
    "sessions/<uuid:session_id>/context": runs.ContextUsageView,
    "sessions/<uuid:session_id>/state": state.WorkingStateView,
    "sessions/<uuid:session_id>/memory": state.MemoryView,
    "compactions/<uuid:run_id>": runs.RunDetailView,
    "compactions/<uuid:run_id>/rewind": runs.RewindView,
    "policies": runs.PolicyListView,
}

urlpatterns = [
    path(route + end, view.as_view()) for route, view in ROUTES.items() for end in ("", "/")
]
