"""The addresses of compaction's REST face, each with and without a slash at its end."""

from django.urls import path

from compaction.api import runs, state

ROUTES = {
    "sessions/<uuid:session_id>/compact": runs.Compact,
    "sessions/<uuid:session_id>/compactions": runs.Runs,
    "sessions/<uuid:session_id>/context": runs.Context,
    "sessions/<uuid:session_id>/state": state.State,
    "sessions/<uuid:session_id>/memory": state.Memory,
    "compactions/<uuid:run_id>": runs.OneRun,
    "compactions/<uuid:run_id>/rewind": runs.Rewind,
    "policies": runs.Policies,
}

urlpatterns = [
    path(route + end, view.as_view()) for route, view in ROUTES.items() for end in ("", "/")
]
