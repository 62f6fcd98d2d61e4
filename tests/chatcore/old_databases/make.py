"""Talk to an older Chatcore over REST, so that its database can be kept as a fixture.

Run it in a tree of the older commit, over a database and a data folder of its own; README.md tells
how. It prints what the API answered at the end, which the upgraded database must answer too.
"""

import importlib
import json
import sys
from typing import Any

import django

django.setup()

from django.apps import apps  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.db import models  # noqa: E402
from django.utils import timezone  # noqa: E402
from knox.crypto import hash_token  # noqa: E402
from knox.models import AuthToken  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from chatcore.models import Session  # noqa: E402
from chatcore.providers.base import ToolCall  # noqa: E402
from models_registry.models import AiModel, Provider  # noqa: E402

TOKEN = "an-old-token-of-alice-" + "0" * 42
SUMMARY = "Alice asked about plovers, albatrosses and the price of a boat: 1,250 euros for May."
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WEATHER = {
    "name": "weather",
    "description": "The weather now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def import_scripted_model() -> tuple[Any, Any]:
    """Return the scripted provider and its reply, which have had two addresses."""
    try:
        model = importlib.import_module("tests.support.scripted_model")
        wire = importlib.import_module("tests.support.scripted_wire")
    except ModuleNotFoundError:
        model = importlib.import_module("tests.scripted")
        wire = importlib.import_module("tests.scripted_wire")
    return model.ScriptedModel, wire.Reply


ScriptedModel, Reply = import_scripted_model()


class Alice:
    """What alice does with the API; each answer must be a good one."""

    def __init__(self, scripted: Any) -> None:
        self.scripted = scripted
        user = get_user_model()._default_manager.create_user("alice", password="alice's password")
        AuthToken.objects.create(user)
        AuthToken.objects.update(token_key=TOKEN[:15], digest=hash_token(TOKEN))
        self.client = APIClient(headers={"Authorization": f"Bearer {TOKEN}"})

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        call = getattr(self.client, method)
        answer = call(f"/api/v1/{path}", body, format="json", headers=headers)
        assert answer.status_code < 300, (path, answer.status_code, answer.content)
        return answer.json() if answer.content else None

    def read(self, path: str) -> Any:
        return self.ask("get", path)

    def create_session(self, **fields: Any) -> str:
        return str(self.ask("post", "sessions", fields)["id"])

    def say(self, session: str, content: str, *replies: Any, **fields: Any) -> Any:
        self.scripted.script(*replies)
        return self.ask("post", f"sessions/{session}/messages", {"content": content, **fields})

    def compact(self, session: str, **fields: Any) -> Any:
        run = self.ask("post", f"sessions/{session}/compact", {"wait": True, **fields})
        assert run["status"] == "applied", run
        return run


def answer_by_default(request: dict[str, Any]) -> Any:
    is_summary = "<transcript>" in str(request.get("messages", ""))
    return Reply(text=SUMMARY if is_summary else "Noted.")


def talk_about_birds(alice: Alice) -> str:
    """Everything that a conversation can go through, compaction and rewind included."""
    session = alice.create_session(
        title="Birds", system_prompt="You know birds.", tools=["calculate"], policy="oneclaw"
    )
    alice.ask("patch", f"sessions/{session}", {"pinned": True})
    alice.say(session, "Is a plover a wader? 🐦 Ökologie, 鳥, عصفور", Reply(text="Yes, it is."))
    call = ToolCall(id="sum", name="calculate", arguments='{"expression": "1000 + 250"}')
    alice.say(
        session,
        "What do 1000 and 250 euros make?",
        Reply(tool_calls=[call], reasoning="A sum."),
        Reply(text="1,250 euros."),
    )
    files = [
        {"name": "list.txt", "media_type": "text/plain", "data": "YW4gYWxiYXRyb3NzIQ=="},
        {"name": "dot.png", "media_type": "image/png", "data": PICTURE},
    ]
    first = alice.say(session, "Read my list.", Reply(text="An albatross!"), attachments=files)
    alice.scripted.script(Reply(text="One albatross, and a dot."))
    alice.ask("post", f"messages/{first['assistant_message']['id']}/regenerate", {})
    edited = alice.say(session, "Where do swordfish nest?", Reply(text="Nowhere."))
    alice.scripted.script(Reply(text="In burrows."))
    alice.ask(
        "patch",
        f"messages/{edited['user_message']['id']}",
        {"content": "Where do puffins nest?"},
    )
    alice.ask("post", f"messages/{edited['user_message']['id']}/restore", {})
    dropped = alice.say(session, "My PIN is 4711.", Reply(text="I should not know 4711."))
    for side in ("assistant_message", "user_message"):
        alice.ask("delete", f"messages/{dropped[side]['id']}")
    alice.ask("post", f"messages/{first['user_message']['id']}/pin", {})
    history = [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"Bird {number:02d}: " + "a heron on the lake. " * 90,
        }
        for number in range(14)
    ]
    alice.ask("post", f"sessions/{session}/messages/import", {"messages": history})
    alice.compact(session)
    alice.say(session, "And in May?", Reply(text="In May they leave."))
    alice.ask("post", f"sessions/{session}/messages/import", {"messages": history})
    second = alice.compact(session, instructions="Keep the prices.")
    alice.say(session, "And in June?", Reply(text="In June they are gone."))
    alice.ask("post", f"compactions/{second['id']}/rewind", {})
    alice.compact(session)
    last = alice.say(
        session, "The same once more?", Reply(text="Yes.", usage=(5000, 3)), stream=False
    )
    alice.ask("post", f"messages/{last['assistant_message']['id']}/fork", {})
    return session


def talk_with_own_tools(alice: Alice) -> str:
    """A turn that is over, with an output too long for its row, and one that waits for results."""
    session = alice.create_session(title="Weather")

    def ask_for(city: str, identifier: str) -> bool:
        call = ToolCall(id=identifier, name="weather", arguments=json.dumps({"city": city}))
        question = f"Weather in {city}?"
        answer = alice.say(session, question, Reply(tool_calls=[call]), tools=[WEATHER])
        return bool(answer["assistant_message"]["tool_calls"])

    ask_for("Rome", "rome")
    alice.scripted.script(Reply(text="It rains cats."))
    results = [{"tool_call_id": "rome", "content": "It rains. " * 4000}]
    alice.ask("post", f"sessions/{session}/tool_results", {"results": results})
    if not ask_for("Oslo", "oslo"):  # a summary took the reply
        assert ask_for("Oslo", "oslo")
    return session


def break_off(alice: Alice) -> str:
    """An answer whose provider left in the middle."""
    session = alice.create_session(title="Half")
    alice.scripted.script(Reply(chunks=[f"word{number} " for number in range(20)], cut_after=9))
    body = {"content": "Count to twenty."}
    answer = alice.client.post(f"/api/v1/sessions/{session}/messages", body, format="json")
    assert answer.status_code >= 500, answer.content
    alice.ask("patch", f"sessions/{session}", {"archived": True})
    return session


def keep_state(alice: Alice) -> str:
    """Structured state and memory, under the policy that has them."""
    session = alice.create_session(title="State", policy="lota")
    alice.say(session, "I like tea.", Reply(text="So do I."))
    alice.scripted.default = answer_by_default
    history = [
        {"role": "assistant" if number % 2 else "user", "content": "tea and cake " * 160}
        for number in range(10)
    ]
    alice.ask("post", f"sessions/{session}/messages/import", {"messages": history})
    delta = {"decisions": {"add": ["Buy green tea"]}, "memory": ["Alice likes tea."]}
    alice.scripted.script(Reply(text=f"{SUMMARY}\n\n```json\n{json.dumps(delta)}\n```"))
    alice.compact(session)
    return session


def read_everything(alice: Alice) -> dict[str, Any]:
    """Return the answer of each address, by its path."""
    sessions = [str(pk) for pk in Session.objects.values_list("pk", flat=True)]
    paths = ["sessions?limit=100&archived=true", "webhooks", "search?q=albatross", "search?q=heron"]
    paths += [
        f"sessions/{session}{part}"
        for session in sessions
        for part in ("", "/messages?limit=100&order=asc", "/compactions", "/export", "/state")
    ]
    return {path: alice.read(path) for path in paths}


def fill_empty_tables() -> None:
    """Store a row in each table that the talks have left empty.

    Rows that name what is stored elsewhere are left out: `verify` would miss that.
    """
    for model in apps.get_models():
        is_ours = model.__module__.startswith(("chatcore.", "compaction.", "models_registry."))
        if is_ours and model.__name__ not in ("OutputFile", "ProjectFile"):
            find_or_store_row(model)


def find_or_store_row(model: Any) -> Any:
    """Return the first row of a model, or a new one with a value in each column that needs one."""
    row = model._base_manager.first()
    if row is not None:
        return row
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if field.name == "is_active":
            values[field.name] = False
        elif field.is_relation and not field.null:
            values[field.name] = find_or_store_row(field.related_model)
        elif field.has_default() or field.null or field.blank:
            continue
        elif field.choices:
            values[field.name] = field.choices[0][0]
        elif isinstance(field, models.DateTimeField):
            values[field.name] = timezone.now()
        elif isinstance(field, models.DateField):
            values[field.name] = timezone.now().date()
        elif isinstance(field, models.BinaryField):
            values[field.name] = b"1"
        else:
            is_number = isinstance(field, models.IntegerField | models.DecimalField)
            values[field.name] = 1 if is_number else "one"
    return model._base_manager.create(**values)


def main() -> None:
    settings.ALLOWED_HOSTS.append("testserver")
    with ScriptedModel() as scripted:
        scripted.default = answer_by_default
        provider = Provider.objects.create(
            name="scripted", protocol="openai", base_url=scripted.base_url, timeout_seconds=20
        )
        provider.api_key = "the key of the old provider"
        provider.save()
        AiModel.objects.update(is_default=False)
        AiModel.objects.create(
            provider=provider,
            name="test-model",
            context_window_size=8192,
            supports_tools=True,
            supports_images=True,
            is_default=True,
        )
        alice = Alice(scripted)
        hook = {"url": "https://example.com/birds", "events": ["turn.completed"]}
        alice.ask("post", "webhooks", hook)
        names = {
            "birds": talk_about_birds(alice),
            "weather": talk_with_own_tools(alice),
            "half": break_off(alice),
            "state": keep_state(alice),
        }
        fill_empty_tables()
        answers = read_everything(alice)
    json.dump({"sessions": names, "answers": answers}, sys.stdout, ensure_ascii=False, indent=1)


main()
