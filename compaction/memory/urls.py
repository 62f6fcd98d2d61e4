"""The routes of memory: in the settings, and in the REST API."""

from django.urls import include, path

from chatcore.base.rest.routes import build_url_patterns
from compaction.memory import pages
from compaction.memory.api import ledger, rules

urlpatterns = [
    path("settings/rules/", pages.add_rule, name="rules"),
    path("settings/rules/<int:pk>/", pages.edit_rule, name="edit_rule"),
    path("settings/rules/<int:pk>/forget/", pages.forget_rule, name="forget_rule"),
    path("settings/remembered/", pages.list_chats, name="remembered"),
    path("settings/remembered/<uuid:chat>/<int:line>/", pages.edit_line, name="edit_line"),
    path(
        "settings/remembered/<uuid:chat>/<int:line>/forget/", pages.forget_line, name="forget_line"
    ),
    path("c/<uuid:pk>/rules/", pages.leave_rules_out, name="leave_rules_out"),
    path(
        "api/v1/",
        include(
            build_url_patterns(
                {
                    "sessions/<uuid:session_id>/context/missing": ledger.MissingView,
                    "sessions/<uuid:session_id>/ledger": ledger.LedgerView,
                    "sessions/<uuid:session_id>/ledger/<int:line_id>": ledger.LedgerLineView,
                    "sessions/<uuid:session_id>/rules": rules.SessionRulesView,
                    "rules": rules.RuleListView,
                    "rules/<int:rule_id>": rules.RuleView,
                }
            )
        ),
    ),
]
