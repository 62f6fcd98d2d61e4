"""What the page shows of the context: the meter, the card at the boundary, the panel and the slash commands."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.test_web_chat import browser, fill, page

__all__ = ["browser", "page"]  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def fill_long(session: Session, *, exchanges: int = 6, words: int = 120) -> None:
    """Enough to be worth a summary."""
    for number in range(exchanges):
        fill(session, f"Question {number} " + "about everything " * words, f"Answer {number}")


def test_the_meter_tells_what_fills_the_window_and_counts_the_draft(page: Page, session: Session) -> None:
    fill_long(session, exchanges=7, words=250)
    page.goto(f"/c/{session.pk}/")
    meter = page.locator(".meter-used")
    expect(meter).to_have_text(re.compile(r"^[\d.]+k / 8\.19k · \d+ %$"))
    before = meter.inner_text()
    page.locator(".meter-button").focus()
    page.get_by_label("Your message").focus()
    page.keyboard.type("/not counted")
    expect(page.locator("#context")).to_be_hidden()
    page.get_by_label("Your message").fill("a draft of some length " * 60)
    expect(meter).not_to_have_text(before)
    page.locator(".meter-button").hover()
    popover = page.locator("#context")
    expect(popover).to_be_visible()
    for part in ("Messages", "Newest message", "Your draft", "Tools"):
        expect(popover.locator(".parts")).to_contain_text(part)
    expect(popover.locator(".marks")).to_have_text(re.compile(r"Warning\s*5\.57k\s*Optimizes\s*6\.96k\s*Window\s*8\.19k"))
    expect(popover).to_contain_text("Will compact after this reply")
    expect(popover.locator(".context-note")).to_have_text(re.compile("Estimated.*policy oneclaw"))
    page.locator(".chat-title").hover()
    expect(popover).to_be_hidden()
