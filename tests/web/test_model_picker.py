"""The list of models above the composer, and what it says before a smaller model answers."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel, Provider
from tests.support.browsing import PHONE
from tests.support.page_compactions import execute_run
from tests.web.test_axe import find_objections

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
@pytest.mark.browser
def test_the_keyboard_alone_finds_and_chooses_a_model_which_says_what_it_needs_first(
    page: Page, full: Session, model: AiModel
) -> None:
    AiModel.objects.create(provider=model.provider, name="tiny-one", context_window_size=4096)
    AiModel.objects.create(provider=model.provider, name="vast-one", context_window_size=200_000)
    page.goto(f"/c/{full.pk}/")
    button = page.locator(".picker-button")
    button.focus()
    page.keyboard.press("Enter")
    field = page.get_by_role("combobox", name="Search models")
    expect(field).to_be_focused()
    active = page.locator(".model[data-active] .model-name")
    expect(active).to_have_text("test-model")
    for key, name in (("End", "vast-one"), ("ArrowDown", "test-model"), ("ArrowUp", "vast-one")):
        page.keyboard.press(key)
        expect(active).to_have_text(name)
    page.keyboard.press("Home")
    expect(active).to_have_text("test-model")
    page.keyboard.type("scripted TINY")
    expect(page.locator(".model:visible")).to_have_count(1)
    expect(active).to_have_text("tiny-one")
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(page.locator(".picker-name")).to_have_text("test-model")
    page.keyboard.press("Enter")
    page.keyboard.type("nothing of this name")
    expect(page.get_by_text("No model matches.")).to_be_visible()
    field.fill("tiny")
    page.keyboard.press("Enter")
    expect(page.locator(".picker-name")).to_have_text("tiny-one")
    expect(button).to_be_focused()
    expect(page.locator(".switch-note")).to_have_text(
        re.compile(r"^tiny-one can read less at once: \d+ older messages become a summary first\.$")
    )


@pytest.mark.slow
@pytest.mark.browser
def test_two_hundred_models_fit_a_phone_and_axe_finds_nothing(
    page: Page, session: Session, model: AiModel
) -> None:
    providers = [
        Provider.objects.create(name=name, protocol="openai", base_url="http://127.0.0.1:9/v1")
        for name in ("anywhere", "nowhere")
    ]
    AiModel.objects.bulk_create(
        AiModel(
            provider=providers[number % 2],
            name=f"some/very-long-name-of-a-model-{number}-instruct-fp8-dynamic-preview",
            context_window_size=131_072,
            supports_tools=True,
            supports_images=True,
            input_price=1,
            output_price=2,
        )
        for number in range(200)
    )
    page.goto(f"/c/{session.pk}/")
    for look, size in (("light", PHONE), ("dark", {"width": 1280, "height": 860})):
        page.emulate_media(color_scheme=look)  # type: ignore[arg-type]
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.locator(".picker-button").click()
        expect(page.get_by_role("option", name="test-model")).to_be_in_viewport()
        box = page.locator("#models").bounding_box()
        assert box
        assert min(box["x"], box["y"]) >= 0
        assert box["x"] + box["width"] <= size["width"]
        assert find_objections(page) == []
        page.keyboard.press("Escape")


def test_the_sentence_counts_what_the_next_request_then_summarizes(
    client: Client, full: Session, user: User, model: AiModel
) -> None:
    small = AiModel.objects.create(
        provider=model.provider, name="small", context_window_size=4096, supports_tools=True
    )
    client.force_login(user)
    path = f"/c/{full.pk}/switch/?to=scripted/small"
    sentence = client.get(path, headers={"Accept-Language": "de"}).content.decode()
    assert sentence.startswith("small kann weniger auf einmal lesen: Zuerst werden ")
    Session.objects.filter(pk=full.pk).update(model=small)
    run = execute_run(engine.request_run(full.pk, trigger=CompactionRun.Trigger.ON_MODEL_CHANGE))
    assert f" {run.messages_compacted} " in sentence


def test_nothing_is_said_where_all_fits_or_nothing_runs_by_itself(
    client: Client, full: Session, user: User, model: AiModel
) -> None:
    client.force_login(user)
    for name, window in (("vast", 200_000), ("small", 4096), ("unknown", None)):
        AiModel.objects.create(provider=model.provider, name=name, context_window_size=window)
    Session.objects.filter(pk=full.pk).update(auto_compact=False)
    for name in ("vast", "small", "unknown"):
        assert client.get(f"/c/{full.pk}/switch/?to=scripted/{name}").status_code == 204
    assert client.get(f"/c/{full.pk}/switch/?to=scripted/none").status_code == 404
