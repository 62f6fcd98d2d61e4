"""A card at every boundary, and undo and redo as two directions, as a person presses them."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from chatcore.turns import forks
from tests.support.page_compactions import SUMMARY, fill_long, run_in_background
from tests.support.stored_talk import summarize

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def summarized(session: Session) -> Session:
    """A talk whose first eight messages the model sees as a summary, which no run wrote."""
    fill_long(session)
    summarize(session, SUMMARY, 9)
    return session


@pytest.mark.slow
def test_a_fork_has_the_card_of_the_summary_that_it_took_along(
    page: Page, summarized: Session
) -> None:
    copies: list[Session] = []
    last = summarized.messages.order_by("-seq").first()
    assert last
    run_in_background(lambda: copies.append(forks.fork_session(last))).join()
    page.goto(f"/c/{copies[0].pk}/")
    card = page.locator(".card")
    expect(card).to_have_count(1)
    expect(page.locator(".card + .message")).to_have_attribute("data-seq", "9")
    card.locator("summary").click()
    expect(card.locator(".card-summary")).to_contain_text("The user asked six questions")
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_count(0)
    expect(page.locator("[data-compacted]")).to_have_count(0)


@pytest.mark.slow
def test_undo_takes_back_an_edit_before_the_summary_and_redo_brings_both_back(
    page: Page, summarized: Session
) -> None:
    page.goto(f"/c/{summarized.pk}/")
    card = page.locator(".card")
    card.locator("summary").click()
    card.get_by_role("button", name="Edit the summary").click()
    card.get_by_label("The summary", exact=True).fill(SUMMARY.replace("short", "rather long"))
    card.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("edited by hand")
    card.get_by_role("tab", name="Changes").click()
    expect(card.locator("del")).to_have_text("short")
    card.get_by_role("button", name="Undo").click()
    expect(card).not_to_contain_text("edited by hand")
    expect(card.locator(".card-summary")).to_contain_text("wanted a short answer")
    with page.expect_response(re.compile("/context$")):  # then it offers to redo this one
        card.get_by_role("button", name="Undo").click()
    expect(card).to_have_count(0)
    page.locator("#snackbar").get_by_role("button", name="Redo").click()
    expect(card).to_have_count(1)
    page.locator(".meter-button").click()
    page.get_by_role("button", name="Redo what was undone").click()
    expect(card).to_contain_text("edited by hand")
    expect(page.locator("#snackbar")).to_have_text("Redone.Undo")


def test_who_undoes_a_summary_by_keyboard_goes_on_with_the_message_behind_it(
    page: Page, summarized: Session
) -> None:
    page.goto(f"/c/{summarized.pk}/")
    card = page.locator(".card")
    card.locator("summary").press("Enter")
    card.get_by_role("button", name="Undo").press("Enter")
    expect(card).to_have_count(0)
    expect(page.locator("[data-seq='9']")).to_be_focused()


@pytest.mark.slow
def test_after_an_undo_over_the_limit_the_page_says_what_the_next_message_will_do(
    page: Page, session: Session
) -> None:
    fill_long(session, exchanges=7, words=260)
    summarize(session, SUMMARY, 11)
    page.goto(f"/c/{session.pk}/")
    page.locator(".card").get_by_role("button", name="Undo").click()
    expect(page.locator("#snackbar")).to_contain_text("answered after another summary")
