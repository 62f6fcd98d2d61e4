"""Failures in people's words: what fits, one line that counts, and a way on."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Message, Session
from chatcore.web.advice import choose_advice
from compaction.runs import engine
from tests.support.browsing import send_message, store_exchange
from tests.support.compaction_sessions import summarize_or_chat
from tests.support.page_compactions import expect_request, run_in_background
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply


@pytest.mark.parametrize(
    ("kind", "detail", "advice"),
    [
        ("provider_rate_limited", "You exceeded your current quota (insufficient_quota).", "quota"),
        ("provider_rate_limited", "Too many requests a minute.", "wait"),
        ("provider_rejected", "It violates our content policy.", "content"),
        ("provider_rejected", "The model `gpt-9` does not exist.", "model"),
        ("provider_rejected", "Unsupported value.", "again"),
        ("provider_auth", "Incorrect API key.", "key"),
        ("context_overflow", "Too long.", "length"),
        ("provider_timeout", "Too slow.", "again"),
    ],
)
def test_the_advice_fits_what_the_provider_said(kind: str, detail: str, advice: str) -> None:
    assert choose_advice({"type": kind, "detail": detail}) == advice


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_model_that_the_provider_does_not_have_leads_to_the_picker(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=404, text="The model test-model does not exist.")
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Hello?")
    error = page.locator(".turn-error")
    expect(error).to_contain_text("Choose another one.")
    expect(error.get_by_role("button", name="Try again")).to_have_count(0)
    error.get_by_role("button", name="Choose another model").click()
    expect(page.get_by_role("combobox", name="Search models")).to_be_focused()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_an_answer_that_was_cut_is_continued(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Count.", "One, two")
    Message.objects.filter(session=session, seq=2).update(status="interrupted")
    scripted.script(Reply(text="three."))
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.locator(".answer .prose").last).to_have_text("three.")
    expect(page.get_by_role("button", name="Continue", exact=True)).to_be_hidden()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_trimming_is_told_in_one_line_with_why_and_what_now(
    page: Page, full: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500, text="out of order"))
    run_in_background(lambda: engine.compact_now(full.pk, trigger="manual")).join()
    page.goto(f"/c/{full.pk}/")
    for count, words in enumerate(("And the flight?", "And the hotel?"), start=1):
        send_message(page, words)
        expect(page.locator(".answer[data-status=complete]")).to_have_count(7 + count)
    page.reload()
    lines = page.get_by_text("Conversation history has been automatically trimmed")
    details = page.locator(".notice-details")
    expect(details).to_contain_text(
        re.compile(r"\d+ messages are left out .* So far for 2 answers\. No summary could be")
    )
    expect(page.locator(".notice").filter(visible=True)).to_have_count(1)
    expect(lines.first).to_be_attached()
    expect(page.locator("[data-left-out]").first).to_be_attached()
    with expect_request(page):
        details.get_by_role("button", name="Try to summarize again").click()
