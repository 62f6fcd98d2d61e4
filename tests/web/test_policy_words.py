"""A policy in words while it is chosen, and the mark that moves on the meter."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import store_exchange

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_the_words_and_the_mark_follow_what_is_chosen_and_go_back_when_it_is_not_saved(
    page: Page, session: Session
) -> None:
    store_exchange(session, "Hello", "Hello to you")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    mark = page.locator(".meter-button .bar-mark")
    expect(mark).to_have_attribute("style", re.compile(r"84\.9\d*%|85%"))
    page.get_by_role("button", name="Settings of this chat").click()
    words = page.locator("[data-policy-words]")
    expect(words).to_have_text(
        "A summary is made when more than 85% of what the model can read are full, that is about"
        " 6.96k tokens. The newest messages, up to 25% of it, stay as they are."
    )
    page.get_by_text("How it is done").click()
    expect(page.get_by_label("Policy").locator("option[value=neurolink]")).to_have_text(
        re.compile(
            r"neurolink · From 80% on: old results of tools are left out, of each file only the "
            r"newest copy is kept, older messages become a summary, at last the oldest"
        )
    )
    page.get_by_label("Policy").select_option("lota")
    expect(words).to_contain_text("The newest 6 messages stay as they are.")
    page.get_by_label("Start at: % of the context window, or tokens (above 100)").fill("50")
    expect(words).to_contain_text(
        "more than 50% of what the model can read are full, that is about 4.1k"
    )
    expect(mark).to_have_attribute("style", re.compile(r"50%"))
    page.get_by_label("Summarize automatically").uncheck()
    expect(words).to_contain_text("This chat is not summarized automatically.")
    page.keyboard.press("Escape")
    expect(mark).to_have_attribute("style", re.compile(r"84\.9\d*%|85%"))
