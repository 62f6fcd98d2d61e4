"""What a summary leaves out, on its card: read it, put it in, undo that, pin its message."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import store_exchange
from tests.support.page_compactions import SUMMARY, fill_long
from tests.support.stored_talk import summarize

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

BUDGET = "The budget for the party is 180 euros."


@pytest.fixture
def summarized(session: Session) -> Session:
    """A talk whose summary forgot the budget, which its first message names."""
    store_exchange(session, f"We plan a party. {BUDGET}", "Fine.")
    fill_long(session)
    summarize(session, SUMMARY, 9)
    return session


@pytest.mark.slow
def test_a_forgotten_value_is_told_put_in_taken_back_and_pinned(
    page: Page, summarized: Session
) -> None:
    page.goto(f"/c/{summarized.pk}/")
    card = page.locator(".card")
    expect(card).to_contain_text("not in it: 1")
    card.locator("summary").click()
    missing = card.get_by_role("region", name="Not in the summary")
    expect(missing.get_by_role("listitem")).to_contain_text(BUDGET)
    missing.get_by_role("button", name="Put it in").click()
    expect(missing).to_be_hidden()
    expect(card.locator(".card-summary")).to_contain_text(BUDGET)
    card.get_by_role("button", name="Undo").click()
    expect(missing.get_by_role("listitem")).to_contain_text(BUDGET)
    expect(card.locator(".card-summary")).not_to_contain_text(BUDGET)
    missing.get_by_role("button", name="#1", exact=True).click()
    expect(page.locator('[data-seq="1"]')).to_be_focused()
    missing.get_by_role("button", name="Pin #1").click()
    expect(missing).to_be_hidden()
    expect(card).not_to_contain_text("not in it")
