"""`/v1/conversations` by the official client: sessions with items to add, list and remove."""

import base64
from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.models import Session
from tests.conftest import Live
from tests.support.open_responses import MODEL, WEATHER
from tests.support.openai_client import client, create_client, list_completions
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


def list_texts(client: OpenAI, conversation_id: str, **query: Any) -> list[str]:
    page: Any = client.conversations.items.list(conversation_id, **query)
    return [item.content[0].text for item in page.data]


def test_a_conversation_is_created_changed_and_deleted(client: OpenAI) -> None:
    conversation: Any = client.conversations.create(metadata={"topic": "trips"})
    assert client.conversations.retrieve(conversation.id).metadata == {"topic": "trips"}
    client.conversations.update(conversation.id, metadata={"topic": "food"})
    assert client.conversations.retrieve(conversation.id).metadata == {"topic": "food"}
    assert client.conversations.delete(conversation.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(conversation.id)
    assert not Session.objects.exists()


def test_responses_are_added_to_their_conversation(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="a1"), Reply(text="a2"))
    items: Any = [{"role": "user", "content": "q0"}, {"role": "assistant", "content": "a0"}]
    conversation: Any = client.conversations.create(items=items)
    for text in ("q1", "q2"):
        response = client.responses.create(model=MODEL, input=text, conversation=conversation.id)
        assert response.conversation
        assert response.conversation.id == conversation.id
    sent = [message["content"] for message in list_completions(scripted)[-1].json["messages"]]
    assert sent == ["q0", "a0", "q1", "a1", "q2"]
    assert list_texts(client, conversation.id, order="asc") == [*sent, "a2"]


def test_items_are_listed_in_pages(client: OpenAI) -> None:
    conversation: Any = client.conversations.create()
    client.conversations.items.create(
        conversation.id, items=[{"role": "user", "content": f"text {n}"} for n in range(5)]
    )
    pages: Any = client.conversations.items.list(conversation.id, limit=2)
    assert pages.has_next_page()
    assert [item.content[0].text for item in pages] == [f"text {n}" for n in range(4, -1, -1)]


def test_an_item_is_read_and_removed(client: OpenAI) -> None:
    conversation: Any = client.conversations.create(
        items=[{"role": "user", "content": "secret"}, {"role": "user", "content": "harmless"}]
    )
    first: Any = client.conversations.items.list(conversation.id).data[1]
    item: Any = client.conversations.items.retrieve(first.id, conversation_id=conversation.id)
    assert item.content[0].text == "secret"
    client.conversations.items.delete(first.id, conversation_id=conversation.id)
    assert list_texts(client, conversation.id) == ["harmless"]
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(first.id, conversation_id=conversation.id)


def test_outputs_of_tools_continue_a_conversation(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("weather", id="call_1")]), Reply(text="Sunny.")
    )
    conversation: Any = client.conversations.create()
    place: Any = {"model": MODEL, "conversation": conversation.id, "tools": [WEATHER]}
    client.responses.create(input="Weather?", **place)
    output: Any = {"type": "function_call_output", "call_id": "call_1", "output": "21"}
    assert client.responses.create(input=[output], **place).output_text == "Sunny."
    page: Any = client.conversations.items.list(conversation.id, order="asc")
    types = [item.type for item in page.data]
    assert types == ["message", "function_call", "function_call_output", "message"]


def test_images_and_files_are_kept(client: OpenAI, scripted: ScriptedModel) -> None:
    image = base64.b64encode(build_png(4, 4)).decode()
    text = base64.b64encode(b"The code word is cobalt.").decode()
    content: Any = [
        {"type": "input_text", "text": "Look."},
        {"type": "input_image", "image_url": f"data:image/png;base64,{image}"},
        {"type": "input_file", "filename": "note.txt", "file_data": text},
    ]
    conversation: Any = client.conversations.create()
    client.responses.create(
        model=MODEL,
        input=[{"role": "user", "content": content}],
        conversation={"id": conversation.id},
    )
    assert "cobalt" in str(list_completions(scripted)[-1].json["messages"])
    question: Any = client.conversations.items.list(conversation.id, order="asc").data[0]
    assert [part.type for part in question.content] == ["input_text", "input_image", "input_file"]


def test_another_user_finds_no_conversation(client: OpenAI, live: Live) -> None:
    conversation: Any = client.conversations.create(items=[{"role": "user", "content": "q"}])
    item: Any = client.conversations.items.list(conversation.id).data[0]
    other_client = create_client(live.url, User.objects.create_user("bob"))
    for attempt in (
        lambda: other_client.conversations.retrieve(conversation.id),
        lambda: other_client.conversations.delete(conversation.id),
        lambda: other_client.conversations.items.list(conversation.id),
        lambda: other_client.conversations.items.delete(item.id, conversation_id=conversation.id),
        lambda: other_client.responses.create(
            model=MODEL, input="Hi", conversation=conversation.id
        ),
    ):
        with pytest.raises(openai.NotFoundError):
            attempt()
    assert list_texts(client, conversation.id) == ["q"]
