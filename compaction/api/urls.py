"""The routes of compaction's REST API, each with and without a slash at its end."""

from chatcore.base.rest.routes import build_url_patterns
from compaction.api import context, policies, runs

urlpatterns = build_url_patterns(
    {
        "sessions/<uuid:session_id>/compact": runs.CompactView,
        "sessions/<uuid:session_id>/compactions": runs.RunListView,
        "sessions/<uuid:session_id>/context": context.ContextUsageView,
        "sessions/<uuid:session_id>/context/history": context.HistoryView,
        "sessions/<uuid:session_id>/context/undo": context.UndoView,
        "sessions/<uuid:session_id>/context/redo": context.RedoView,
        "compactions/<uuid:run_id>": runs.RunDetailView,
        "compactions/<uuid:run_id>/calls": runs.CallListView,
        "compactions/<uuid:run_id>/calls/<int:number>": runs.CallDetailView,
        "compactions/<uuid:run_id>/rewind": runs.RewindView,
        "compactions/<uuid:run_id>/cancel": runs.CancelRunView,
        "policies": policies.PolicyListView,
    }
)
