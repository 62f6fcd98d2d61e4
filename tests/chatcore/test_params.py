"""What may be said to a language model beside the messages: known by name, sent as it is."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from models_registry.models import AiModel, Provider
from tests.support.scripted_model import ScriptedModel
from tests.support.slow_params import mark_others_slow

# What gateways understand: another bill, another model, another address, another's data.
GATEWAY_PARAMS = {
    "api_base": "http://attacker.example",
    "api_key": "sk-other",
    "base_url": "http://attacker.example",
    "service_tier": "priority",
    "models": ["dearer"],
    "store": True,
    "user": "somebody",
    "web_search_options": {},
    "mcp_servers": [{"url": "http://attacker.example"}],
    "function_call": "auto",
    "extra_body": {"model": "dearer"},
    "extra_headers": {"x": "y"},
}

pytestmark = pytest.mark.django_db(transaction=True)


def set_params(api: APIClient, session: Session, params: Any) -> Any:
    return api.patch(f"/api/v1/sessions/{session.pk}", {"params": params})


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"temperature": "hot"}, "params.temperature"),
        ({"temperature": 2.1}, "params.temperature"),
        ({"temperature": True}, "params.temperature"),
        ({"top_p": -0.1}, "params.top_p"),
        ({"max_tokens": 0}, "params.max_tokens"),
        ({"max_tokens": 1.5}, "params.max_tokens"),
        ({"seed": "x"}, "params.seed"),
        ({"n": 2}, "params.n"),
        ({"stop": ""}, "params.stop"),
        ({"stop": ["a", 5]}, "params.stop"),
        ({"stop": ["a"] * 17}, "params.stop"),
        ({"frequency_penalty": 3}, "params.frequency_penalty"),
        ({"messages": []}, "params.messages"),
        ({"stream": False}, "params.stream"),
        ({"tool_choice": 5}, "params.tool_choice"),
        ({"response_format": "json"}, "params.response_format"),
        ({"reasoning_effort": ["low"]}, "params.reasoning_effort"),
        ({"logit_bias": []}, "params.logit_bias"),
        ({"logit_bias": {"50256": 101}}, "params.logit_bias"),
        ({"logit_bias": {"word": 1}}, "params.logit_bias"),
        ({"logit_bias": {"50256": {"a": 1}}}, "params.logit_bias"),
        ({"logit_bias": {str(number): 1 for number in range(1_025)}}, "params.logit_bias"),
        ([], "params"),
    ],
)
def test_what_no_provider_takes_is_refused_by_name(
    api: APIClient, session: Session, params: Any, field: str
) -> None:
    refused = set_params(api, session, params)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field)


def test_what_is_set_is_sent(api: APIClient, session: Session, scripted: ScriptedModel) -> None:
    params = {
        "temperature": 0,
        "top_p": 1,
        "max_tokens": 50,
        "seed": 7,
        "stop": ["END"],
        "presence_penalty": -0.5,
        "reasoning_effort": "low",
    }
    assert set_params(api, session, params).json()["params"] == params
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    sent = scripted.requests[-1].json
    assert {name: sent[name] for name in params} == params


def test_a_null_takes_a_parameter_away(api: APIClient, session: Session) -> None:
    set_params(api, session, {"temperature": 1})
    assert set_params(api, session, {"temperature": None, "seed": 1}).json()["params"] == {
        "seed": 1
    }


@pytest.mark.parametrize("name", mark_others_slow(GATEWAY_PARAMS, first=4))
def test_what_the_protocol_does_not_list_is_refused_by_name(
    api: APIClient, session: Session, name: str
) -> None:
    params = {name: GATEWAY_PARAMS[name], "temperature": 1}
    exported = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    exported["session"]["params"] = params
    answers = {
        f"params.{name}": [
            set_params(api, session, params),
            api.post("/api/v1/sessions", {"params": params}),
        ],
        f"session.params.{name}": [api.post("/api/v1/sessions/import", exported)],
    }
    for field, refusals in answers.items():
        for refused in refusals:
            errors = refused.json()["errors"]
            assert (refused.status_code, [error["field"] for error in errors]) == (400, [field])


def test_what_an_earlier_version_stored_is_neither_sent_nor_exported(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(params=GATEWAY_PARAMS | {"seed": 7})
    shown = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    assert shown["params"] == {"seed": 7}
    assert scripted.requests[-1].json["seed"] == 7
    assert scripted.requests[-1].json.keys().isdisjoint(GATEWAY_PARAMS)
    assert "x" not in scripted.requests[-1].headers
    exported = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    assert exported["session"]["params"] == {"seed": 7}
    assert api.post("/api/v1/sessions/import", exported).status_code == 201


def test_an_operator_can_allow_more_for_a_provider(
    api: APIClient, session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    Provider.objects.update(options={"params": ["repeat_penalty", "model", 5]})
    assert set_params(api, session, {"repeat_penalty": 1.1}).status_code == 200
    assert set_params(api, session, {"model": "dearer"}).status_code == 400
    api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    assert scripted.requests[-1].json["repeat_penalty"] == 1.1
    exported = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    assert api.post("/api/v1/sessions/import", exported).json()["params"] == {"repeat_penalty": 1.1}


def test_an_option_of_another_shape_allows_nothing(api: APIClient, session: Session) -> None:
    for option in ("store", {"store": True}, 5, None):
        Provider.objects.update(options={"params": option})
        assert set_params(api, session, {"store": True}).status_code == 400


def test_each_protocol_has_a_list_of_its_own(
    api: APIClient, session: Session, model: AiModel
) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert set_params(api, session, {"seed": 1}).status_code == 200
    assert set_params(api, session, {"thinking": thinking}).status_code == 400
    Provider.objects.update(protocol=Provider.Protocol.ANTHROPIC)
    assert set_params(api, session, {"seed": 1}).status_code == 400
    assert set_params(api, session, {"thinking": thinking}).status_code == 200


def test_params_of_a_model_that_is_not_here_are_imported_but_not_sent(
    api: APIClient, session: Session, model: AiModel
) -> None:
    exported = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    exported["session"] |= {"model": "elsewhere/claude", "params": {"thinking": {}, "seed": 1}}
    made = api.post("/api/v1/sessions/import", exported).json()
    shown = api.get(f"/api/v1/sessions/{made['id']}/context/preview").json()
    assert (made["params"], shown["params"]) == ({"thinking": {}, "seed": 1}, {"seed": 1})


def test_the_api_of_openai_sends_the_same_list(
    api: APIClient, model: AiModel, scripted: ScriptedModel
) -> None:
    body = {
        "model": "scripted/test-model",
        "messages": [{"role": "user", "content": "Hi"}],
        "seed": 7,
        "repeat_penalty": 1.1,
    }
    assert api.post("/v1/chat/completions", body).status_code == 400
    Provider.objects.update(options={"params": ["repeat_penalty"]})
    assert api.post("/v1/chat/completions", body).status_code == 200
    sent = scripted.requests[-1].json
    assert (sent["seed"], sent["repeat_penalty"]) == (7, 1.1)
    for name, value in GATEWAY_PARAMS.items():
        scripted.requests.clear()
        answer = api.post("/v1/chat/completions", body | {name: value})
        assert answer.status_code in (200, 400), name
        assert not any(name in request.json for request in scripted.requests), name
