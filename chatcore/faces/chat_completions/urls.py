"""The routes of OpenAI's API, under /v1/."""

from django.urls import path, re_path

from chatcore.faces.chat_completions import views

urlpatterns = [
    re_path(r"^chat/completions/?$", views.ChatCompletionsView.as_view()),
    re_path(r"^models/?$", views.ModelListView.as_view()),
    path("models/<path:name>", views.ModelDetailView.as_view()),
    re_path("", views.UnknownUrlView.as_view()),
]
