"""Tools, results and messages that are refused while the client runs tools itself."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.client_tool_requests import WEATHER, address, ask, asking, bring
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.soundness import sound

__all__ = ["address", "sound"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_another_result_for_the_same_call_is_refused(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted, asking("Rome", id="r"), asking("Oslo", id="o"))
    bring(api, address, ("o", "Snow"))
    refused = bring(api, address, ("r", "Rain"), ("o", "Sun"))
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (
        400,
        "results[1].tool_call_id",
    )
    assert session.messages.filter(role="tool").count() == 1


def test_a_result_of_an_unknown_call_stores_nothing(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    ask(api, address, scripted)
    refused = bring(api, address, ("r", "Rain"), ("x", "?"))
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (
        400,
        "results[1].tool_call_id",
    )
    assert not session.messages.filter(role="tool").exists()


def test_results_that_nobody_waits_for_are_409(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    refused = bring(api, address, ("r", "Rain"))
    assert (refused.status_code, refused.json()["type"]) == (409, "nothing_waits")
    ask(api, address, scripted)
    bring(api, address, ("r", "Rain"))
    assert bring(api, address, ("r", "Sun")).status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "results"),
        ({"results": []}, "results"),
        ({"results": [{"content": "x"}]}, "results[0].tool_call_id"),
        ({"results": [{"tool_call_id": "r"}]}, "results[0].content"),
        ({"results": [{"tool_call_id": "r", "content": {"a": 1}}]}, "results[0].content"),
        ({"results": [{"tool_call_id": "r", "content": "x", "name": "y"}]}, "results[0].name"),
    ],
)
def test_wrong_results_are_refused_by_the_name_of_their_field(
    api: APIClient, address: str, body: Any, field: str
) -> None:
    refused = api.post(f"{address}/tool_results", body)
    assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (
        400,
        [field],
    )


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ([{"name": "a b"}], "tools[0].name"),
        ([{"name": "a\n"}], "tools[0].name"),
        ([{"name": "x" * 65}], "tools[0].name"),
        ([{"name": "a"}, {"name": "a"}], "tools[1].name"),
        ([{"name": "calculate"}], "tools[0].name"),
        ([{"name": "a", "parameters": {"type": "array"}}], "tools[0].parameters"),
        ([{"name": "a", "parameters": []}], "tools[0].parameters"),
        ([{"name": "a", "function": {}}], "tools[0].function"),
        ([{"name": f"tool{n}"} for n in range(129)], "tools"),
    ],
)
def test_tools_that_cannot_be_offered_are_refused_by_name(
    api: APIClient, address: str, session: Session, tools: Any, field: str
) -> None:
    refused = api.post(f"{address}/messages", {"content": "Hi", "tools": tools})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field)
    assert not session.messages.exists()


def test_a_model_that_calls_no_tools_is_offered_none(
    api: APIClient, address: str, session: Session
) -> None:
    assert session.model
    session.model.supports_tools = False
    session.model.save()
    refused = api.post(f"{address}/messages", {"content": "Hi", "tools": [WEATHER]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "tools")


def test_a_refusal_of_tools_is_forgotten_with_the_server_that_refused_them(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    assert session.model
    AiModel.objects.update(supports_tools=None)
    scripted.script(Reply(status=400, text="this model does not support tools"), Reply(text="Hi."))
    assert api.post(f"{address}/messages", {"content": "Hello"}).status_code == 201
    provider = session.model.provider
    provider.refresh_from_db()
    assert provider.list_learned()[session.model.name] == {"supports_tools": False}
    assert AiModel.objects.get().supports_tools is False
    provider.base_url = scripted.base_url.replace("127.0.0.1", "localhost")
    provider.save()
    assert AiModel.objects.get().supports_tools is None


def test_nothing_else_is_said_while_a_turn_waits(
    api: APIClient, address: str, session: Session, scripted: ScriptedModel
) -> None:
    turn = ask(api, address, scripted).json()["turn"]
    said = session.messages.first()
    assert said
    for refused in (
        api.post(f"{address}/messages", {"content": "And?"}),
        api.patch(f"/api/v1/messages/{said.pk}", {"content": "Other"}),
        api.post(f"/api/v1/messages/{said.pk}/regenerate", {}),
        api.post(f"{address}/messages/import", {"messages": [{"role": "user", "content": "x"}]}),
    ):
        assert (refused.status_code, refused.json()["turn"]) == (409, turn)
