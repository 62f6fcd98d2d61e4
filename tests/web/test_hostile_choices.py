"""Hostile texts stay texts in the model picker, written titles, tool servers, temporary chats."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from chatcore.base.truncation import clean_text
from chatcore.models import McpServer, Session
from models_registry.models import AiModel, Provider
from tests.support.browsing import send_message
from tests.support.hostile import SAMPLE_TEXTS
from tests.support.hostile_pages import (
    check_page_is_sound,
    guarded_page,
    read_texts,
    show_text,
    store_texts,
    widen_window,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["guarded_page", "widen_window"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.hostile,
    pytest.mark.django_db(transaction=True),
]
MARKUP = "<img src=x onerror=ran=1>"


def expect_words_only(page: Page) -> None:
    wrong = page.evaluate("audit(document)")
    assert not wrong, wrong[:20]


def test_names_of_models_are_words_in_every_list_of_them(
    guarded_page: Page, session: Session, model: AiModel
) -> None:
    providers = Provider.objects.bulk_create(
        # Without the slash, behind which the model's name begins. A form takes slugs alone.
        Provider(name=f"{number} {clean_text(text)}".replace("/", "|")[:64], protocol="openai")
        for number, text in enumerate(SAMPLE_TEXTS)
    )
    rows = [
        AiModel(provider=provider, name=clean_text(text)[:128] or "x", context_window_size=8192)
        for provider, text in zip(providers, SAMPLE_TEXTS, strict=True)
    ]
    AiModel.objects.bulk_create(rows)
    guarded_page.goto(f"/c/{session.pk}/")
    guarded_page.locator(".picker-button").click()
    names = guarded_page.locator(".model-name")
    expect(names).to_have_count(len(rows) + 1)
    assert set(read_texts(names)) == {"test-model", *(show_text(row.name) for row in rows)}
    expect_words_only(guarded_page)
    field = guarded_page.get_by_role("combobox", name="Search models")
    for text in (MARKUP, "</title>", "onerror", "{{ %}", "javascript:ran=1"):
        field.fill(text)
        expect(field).to_have_value(text)
        expect_words_only(guarded_page)
    field.fill("img onerror")
    chosen = guarded_page.locator(".model[data-active]")
    expect(chosen).to_contain_text("onerror")
    value = chosen.get_attribute("data-name") or ""
    with guarded_page.expect_response("**/switch/**"):
        guarded_page.keyboard.press("Enter")
    assert guarded_page.locator(".picker-name").text_content() == value
    check_page_is_sound(guarded_page)


@pytest.mark.parametrize("title", [MARKUP, "</title><script>ran=1</script>", "{{ 1 }}$&%(title)s"])
def test_a_title_that_a_model_wrote_is_words(
    guarded_page: Page, model: AiModel, scripted: ScriptedModel, settings: Any, title: str
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"MODEL_TITLES": True}
    scripted.script(Reply(text="Grey herons."), Reply(text=title))
    guarded_page.goto("/new/")
    send_message(guarded_page, "Which herons live at the Lake of Constance in winter, and where?")
    expect(guarded_page.locator(".chat-row [aria-current=page]")).to_have_text(title)
    expect(guarded_page.locator(".chat-title")).to_have_text(title)
    expect(guarded_page).to_have_title(f"{title} · Chatcore")
    check_page_is_sound(guarded_page)


def test_what_a_tool_server_says_of_itself_is_words(guarded_page: Page, user: User) -> None:
    tools = [
        {"name": clean_text(text)[:128], "description": clean_text(text), "parameters": {}}
        for text in SAMPLE_TEXTS
    ]
    McpServer.objects.create(
        owner=user,
        name="files",
        url=f'https://a.invalid/"{MARKUP}',
        header_names=[MARKUP],
        tools=tools,
        error=MARKUP,
    )
    guarded_page.goto("/settings/")
    section = guarded_page.locator("#tool-servers")
    expect(section).to_contain_text(MARKUP)
    for details in section.locator("details").all():
        details.evaluate("(each) => { each.open = true; }")
    expect(section.locator("details li, details dt").first).to_be_visible()
    check_page_is_sound(guarded_page)


def test_a_temporary_chat_is_words_and_stays_so_when_it_is_kept(
    guarded_page: Page, session: Session
) -> None:
    store_texts(session, SAMPLE_TEXTS[:40])
    Session.objects.filter(pk=session.pk).update(title=MARKUP, temporary=True)
    guarded_page.goto(f"/c/{session.pk}/")
    expect(guarded_page.locator(".chat-title")).to_have_text(MARKUP)
    check_page_is_sound(guarded_page)
    guarded_page.get_by_role("button", name="Keep this chat").click()
    expect(guarded_page.locator(".chat-row > a")).to_have_text([MARKUP])
    check_page_is_sound(guarded_page)
