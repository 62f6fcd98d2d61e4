"""REST requests that regenerate, edit and restore messages, and read what is shown and sent."""

from typing import Any

from rest_framework.test import APIClient

from chatcore.models import Message, Session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply


def say(
    api: APIClient, session: Session, scripted: ScriptedModel, *exchanges: tuple[str, str]
) -> list[Message]:
    """Send the questions with their scripted answers, and return all messages in order."""
    for question, answer in exchanges:
        scripted.script(Reply(text=answer))
        assert (
            api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": question}).status_code
            == 201
        )
    return list(session.messages.order_by("seq"))


def regenerate(api: APIClient, message: Message, body: Any = None) -> Any:
    return api.post(f"/api/v1/messages/{message.pk}/regenerate", body or {})


def edit(api: APIClient, message: Message, content: str, **headers: str) -> Any:
    return api.patch(f"/api/v1/messages/{message.pk}", {"content": content}, headers=headers)


def restore(api: APIClient, message: Message) -> Any:
    return api.post(f"/api/v1/messages/{message.pk}/restore")


def list_messages(api: APIClient, session: Session, query: str = "") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = api.get(f"/api/v1/sessions/{session.pk}/messages{query}").json()[
        "results"
    ]
    return rows


def list_texts(api: APIClient, session: Session) -> list[str]:
    return [row["content"] for row in list_messages(api, session)]


def read_sent_texts(scripted: ScriptedModel) -> list[str]:
    """Return the texts of the newest request, without the system text."""
    return [
        message["content"]
        for message in scripted.requests[-1].json["messages"]
        if message["role"] != "system"
    ]
