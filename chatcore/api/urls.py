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
from chatcore.rest.not_found import NothingHere

ROUTES = {
    "v1/sessions": sessions.Sessions,
    "v1/sessions/<uuid:session_id>": sessions.OneSession,
    "v1/sessions/<uuid:session_id>/messages": messages.Messages,
    "v1/sessions/<uuid:session_id>/messages/import": messages.Import,
    "v1/sessions/<uuid:session_id>/tool_results": turns.ToolResults,
    "v1/sessions/<uuid:session_id>/attachments": attachments.Attachments,
    "v1/sessions/<uuid:session_id>/cancel": turns.Cancel,
    "v1/sessions/<uuid:session_id>/events": event_streams.Events,
    "v1/sessions/<uuid:session_id>/context/preview": context.Preview,
    "v1/sessions/<uuid:session_id>/summary": context.Summary,
    "v1/sessions/<uuid:session_id>/search": search.SearchSession,
    "v1/attachments/<uuid:attachment_id>": attachments.OneAttachment,
    "v1/sessions/import": transfer.ImportSession,
    "v1/sessions/<uuid:session_id>/export": transfer.Export,
    "v1/messages/<int:message_id>": versions.OneMessage,
    "v1/messages/<int:message_id>/fork": transfer.Fork,
    "v1/messages/<int:message_id>/pin": transfer.Pin,
    "v1/messages/<int:message_id>/regenerate": versions.Regenerate,
    "v1/messages/<int:message_id>/restore": versions.Restore,
    "v1/search": search.SearchAll,
    "v1/models": models.Models,
    "v1/tokens": tokens.Tokens,
    "v1/tokens/<str:token_id>": tokens.OneToken,
    "v1/webhooks": webhooks.Webhooks,
    "v1/webhooks/<uuid:webhook_id>": webhooks.OneWebhook,
    "v1/webhooks/<uuid:webhook_id>/deliveries": webhooks.Deliveries,
}

urlpatterns = [
    *(path(route + end, view.as_view()) for route, view in ROUTES.items() for end in ("", "/")),
    path("schema/", SpectacularJSONAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    re_path("", NothingHere.as_view()),  # whatever else is under api/ is included before this file
]
