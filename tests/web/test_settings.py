"""The settings in a real browser: models, prices, API tokens, providers and their keys."""

import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken
from playwright.sync_api import Page, expect

from chatcore.contrib.budgets.models import Budget
from chatcore.contrib.local_model.weights import WEIGHTS_BY_SIZE
from chatcore.models import McpServer, Session
from models_registry.models import AiModel, Provider
from tests.support.browsing import send_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.web.test_axe import find_objections

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_model_is_picked_with_its_window_and_its_prices_in_sight(
    page: Page, session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    prices = {"input_price": Decimal("0.15"), "output_price": Decimal("0.6")}
    AiModel.objects.create(
        provider=model.provider, name="other", context_window_size=200_000, **prices
    )
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".picker-name")).to_have_text("test-model")
    page.get_by_role("button", name="Model: test-model").click()
    facts = page.get_by_role("option").locator(".model-facts")
    expect(facts).to_have_text(
        [re.compile(r"200k\s+\$0\.15 / \$0\.60"), re.compile("8.19k\\s+tools")]
    )
    page.get_by_role("option", name="other").click()
    expect(page.locator(".picker-name")).to_have_text("other")
    expect(page.locator(".context-total")).to_contain_text(" of 200,000 tokens")
    send_message(page, "Who are you?")
    expect(page.locator(".fact-model")).to_have_text("scripted/other")
    page.reload()
    expect(page.locator(".picker-name")).to_have_text("other")
    page.get_by_label("Your message").fill("/model test")
    expect(page.locator("#slash")).to_have_text("scripted/test-model 8.19k · tools")
    page.get_by_label("Your message").press("Enter")
    expect(page.locator(".picker-name")).to_have_text("test-model")
    assert scripted.requests[-1].json["model"] == "other"


@pytest.mark.slow
def test_the_usage_of_the_month_and_of_a_chat_are_shown_with_the_budget(
    page: Page, session: Session, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(input_price=2, output_price=10)
    Budget.objects.create(user=user, amount=5)
    scripted.script(Reply(text="A bird.", usage=(1_000_000, 200_000)))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "What is a heron?")
    expect(page.locator(".answer .prose")).to_have_text("A bird.")
    page.get_by_role("button", name="Settings of this chat").click()
    expect(page.get_by_text("This chat has cost $4.00 so far, for 1 call.")).to_be_visible()
    page.goto("/settings/")
    usage = page.locator("#usage")
    expect(usage).to_contain_text("This month: $4.00 for 1 call")
    expect(usage.locator(".rows li")).to_have_text(re.compile(r"scripted/test-model\s+\$4\.00"))
    expect(usage).to_contain_text(re.compile(r"Your budget\s+·\s+\$4\.00 of \$5\.00, new on"))
    expect(usage.locator("progress")).to_have_js_property("value", 80)


@pytest.mark.slow
def test_a_chat_whose_model_is_gone_says_so_and_takes_another(
    page: Page, session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    missing_model = AiModel.objects.create(
        provider=model.provider, name="gone", context_window_size=8192, is_active=False
    )
    Session.objects.filter(pk=session.pk).update(model=missing_model)
    scripted.script(Reply(text="Here I am."))
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".picker-name")).to_have_text("gone")
    send_message(page, "Are you there?")
    expect(page.locator("#snackbar")).to_contain_text("no usable language model")
    expect(page.get_by_label("Your message")).to_have_value("Are you there?")
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        page.get_by_role("button", name="Model: gone").click()
        page.get_by_role("option", name="test-model").click()
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".answer .prose")).to_have_text("Here I am.")


def test_a_token_is_made_copied_and_forgotten(page: Page, user: User) -> None:
    page.goto("/settings/")
    page.get_by_role("button", name="New token").click()
    secret = page.locator("#token-made code").inner_text()
    page.locator("#token-made").get_by_role("button", name="Copy").click()
    expect(page.locator("#token-made [data-copied]")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    answer = page.context.browser.new_context().request.get(  # type: ignore[union-attr]
        page.url.replace("/settings/", "/api/v1/sessions"),
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert answer.status == 200
    page.reload()
    expect(page.get_by_text(secret)).to_have_count(0)
    expect(page.locator("#tokens li")).to_have_count(1)
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#tokens").get_by_role("button").click()
    expect(page.locator("#tokens li")).to_have_count(0)
    assert not AuthToken.objects.exists()


def test_a_key_is_stored_and_tried_by_who_may(
    page: Page, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    page.goto("/settings/")
    expect(page.get_by_role("heading", name="API tokens")).to_be_visible()
    expect(page.get_by_role("heading", name="Providers")).to_have_count(0)
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    Provider.objects.create(name="elsewhere", api_key_env="ELSEWHERE_KEY", is_active=False)
    page.reload()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Providers").click()
    expect(page).to_have_url(re.compile("#providers$"))
    expect(page.locator(".provider-name", has_text="elsewhere")).to_be_hidden()
    page.get_by_text("1 service that waits for a key").click()
    expect(page.locator(".provider-name", has_text="elsewhere")).to_be_visible()
    provider = page.locator("#provider-rows .provider")
    provider.get_by_text("Enter a key").click()
    provider.get_by_label("Key of scripted").fill("sk-very-secret")
    provider.get_by_role("button", name="Save").click()
    expect(provider).to_contain_text("The key is stored encrypted. It is never shown again.")
    expect(provider).to_contain_text("key stored")
    provider.get_by_role("button", name="Test").click()
    expect(provider).to_contain_text("test-model answered in")
    assert scripted.requests[-1].headers["authorization"] == "Bearer sk-very-secret"
    page.reload()
    assert "sk-very-secret" not in page.content()


@pytest.mark.slow
def test_without_a_key_the_embedded_model_is_waited_for_and_then_answers(
    page: Page, user: User, settings: Any, tmp_path: Path, scripted: ScriptedModel
) -> None:
    settings.LOCAL_MODEL = settings.LOCAL_MODEL | {
        "SIZE": "0.5b",
        "PATH": "",
        "FOLDERS": [tmp_path],
        "START": "yes",
    }
    weights = WEIGHTS_BY_SIZE["0.5b"][0]
    page.goto("/new/")
    expect(page.get_by_role("heading", name="No language model yet")).to_be_visible()
    page.get_by_label("Your message").fill("Are you there?")
    partial = tmp_path / f"{weights.file_name}.partial"
    partial.touch()
    os.truncate(partial, weights.size // 4)
    expect(
        page.get_by_role("heading", name="A small model is being downloaded, to try things out")
    ).to_be_visible()
    expect(page.locator(".onboarding-progress")).to_contain_text("%")
    partial.rename(tmp_path / weights.file_name)
    expect(
        page.get_by_role("heading", name="A small model is starting, to try things out")
    ).to_be_visible()
    provider = Provider.objects.create(
        name="local", protocol=Provider.Protocol.OPENAI, base_url=scripted.base_url
    )
    AiModel.objects.create(
        provider=provider, name="test-model", context_window_size=8192, is_default=True
    )
    expect(page.get_by_text("What is on your mind?")).to_be_visible()
    expect(page.get_by_label("Your message")).to_have_value("Are you there?")
    page.get_by_label("Your message").press("Enter")
    expect(page.locator(".answer .prose")).to_have_text("Hello from the scripted model.")


def test_the_tools_are_asked_for_alone_with_names_in_words(
    page: Page, user: User, session: Session
) -> None:
    tool = {"name": "find_train_times", "description": "Finds trains.", "parameters": {}}
    McpServer.objects.create(owner=user, name="trains", url="https://t.example/mcp", tools=[tool])
    McpServer.objects.create(owner=user, name="silent", url="https://s.example/mcp")
    page.goto(f"/c/{session.pk}/")
    page.locator(".composer").get_by_role("button", name="Tools").click()
    dialog = page.get_by_role("dialog", name="Tools of this chat")
    expect(dialog.get_by_role("heading")).to_be_in_viewport()
    expect(dialog.get_by_label("System prompt")).to_be_hidden()
    expect(dialog.get_by_label("Read web pages")).to_be_checked()
    expect(dialog).to_contain_text("silent has offered no tools so far.")
    assert not find_objections(page)
    dialog.get_by_label("Find train times").check()
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#snackbar")).to_contain_text("Saved")
    session.refresh_from_db()
    assert "mcp__trains__find_train_times" in (session.tools or [])


def test_a_message_below_covers_no_heading_of_a_new_chat(page: Page, model: AiModel) -> None:
    page.goto("/new/")
    page.get_by_role("button", name="Settings of this chat").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator("#snackbar[data-shown]")).to_be_visible()
    bar = page.locator("#snackbar").bounding_box()
    heading = page.locator(".welcome-title").bounding_box()
    assert bar
    assert heading
    assert bar["y"] > heading["y"] + heading["height"]


def test_a_user_chooses_a_model_for_their_own_new_chats(page: Page, model: AiModel) -> None:
    other = AiModel.objects.create(provider=model.provider, name="other", context_window_size=9_000)
    page.goto("/settings/")
    page.get_by_label("Model of your new chats").select_option(str(other))
    expect(page.locator("#own-saved")).to_contain_text("Saved")
    page.goto("/new/")
    expect(page.locator(".picker-name")).to_have_text("other")
    page.goto("/settings/")
    expect(page.get_by_label("Model of your new chats")).to_have_value(str(other))
