"""The routes of prompts: in the settings, and in the REST API."""

from django.urls import path

from chatcore.base.rest.routes import build_url_patterns
from chatcore.contrib.prompts import api, pages

urlpatterns = [
    path("settings/prompts/", pages.create_prompt, name="prompts"),
    path("settings/prompts/<uuid:pk>/", pages.edit_prompt, name="edit_prompt"),
    path("settings/prompts/<uuid:pk>/delete/", pages.remove_prompt, name="remove_prompt"),
    *build_url_patterns(
        {
            "api/v1/prompts": api.PromptListView,
            "api/v1/prompts/<uuid:prompt_id>": api.PromptDetailView,
        }
    ),
]
