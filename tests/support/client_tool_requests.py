"""REST requests that offer the client's tools and bring their results."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session, SessionEvent
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "The weather now.", "parameters": SCHEMA}


@pytest.fixture
def address(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}"


def asking(city: str, *, id: str) -> Any:
    return make_tool_call("weather", {"city": city}, id=id)


def ask(api: APIClient, address: str, scripted: ScriptedModel, *calls: Any) -> Any:
    """A question that the model answers with these calls."""
    scripted.script(Reply(tool_calls=calls or (asking("Rome", id="r"),)))
    return api.post(f"{address}/messages", {"content": "Weather?", "tools": [WEATHER]})


def bring(api: APIClient, address: str, *results: tuple[str, str], **headers: str) -> Any:
    body = {"results": [{"tool_call_id": id, "content": content} for id, content in results]}
    return api.post(f"{address}/tool_results", body, headers=headers)


def names_of(session: Session) -> list[str]:
    return list(
        SessionEvent.objects.filter(session=session).order_by("seq").values_list("name", flat=True)
    )
