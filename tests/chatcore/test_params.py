"""What may be said to a language model beside the messages: checked by name, sent as it is."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from tests.support.scripted_model import ScriptedModel

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
