"""The routes of memory's REST API."""

from django.urls import include, path

from chatcore.rest.routes import build_url_patterns
from compaction.memory.api import ledger, missing, rules

urlpatterns = [
    path(
        "api/v1/",
        include(
            build_url_patterns(
                {
                    "sessions/<uuid:session_id>/context/missing": missing.MissingView,
                    "sessions/<uuid:session_id>/ledger": ledger.LedgerView,
                    "sessions/<uuid:session_id>/ledger/<int:line_id>": ledger.LedgerLineView,
                    "rules": rules.RuleListView,
                    "rules/<int:rule_id>": rules.RuleView,
                }
            )
        ),
    )
]
