"""How the pages look, in a real browser: on a phone, in light and in dark."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.browsing import PHONE, browser, fill, page

__all__ = ["browser", "page"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_phone_has_a_drawer_and_no_sideways_scroll(page: Page, session: Session) -> None:
    code = "```\n" + "a very long line of code " * 20 + "\n```"
    table = "| " + "wide and wider | " * 9 + "\n|" + "---|" * 9
    fill(session, "One", f"{code}\n\n{table}")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".sidebar")).to_be_hidden()
    page.get_by_role("button", name="Chats").click()
    expect(page.locator(".sidebar")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".sidebar")).to_be_hidden()
    expect(page.locator(".meter-used")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    assert page.evaluate("[document.documentElement, document.querySelector('.scroll')].every(e => e.scrollWidth <= e.clientWidth)")


def test_light_and_dark_follow_the_system_until_one_is_chosen(page: Page, session: Session) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/new/")
    expect(page.locator("body")).to_have_css("background-color", "rgb(25, 25, 24)")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("body")).to_have_css("background-color", "rgb(253, 253, 252)")
    page.goto("/settings/")
    expect(page.get_by_label("Light", exact=True)).to_be_checked()
    page.get_by_text("As the system").click()
    expect(page.locator("body")).to_have_css("background-color", "rgb(25, 25, 24)")
