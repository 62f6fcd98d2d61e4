"""Models of which nobody has said whether they see images: tried, and settled by a refusal."""

import base64
import json
from typing import Any

import openai
import pytest
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.models import Session, Turn
from models_registry.models import AiModel
from tests.support.attachment_requests import say, upload
from tests.support.openai_client import client, list_completions
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

PNG = build_png(8, 8)
pytestmark = pytest.mark.django_db(transaction=True)
# OpenRouter, Mistral, vLLM, llama.cpp and DeepSeek, with their status.
REFUSALS = [
    (404, "No endpoints found that support image input"),
    (400, "Image input is not enabled for this model"),
    (400, "At most 0 image(s) may be provided in one request."),
    (500, "image input is not supported - hint: you may need to provide the mmproj"),
    (400, "messages[0]: unknown variant `image_url`, expected `text` at line 1 column 100"),
]
WHERE = "Language models, the field Supports images"


def refuse(status: int, detail: str) -> Reply:
    return Reply(status=status, body=json.dumps({"error": {"message": detail}}).encode())


def ask(api: APIClient, session: Session) -> Any:
    return say(api, session, [upload(api, session, PNG, "cat.png").json()["id"]])


@pytest.mark.parametrize(("status", "detail"), REFUSALS)
def test_images_are_tried_and_become_words_after_the_first_refusal(
    api: APIClient, session: Session, scripted: ScriptedModel, status: int, detail: str
) -> None:
    AiModel.objects.update(supports_images=None)
    assert api.get("/api/v1/models").json()["results"][0]["supports_images"] is True
    blind = Reply(text="I cannot see it.")
    # A failure with 500 is tried again by the SDK before it counts.
    scripted.default = lambda body: (
        refuse(status, detail) if "image_url" in json.dumps(body) else blind
    )
    assert ask(api, session).json()["status"] == "completed"
    assert "cannot see images" in json.dumps(scripted.requests[-1].json["messages"])
    assert AiModel.objects.get().supports_images is False
    assert WHERE in Turn.objects.get().notices[0]
    assert api.get("/api/v1/models").json()["results"][0]["supports_images"] is False


def test_what_an_operator_has_said_stays_and_the_error_says_where_to_change_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(supports_images=True)
    scripted.script(refuse(*REFUSALS[0]))
    assert WHERE in ask(api, session).json()["detail"]
    assert AiModel.objects.get().supports_images is True


def test_a_request_without_a_session_learns_as_well(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(supports_images=None)
    image: Any = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"},
    }
    messages: Any = [{"role": "user", "content": [image]}]
    scripted.script(refuse(*REFUSALS[1]))
    with pytest.raises(openai.APIStatusError, match="Supports images"):
        client.chat.completions.create(model="scripted/test-model", messages=messages)
    client.chat.completions.create(model="scripted/test-model", messages=messages)
    assert "cannot see images" in json.dumps(list_completions(scripted)[-1].json)
