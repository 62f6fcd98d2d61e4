"""The addresses of the OpenAI face, under /v1/."""

from django.urls import path, re_path

from chatcore.faces.chat_completions import views

urlpatterns = [
    re_path(r"^chat/completions/?$", views.ChatCompletions.as_view()),
    re_path(r"^models/?$", views.Models.as_view()),
    path("models/<path:name>", views.OneModel.as_view()),
    re_path("", views.Nowhere.as_view()),
]
