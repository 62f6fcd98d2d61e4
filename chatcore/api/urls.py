"""The addresses of the API, each with and without a slash at its end."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from chatcore.api import (
    attachments,
    context,
    event_streams,
    messages,
    models,
    search,
    sessions,
    tokens,
    transfer,
    turns,
    versions,
    webhooks,
)
from chatcore.rest.not_found import NotFoundView

ROUTES = {
    "v1/sessions": sessions.SessionListView,
    "v1/sessions/<uuid:session_id>": sessions.SessionDetailView,
    "v1/sessions/<uuid:session_id>/messages": messages.MessageListView,
    "v1/sessions/<uuid:session_id>/messages/import": messages.MessageImportView,
    "v1/sessions/<uuid:session_id>/tool_results": turns.ToolResultsView,
    "v1/sessions/<uuid:session_id>/attachments": attachments.AttachmentListView,
    "v1/sessions/<uuid:session_id>/cancel": turns.CancelTurnView,
    "v1/sessions/<uuid:session_id>/events": event_streams.EventStreamView,
    "v1/sessions/<uuid:session_id>/context/preview": context.ContextPreviewView,
    "v1/sessions/<uuid:session_id>/summary": context.SummaryView,
    "v1/sessions/<uuid:session_id>/search": search.SessionSearchView,
    "v1/attachments/<uuid:attachment_id>": attachments.AttachmentDetailView,
    "v1/sessions/import": transfer.SessionImportView,
    "v1/sessions/<uuid:session_id>/export": transfer.SessionExportView,
    "v1/messages/<int:message_id>": versions.MessageDetailView,
    "v1/messages/<int:message_id>/fork": transfer.ForkMessageView,
    "v1/messages/<int:message_id>/pin": transfer.PinMessageView,
    "v1/messages/<int:message_id>/regenerate": versions.RegenerateMessageView,
    "v1/messages/<int:message_id>/restore": versions.RestoreMessageView,
    "v1/search": search.SearchView,
    "v1/models": models.AiModelListView,
    "v1/tokens": tokens.TokenListView,
    "v1/tokens/<str:token_id>": tokens.TokenDetailView,
    "v1/webhooks": webhooks.WebhookListView,
    "v1/webhooks/<uuid:webhook_id>": webhooks.WebhookDetailView,
    "v1/webhooks/<uuid:webhook_id>/deliveries": webhooks.WebhookDeliveryListView,
}

urlpatterns = [
    *(path(route + end, view.as_view()) for route, view in ROUTES.items() for end in ("", "/")),
    path("schema/", SpectacularJSONAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    re_path("", NotFoundView.as_view()),  # whatever else is under api/ is included before this file
]
