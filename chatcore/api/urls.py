"""The routes of the REST API, each with and without a slash at its end."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from chatcore.api import (
    attachments,
    context,
    event_streams,
    forks,
    mcp_servers,
    messages,
    models,
    pins,
    preferences,
    projects,
    search,
    sessions,
    setup,
    tokens,
    transfer,
    turns,
    versions,
)
from chatcore.base.extras import has_extra, log_missing
from chatcore.base.rest.routes import build_url_patterns

ROUTES = {
    "v1/sessions": sessions.SessionListView,
    "v1/sessions/<uuid:session_id>": sessions.SessionDetailView,
    "v1/sessions/<uuid:session_id>/messages": messages.MessageListView,
    "v1/sessions/<uuid:session_id>/messages/import": transfer.MessageImportView,
    "v1/sessions/<uuid:session_id>/tool_results": turns.ToolResultsView,
    "v1/sessions/<uuid:session_id>/approvals": turns.ApprovalListView,
    "v1/sessions/<uuid:session_id>/attachments": attachments.AttachmentListView,
    "v1/sessions/<uuid:session_id>/cancel": turns.CancelTurnView,
    "v1/sessions/<uuid:session_id>/events": event_streams.EventStreamView,
    "v1/sessions/<uuid:session_id>/context/preview": context.ContextPreviewView,
    "v1/sessions/<uuid:session_id>/context/rewind": context.RewindContextView,
    "v1/sessions/<uuid:session_id>/summary": context.SummaryView,
    "v1/sessions/<uuid:session_id>/search": search.SessionSearchView,
    "v1/attachments/inspect": attachments.AttachmentInspectionView,
    "v1/attachments/<uuid:attachment_id>": attachments.AttachmentDetailView,
    "v1/export": transfer.UserExportView,
    "v1/sessions/import": transfer.SessionImportView,
    "v1/sessions/<uuid:session_id>/export": transfer.SessionExportView,
    "v1/messages/<int:message_id>": versions.MessageDetailView,
    "v1/messages/<int:message_id>/fork": forks.ForkMessageView,
    "v1/messages/<int:message_id>/pin": pins.PinMessageView,
    "v1/messages/<int:message_id>/regenerate": versions.RegenerateMessageView,
    "v1/messages/<int:message_id>/restore": versions.RestoreMessageView,
    "v1/search": search.SearchView,
    "v1/projects": projects.ProjectListView,
    "v1/projects/<uuid:project_id>": projects.ProjectDetailView,
    "v1/projects/<uuid:project_id>/files": projects.ProjectFileListView,
    "v1/projects/<uuid:project_id>/files/<uuid:file_id>": projects.ProjectFileDetailView,
    "v1/mcp_servers": mcp_servers.McpServerListView,
    "v1/mcp_servers/<uuid:server_id>": mcp_servers.McpServerDetailView,
    "v1/mcp_servers/<uuid:server_id>/refresh": mcp_servers.McpServerRefreshView,
    "v1/models": models.AiModelListView,
    "v1/setup": setup.SetupView,
    "v1/setup/providers/<slug:name>/test": setup.ProviderTestView,
    "v1/preferences": preferences.PreferencesView,
    "v1/tokens": tokens.TokenListView,
    "v1/tokens/<str:token_id>": tokens.TokenDetailView,
}


def _show_schema(request: HttpRequest) -> HttpResponse:
    """Stand in for the page that describes the API where its files are not installed."""
    log_missing("api-docs", "/api/docs/ leads to the schema")
    return redirect("schema")


_show_docs = (
    SpectacularSwaggerSplitView.as_view(url_name="schema")
    if has_extra("api-docs")
    else _show_schema
)
urlpatterns = [
    *build_url_patterns(ROUTES),
    path("schema/", SpectacularJSONAPIView.as_view(), name="schema"),
    path("docs/", _show_docs, name="docs"),
]
