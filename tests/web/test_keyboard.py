"""The keyboard in a real browser: the shortcuts and the Escape key."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import PausedChunks, send_message, store_exchange
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_escape_stops_and_what_was_said_is_kept(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["Once upon ", "a time "], cut_after=2, hang=True))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "A story")
    expect(page.locator(".answer .prose")).to_contain_text("a time")
    page.keyboard.press("Escape")
    expect(page.locator(".answer")).to_have_attribute("data-status", "interrupted")
    expect(page.get_by_text("Stopped here. The text so far is kept.")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()


@pytest.mark.slow
def test_a_key_is_heard_though_a_dialog_just_closed_still_has_the_focus(
    page: Page, session: Session
) -> None:
    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    page.evaluate("""() => {
        const help = document.getElementById("help");
        help.showModal();
        const inside = document.activeElement;
        help.close();
        const options = { key: "/", bubbles: true, cancelable: true };
        inside.dispatchEvent(new KeyboardEvent("keydown", options));
    }""")
    expect(page.get_by_label("Your message")).to_be_focused()


@pytest.mark.slow
def test_the_keyboard_reaches_composer_help_and_a_new_chat(page: Page, session: Session) -> None:
    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_label("Your message")).to_be_focused()
    expect(page.get_by_role("dialog", name="Help")).to_be_hidden()
    page.keyboard.type("a")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("b")
    expect(page.get_by_label("Your message")).to_have_value("a\nb")
    page.keyboard.press("Control+Shift+O")
    expect(page).to_have_url(re.compile(r"/new/$"))


@pytest.mark.slow
def test_escape_in_a_title_leaves_the_answer_alone(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(title="Old name")
    chunks = PausedChunks("Once upon ", "a time ", "it was told.")
    scripted.script(Reply(chunks=chunks))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "A story")
    expect(page.locator(".answer .prose")).to_contain_text("a time")
    page.get_by_role("button", name="Actions for Old name").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title of the chat").press("Escape")
    expect(page.get_by_role("link", name="Old name")).to_be_visible()
    chunks.resume.set()
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".answer .prose")).to_have_text("Once upon a time it was told.")


def test_the_keyboard_reaches_all_that_can_be_done_with_a_message(
    page: Page, session: Session
) -> None:
    store_exchange(session, "One", "Two", "Three", "Four")
    page.goto(f"/c/{session.pk}/")
    first = page.locator(".user").first
    edit = first.get_by_role("button", name="Edit this message")
    first.get_by_role("button", name="Copy the message").focus()
    page.keyboard.press("Tab")
    expect(edit).to_be_focused()
    expect(first.locator(".acts")).to_have_css("opacity", "1")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    menu = page.locator("#message-menu")
    expect(menu.get_by_role("button", name="Copy")).to_be_focused()
    for name in (
        "Edit",
        "Answer again",
        "Quote",
        "Pin",
        "Fork from here",
        "Too little to summarize",
        "Delete…",
        "Copy",
    ):
        page.keyboard.press("ArrowDown")
        expect(menu.get_by_role("button", name=name)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("button", name="Delete…")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(first.get_by_role("button", name="More actions")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Your message")).to_have_value("> One\n\n")
    expect(page.get_by_label("Your message")).to_be_focused()


def test_the_keyboard_reaches_the_acts_of_a_chat_in_the_list(page: Page, session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(title="Old name")
    page.goto("/new/")
    page.get_by_role("link", name="Old name").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Rename")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Title of the chat")).to_be_focused()
    page.keyboard.type("New name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="New name")).to_be_visible()


@pytest.mark.slow
def test_the_palette_runs_commands_and_dates_its_rows(page: Page, session: Session) -> None:
    store_exchange(session, "One", "Two")
    Session.objects.filter(pk=session.pk).update(title="Bread")
    page.goto(f"/c/{session.pk}/")
    page.keyboard.press("Control+k")
    expect(page.locator(".found local-time").first).to_have_text(re.compile(r"\d"))
    page.keyboard.type("see what")
    expect(page.locator(".found")).to_have_text(["See what the model sees"])
    page.keyboard.press("Enter")
    expect(page.locator("#palette")).to_be_hidden()
    expect(page.get_by_role("dialog", name="What the model sees now")).to_be_visible()
    page.goto("/settings/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", name="New chat")).to_be_visible()
    expect(page.get_by_role("option", name="Summarize now")).to_have_count(0)


def test_escape_closes_the_panel_of_the_meter_and_returns_to_its_button(
    page: Page, session: Session
) -> None:
    store_exchange(session, "Hello", "Hello to you")
    page.goto(f"/c/{session.pk}/")
    button, panel = page.locator(".meter-button"), page.locator("#context")
    expect(button).to_be_visible()
    page.get_by_label("Your message").press("Shift+Tab")  # by keyboard from now on
    button.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(panel.locator(":focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(button).to_be_focused()
