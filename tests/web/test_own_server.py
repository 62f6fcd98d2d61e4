"""From a server of one's own to its first answer: an address, a tick, and no name typed."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from models_registry.models import AiModel, Provider
from tests.support.browsing import send_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_server_is_connected_by_its_address_and_answers(
    page: Page, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    User.objects.update(is_superuser=True)
    Provider.objects.all().delete()
    scripted.models = ["qwen3-8b", "text-embedder"]
    scripted.default = Reply(text="Here I am.")
    page.goto("/settings/#providers")
    page.get_by_text("Enter the address of a server").click()
    page.locator("#new-provider").get_by_label("Address").fill(
        scripted.base_url.removesuffix("/v1")
    )
    page.locator("#new-provider").get_by_role("button", name="Add").click()
    use = page.get_by_role("button", name="Use these models")
    expect(use).to_be_focused()
    expect(use).to_be_in_viewport()
    expect(page.get_by_label("qwen3-8b")).to_be_checked()
    page.reload()  # what was not chosen yet is offered again, and no key is asked for
    expect(page.get_by_label("qwen3-8b")).to_be_checked()
    page.get_by_role("button", name="Use these models").click()
    expect(page.get_by_text("1 model added.")).to_be_visible()
    page.get_by_role("link", name="Start to chat").click()
    send_message(page, "Hello")
    expect(page.locator(".answer .prose")).to_contain_text("Here I am.")
    assert scripted.requests[-1].json["model"] == "qwen3-8b"


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_key_is_pasted_its_provider_is_recognized_and_one_chats(
    page: Page, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    User.objects.update(is_superuser=True)
    Provider.objects.all().delete()
    Provider.objects.create(
        name="openrouter",
        protocol="openai",
        base_url=scripted.base_url,
        api_key_env="OPENROUTER_API_KEY",
    )
    scripted.models = ["one", "two"]
    page.goto("/settings/#providers")
    door = page.locator("#new-key")
    door.get_by_label("Paste a key").fill("of-nobody")
    door.get_by_role("button", name="Connect").click()
    choice = door.get_by_label("Which provider is this key of?")
    expect(choice).to_be_focused()
    door.get_by_label("Paste a key").fill("sk-or-v1-abc")
    door.get_by_role("button", name="Connect").click()
    start = page.get_by_role("link", name="Start to chat")
    expect(start).to_be_focused()
    expect(start).to_be_in_viewport()
    expect(page.locator(".provider-name", has_text="openrouter")).to_have_count(1)
    page.get_by_text("Add models of its list").click()
    expect(page.get_by_label("two")).to_be_checked()
    start.click()
    send_message(page, "Hello")
    expect(page.locator(".answer .prose")).to_contain_text("Hello from the scripted model.")
    assert scripted.requests[-1].headers["authorization"] == "Bearer sk-or-v1-abc"
