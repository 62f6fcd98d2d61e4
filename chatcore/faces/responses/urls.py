"""The routes of responses and conversations, under /v1/."""

from django.urls import re_path

from chatcore.faces.responses import conversation_views, views

RESPONSE = r"^responses/(?P<response_id>resp_[^/]*)"
CONVERSATION = r"^conversations/(?P<conversation_id>conv_[^/]*)"

urlpatterns = [
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
]
