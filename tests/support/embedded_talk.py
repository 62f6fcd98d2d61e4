"""What a user of a project with Chatcore in it does; test_embedded_project.py starts it there."""

import io
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from knox.models import AuthToken  # noqa: E402
from rest_framework.test import APIClient  # noqa: E402

from chatcore.models import Message, Session  # noqa: E402
from models_registry.models import AiModel, Provider  # noqa: E402
from tests.support.scripted_model import ScriptedModel  # noqa: E402
from tests.support.scripted_wire import Reply  # noqa: E402

WORDS = "Which bird is grey? " + "a heron on the lake " * 400
CHAT = {"model": "scripted/bird", "messages": [{"role": "user", "content": "Hello!"}]}
RESPONSE = {"model": "scripted/bird", "input": "Hello!"}
PAGES = (
    "/",
    "/chats/",
    "/settings/",
    "/admin/",
    "/admin/people/person/",
    "/admin/chatcore/session/",
)


def ask(client: Any, method: str, path: str, body: Any = None) -> Any:
    """Return the answer, which must be a good one."""
    answer = getattr(client, method)(path, body, format="json")
    assert answer.status_code < 300, (path, answer.status_code, answer.content)
    return None if answer.streaming else answer.json()


def talk(client: Any) -> None:
    """Talk until there is something to compact, and read all that a user has."""
    session = ask(client, "post", "/api/v1/sessions", {})["id"]
    for _ in range(4):
        ask(client, "post", f"/api/v1/sessions/{session}/messages", {"content": WORDS})
    assert ask(client, "get", "/api/v1/search?q=heron")["results"]
    run = ask(client, "post", f"/api/v1/sessions/{session}/compact", {"wait": True})
    assert run["status"] == "applied", run
    ask(client, "post", f"/api/v1/compactions/{run['id']}/rewind")
    for path in ("sessions", "usage", "tokens", "export", "projects", "prompts"):
        ask(client, "get", f"/api/v1/{path}")
    ask(client, "patch", "/api/v1/preferences", {"time_zone": "Europe/Berlin"})
    ask(client, "post", "/v1/chat/completions", CHAT)
    ask(client, "post", "/v1/responses", RESPONSE)


def look_at_pages(person: Any) -> None:
    """Open pages of the product, of the admin and of the host."""
    person.is_staff = person.is_superuser = True
    person.save()
    browser = Client()
    browser.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    for path in PAGES:
        assert browser.get(path, follow=True).status_code == 200, path
    assert browser.get("/hello/").content == b"Hello from the host."


def main() -> None:
    settings.ALLOWED_HOSTS.append("testserver")
    person = get_user_model()._default_manager.create(username="ann")
    client = APIClient(headers={"Authorization": f"Bearer {AuthToken.objects.create(person)[1]}"})
    with ScriptedModel() as scripted:
        scripted.default = Reply(text="A grey bird is a heron; it stands on the lake.")
        provider = Provider.objects.create(
            name="scripted", protocol="openai", base_url=scripted.base_url
        )
        AiModel.objects.update(is_default=False)
        AiModel.objects.create(
            provider=provider, name="bird", context_window_size=16_384, is_default=True
        )
        talk(client)
    look_at_pages(person)
    assert set(Message.objects.values_list("owner_id", flat=True)) == {person.pk}
    verdict = io.StringIO()
    call_command("verify", stdout=verdict)
    assert "0 violations" in verdict.getvalue(), verdict.getvalue()
    call_command("erase_user", "ann", "--yes", stdout=io.StringIO())
    assert not Session.all_objects.exists()
    print("Nothing is left of ann.")


main()
