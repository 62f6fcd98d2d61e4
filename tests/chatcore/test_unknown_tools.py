"""Models of which nobody has said whether they call tools: tried, and settled by a refusal."""

import json

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.client_tool_requests import WEATHER
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
REFUSALS = [
    "registry.ollama.ai/library/gemma3:4b does not support tools",
    'No endpoints found that support tool use. Try disabling "fetch_url".',
    "Function calling is not enabled for this model",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
]


@pytest.fixture
def messages(session: Session) -> str:
    AiModel.objects.update(supports_tools=None)
    return f"/api/v1/sessions/{session.pk}/messages"


def refuse(detail: str) -> Reply:
    return Reply(status=400, body=json.dumps({"error": {"message": detail}}).encode())


@pytest.mark.parametrize("detail", REFUSALS)
def test_tools_are_tried_and_left_out_after_the_first_refusal(
    api: APIClient, messages: str, scripted: ScriptedModel, detail: str
) -> None:
    assert api.get("/api/v1/models").json()["results"][0]["supports_tools"] is True
    scripted.script(refuse(detail), Reply(text="Hello."))
    answered = api.post(messages, {"content": "Hi"}).json()
    assert answered["assistant_message"]["content"] == "Hello."
    assert ["tools" in request.json for request in scripted.requests] == [True, False]
    assert AiModel.objects.get().supports_tools is False
    assert api.get("/api/v1/models").json()["results"][0]["supports_tools"] is False


def test_what_did_not_help_is_not_kept(
    api: APIClient, messages: str, scripted: ScriptedModel
) -> None:
    scripted.script(refuse(REFUSALS[0]), refuse("The name of the model is wrong."))
    assert api.post(messages, {"content": "Hi"}).status_code == 502
    assert AiModel.objects.get().supports_tools is None


def test_a_clients_own_tools_are_refused_with_where_to_change_it(
    api: APIClient, messages: str, scripted: ScriptedModel
) -> None:
    scripted.script(refuse(REFUSALS[0]))
    body = {"content": "Weather?", "tools": [WEATHER]}
    refused = api.post(messages, body)
    assert refused.status_code == 502
    assert "does not support tools" in refused.json()["detail"]
    again = api.post(messages, body)
    assert again.status_code == 400
    for answer in (refused.json()["detail"], again.json()["errors"][0]["detail"]):
        assert "Language models, the field Supports tools" in answer


def test_what_an_operator_has_said_stays(
    api: APIClient, messages: str, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(supports_tools=True)
    scripted.script(refuse(REFUSALS[0]))
    assert api.post(messages, {"content": "Hi"}).status_code == 502
    assert AiModel.objects.get().supports_tools is True


def test_a_refusal_of_something_else_settles_nothing(
    api: APIClient, messages: str, scripted: ScriptedModel
) -> None:
    scripted.script(refuse("tool_choice 'required' is not supported"))
    assert api.post(messages, {"content": "Hi"}).status_code == 502
    assert AiModel.objects.get().supports_tools is None
