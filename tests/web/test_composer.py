"""What the field and the edit of a message do with texts: nothing that was typed is lost."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.contrib.prompts.models import Prompt
from chatcore.models import Session
from tests.support.browsing import store_exchange
from tests.support.events import append_events
from tests.web.test_axe import find_objections

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_fields_of_a_prompt_are_asked_for(page: Page, session: Session) -> None:
    text = "Translate {{text}} into {{ target language }}. Keep {{ 7 }}; {{text}}!"
    Prompt.objects.create(owner=session.owner, name="translate", text=text)
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.press_sequentially("/translate")
    expect(page.get_by_role("option", name="/translate")).to_be_visible()
    field.press("Enter")
    dialog = page.get_by_role("dialog", name="Fill in the prompt")
    expect(dialog.get_by_label("text")).to_be_focused()
    assert not find_objections(page)
    dialog.get_by_label("text").fill("Guten Tag")
    dialog.get_by_label("target language").fill("English")
    dialog.get_by_role("button", name="Insert").click()
    expect(field).to_have_value("Translate Guten Tag into English. Keep {{ 7 }}; Guten Tag!")


def test_a_pasted_text_is_a_chip_that_shows_it_and_can_be_changed(
    page: Page, session: Session
) -> None:
    page.goto(f"/c/{session.pk}/")
    page.get_by_label("Your message").focus()
    page.evaluate("text => navigator.clipboard.writeText(text)", "a word " * 700)
    page.keyboard.press("ControlOrMeta+v")
    expect(page.locator(".chip .file-name")).to_have_text("pasted.txt")
    page.get_by_role("button", name="Show and edit the text").click()
    dialog = page.get_by_role("dialog", name="Pasted text")
    expect(dialog.get_by_role("textbox")).to_have_value("a word " * 700)
    dialog.get_by_role("textbox").fill("only this")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".chip .file-size")).to_have_text("9 bytes")


def test_an_open_edit_is_kept_over_reloads_and_says_its_keys(page: Page, session: Session) -> None:
    store_exchange(session, "Which rivers?", "The Oder.")
    page.goto(f"/c/{session.pk}/")
    page.locator(".user").hover()
    page.locator(".user").get_by_role("button", name="Edit").first.click()
    editor = page.get_by_label("Edit the message")
    expect(page.locator(".editor-note")).to_contain_text("Enter: new line. Ctrl+Enter: done.")
    editor.fill("Which rivers of Poland?")
    append_events(session.pk, ("session.updated", {"fields": ["messages"]}))
    expect(editor).to_have_value("Which rivers of Poland?")
    page.reload()
    expect(editor).to_have_value("Which rivers of Poland?")
    editor.press("Escape")
    expect(editor).to_have_count(0)
    page.reload()
    expect(editor).to_have_count(0)
    page.locator(".user").hover()
    page.locator(".user").get_by_role("button", name="Edit").first.click()
    expect(editor).to_have_value("Which rivers of Poland?")


def test_selected_words_are_quoted_by_a_button_beside_them(page: Page, session: Session) -> None:
    store_exchange(session, "Which rivers?", "The Oder and the Vistula.")
    page.goto(f"/c/{session.pk}/")
    page.locator(".answer .prose p").dblclick(position={"x": 12, "y": 8})
    button = page.locator(".cite")
    expect(button).to_be_in_viewport()
    button.click()
    expect(page.get_by_label("Your message")).to_have_value("> The\n\n")
    expect(button).to_be_hidden()
