"""The addresses of compaction's REST face, each with and without a slash at its end."""

from django.urls import path

from compaction import api, api_state

ROUTES = {
    "sessions/<uuid:session_id>/compact": api.Compact,
    "sessions/<uuid:session_id>/compactions": api.Runs,
    "sessions/<uuid:session_id>/context": api.Context,
    "sessions/<uuid:session_id>/state": api_state.State,
    "sessions/<uuid:session_id>/memory": api_state.Memory,
    "compactions/<uuid:run_id>": api.OneRun,
    "compactions/<uuid:run_id>/rewind": api.Rewind,
    "policies": api.Policies,
}

urlpatterns = [path(route + end, view.as_view()) for route, view in ROUTES.items() for end in ("", "/")]
