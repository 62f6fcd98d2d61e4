"""The routes of the APIs of others, under /v1/, and of the page that connects programs."""

from django.urls import URLPattern, include, path, re_path

from chatcore.contrib.compat.chat_completions import views as completion_views
from chatcore.contrib.compat.connect import pages
from chatcore.contrib.compat.messages import views as message_views
from chatcore.contrib.compat.passed_on import views as passed_views
from chatcore.contrib.compat.responses import conversation_views, views
from chatcore.contrib.compat.switches import is_on

RESPONSE = r"^responses/(?P<response_id>resp_[^/]*)"
CONVERSATION = r"^conversations/(?P<conversation_id>conv_[^/]*)"

ROUTES: dict[str, list[URLPattern]] = {
    "messages": [
        re_path(r"^messages/?$", message_views.MessagesView.as_view()),
        re_path(r"^messages/count_tokens/?$", message_views.CountTokensView.as_view()),
        re_path(r"^messages/", message_views.UnknownMessagesUrlView.as_view()),
    ],
    "passed_on": [
        re_path(r"^embeddings/?$", passed_views.EmbeddingsView.as_view()),
        re_path(r"^completions/?$", passed_views.CompletionsView.as_view()),
    ],
    "responses": [
        re_path(r"^responses/?$", views.ResponsesView.as_view()),
        re_path(r"^responses/compact/?$", views.CompactView.as_view()),
        re_path(r"^responses/input_tokens/?$", views.InputTokensView.as_view()),
        re_path(rf"{RESPONSE}/?$", views.ResponseDetailView.as_view()),
        re_path(rf"{RESPONSE}/cancel/?$", views.CancelView.as_view()),
        re_path(rf"{RESPONSE}/input_items/?$", views.InputItemsView.as_view()),
        re_path(r"^conversations/?$", conversation_views.ConversationListView.as_view()),
        re_path(rf"{CONVERSATION}/?$", conversation_views.ConversationDetailView.as_view()),
        re_path(rf"{CONVERSATION}/items/?$", conversation_views.ItemListView.as_view()),
        re_path(
            rf"{CONVERSATION}/items/(?P<item_id>[^/]+)/?$",
            conversation_views.ItemDetailView.as_view(),
        ),
    ],
    "chat_completions": [
        re_path(r"^chat/completions/?$", completion_views.ChatCompletionsView.as_view()),
    ],
}
FOR_ALL = [
    re_path(r"^models/?$", completion_views.ModelListView.as_view()),
    path("models/<path:name>", completion_views.ModelDetailView.as_view()),
    re_path("", completion_views.UnknownUrlView.as_view()),
]

# What clients ask for whose base address lacks /v1, or has something before it.
WRONG_BASE = rf"^(?!api/)(?:(?:[\w.-]+/){{1,3}}v1/)?{completion_views.RESOURCE}$"

served_routes = [route for name, routes in ROUTES.items() if is_on(name) for route in routes]
urlpatterns = [
    path("settings/programs/", pages.show_programs, name="programs"),
    path("settings/programs/block/", pages.show_block, name="program_block"),
    path("settings/programs/<str:key>/", pages.show_connection, name="program_connection"),
    path("v1/", include([*served_routes, *FOR_ALL])),
    re_path(WRONG_BASE, completion_views.UnknownUrlView.as_view()),
]
