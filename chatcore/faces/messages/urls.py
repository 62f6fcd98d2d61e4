"""The routes of Anthropic's API, under /v1/."""

from django.urls import re_path

from chatcore.faces.messages import views

urlpatterns = [
    re_path(r"^messages/?$", views.MessagesView.as_view()),
    re_path(r"^messages/count_tokens/?$", views.CountTokensView.as_view()),
    re_path(r"^messages/", views.UnknownUrlView.as_view()),
]
