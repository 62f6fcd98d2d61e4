"""Reading without a mouse, in another direction, at another size."""

from functools import partial

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import send_message, store_exchange, wait_until
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_code_in_a_text_from_right_to_left_stays_left_to_right(
    page: Page, session: Session
) -> None:
    store_exchange(session, "مرحبا", 'هذا `print("مرحبا")` مثال:\n\n```python\nprint("مرحبا")\n```')
    page.goto(f"/c/{session.pk}/")
    for code in (page.locator(".answer .code pre"), page.locator(".answer p code")):
        expect(code).to_have_css("direction", "ltr")
    expect(page.locator(".answer .code pre")).to_have_css("text-align", "left")


def test_the_list_of_chats_is_one_stop_and_the_arrows_move_in_it(page: Page, user: User) -> None:
    for title in ("Bread", "Lisbon", "Taxes"):
        Session.objects.create(owner=user, title=title)
    page.goto("/new/")
    expect(page.locator(".chat-row [tabindex='0']")).to_have_count(2)
    page.get_by_role("link", name="Taxes").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Lisbon")).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="Bread")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Actions for Bread")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Archived")).to_be_focused()


def test_the_end_of_an_answer_is_announced(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Done."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Well?")
    expect(page.locator(".answered[role=status]")).to_have_text("The answer is complete.")


def test_at_four_hundred_percent_the_composer_scrolls_away(page: Page, session: Session) -> None:
    store_exchange(session, *["Something that was said. " * 20] * 4)
    page.set_viewport_size({"width": 360, "height": 225})
    page.goto(f"/c/{session.pk}/")
    chat = page.locator("chat-stream")
    wait_until(page, partial(chat.evaluate, "chat => chat.scrollHeight > chat.clientHeight"))
    assert page.locator(".scroll").evaluate("scroll => scroll.clientHeight") > 150


def test_a_message_about_a_file_does_not_cover_the_file(page: Page, session: Session) -> None:
    page.goto(f"/c/{session.pk}/")
    page.locator(".composer input[type=file]").set_input_files(
        {"name": "game.exe", "mimeType": "application/x", "buffer": bytes(range(256)) * 8}
    )
    expect(page.locator(".chip[data-failed]")).to_be_visible()
    bar, dock = page.locator("#snackbar").bounding_box(), page.locator(".dock").bounding_box()
    assert bar
    assert dock
    is_above = bar["y"] + bar["height"] <= dock["y"]
    assert is_above or bar["y"] >= dock["y"] + dock["height"]
