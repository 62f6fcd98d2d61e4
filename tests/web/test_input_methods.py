"""Enter and Escape of an input method, and Enter on a phone, in a real browser."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from chatcore.models import Message, Session
from tests.support.browsing import store_exchange
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Safari ends the composition before the key that confirms it, the others after it.
SAFARI = {"keyCode": 229, "isComposing": False}
CHROME = {"keyCode": 229, "isComposing": True}


def press(field: Locator, key: str, **options: Any) -> None:
    """Send a key as the browsers do while an input method is at work."""
    field.evaluate(
        """(field, options) => {
            field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true }));
            const all = { bubbles: true, cancelable: true, ...options };
            field.dispatchEvent(new KeyboardEvent("keydown", all));
        }""",
        {"key": key, **options},
    )


@pytest.mark.parametrize("order", [SAFARI, CHROME], ids=["Safari", "Chrome"])
def test_a_confirmed_candidate_sends_and_chooses_nothing(
    page: Page, session: Session, order: dict[str, Any]
) -> None:
    store_exchange(session, "One", "Two")
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    for words in ("日本", "/export"):
        field.fill(words)
        press(field, "Enter", **order)
        expect(field).to_have_value(words)
    field.fill("")

    page.keyboard.press("Control+k")
    search = page.locator("#palette [role=combobox]")
    expect(page.locator("#found [role=option][aria-selected=true]")).to_be_visible()
    press(search, "Enter", **order)
    expect(page.locator("#palette")).to_be_visible()
    page.keyboard.press("Escape")

    page.locator(".picker-button").click()
    press(page.locator("model-picker input"), "Enter", **order)
    expect(page.locator("model-picker [popover]")).to_be_visible()
    page.keyboard.press("Escape")

    page.locator(".user [data-act=edit]").click()
    editor = page.locator(".editor textarea")
    editor.fill("Eins")
    press(editor, "Enter", ctrlKey=True, **order)
    press(editor, "Escape", **order)
    expect(editor).to_have_value("Eins")
    assert Message.objects.filter(session=session).count() == 2


def test_on_a_phone_enter_makes_a_line(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "One", "Two")
    page.context.new_cdp_session(page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    page.goto(f"/c/{session.pk}/")
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    field = page.get_by_label("Your message")
    field.fill("a")
    field.press("Enter")
    field.press("b")
    expect(field).to_have_value("a\nb")
    scripted.script(Reply(chunks=["Two lines"]))
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".answer .prose").last).to_have_text("Two lines")
