"""The routes of requests that are passed on, under /v1/."""

from django.urls import re_path

from chatcore.faces.passed_on import views

urlpatterns = [
    re_path(r"^embeddings/?$", views.EmbeddingsView.as_view()),
    re_path(r"^completions/?$", views.CompletionsView.as_view()),
]
