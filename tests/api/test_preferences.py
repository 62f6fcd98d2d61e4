"""A user's own preferences: the model of their new sessions."""

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from models_registry.models import AiModel

pytestmark = pytest.mark.django_db

PATH = "/api/v1/preferences"


def create_session(api: APIClient) -> str:
    model: str = api.post("/api/v1/sessions", {}).json()["model"]
    return model


def test_a_model_of_ones_own_is_that_of_new_sessions(
    api: APIClient, user: User, model: AiModel
) -> None:
    other = AiModel.objects.create(provider=model.provider, name="other", context_window_size=9_000)
    assert api.get(PATH).json()["default_model"] is None
    assert create_session(api) == str(model)
    assert api.patch(PATH, {"default_model": "other"}).json()["default_model"] == str(other)
    assert create_session(api) == str(other)

    other.is_active = False
    other.save()
    assert create_session(api) == str(model)  # what is out of service is nobody's default
    assert api.patch(PATH, {"default_model": None}).json()["default_model"] is None


def test_a_model_that_is_not_there_is_refused(api: APIClient, model: AiModel) -> None:
    response = api.patch(PATH, {"default_model": "nobody/knows"})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "default_model"
