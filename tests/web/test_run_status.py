"""A run where the reader is: what it does while it works, and the line that it turns into."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.browsing import PausedChunks
from tests.support.page_compactions import (
    SUMMARY,
    execute_run,
    expect_request,
    fill_long,
    run_in_background,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import summarize

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def request_summary(page: Page, session: Session) -> CompactionRun:
    """Press "Summarize now" at the meter, and return the run that waits for a worker."""
    fill_long(session)
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    page.locator(".meter-button").click()
    with expect_request(page):
        page.get_by_role("button", name="Summarize now").click()
    return CompactionRun.objects.get()


def test_a_run_is_read_along_and_turns_into_a_line_that_leads_to_its_card(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    run = request_summary(page, session)
    first, rest = SUMMARY.split("## Progress")
    chunks = PausedChunks(first, f"## Progress{rest}")
    scripted.script(Reply(chunks=chunks))
    work = run_in_background(engine.execute_run, run.pk)
    status = page.get_by_role("region", name="Summary")
    expect(status.get_by_role("status")).to_have_text(
        "Making room: the older messages are being summarized. You can go on writing."
    )
    expect(status.get_by_text("Optimizing conversation context…")).to_be_attached()
    expect(status).to_be_in_viewport()
    expect(status.locator(".run-facts")).to_have_text(re.compile(r"^\d+ messages · \d+ s"))
    status.get_by_text("Read along").click()
    expect(status.locator(".run-text")).to_contain_text("The user asked six questions")
    expect(status.locator(".run-text")).not_to_contain_text("Progress")
    chunks.resume.set()
    work.join()
    expect(status.get_by_role("status")).to_have_text(
        re.compile(r"^\d+ older messages are now a summary\. You still see them; the model reads ")
    )
    expect(status.locator(".run-written")).to_be_hidden()
    status.get_by_role("button", name="View").click()
    card = page.locator(".card")
    expect(card.locator("summary")).to_be_focused()
    expect(card.locator(".card-summary")).to_contain_text("The user asked six questions")
    status.get_by_role("button", name="Undo").click()
    expect(card).to_have_count(0)
    expect(status).to_be_hidden()


def test_the_line_goes_when_its_undo_would_take_back_something_else(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    run = request_summary(page, session)
    scripted.script(Reply(text=SUMMARY))
    execute_run(run)
    status = page.get_by_role("region", name="Summary")
    expect(status.get_by_role("button", name="Undo")).to_be_visible()
    card = page.locator(".card")
    card.locator("summary").click()
    card.get_by_role("button", name="Edit the summary").click()
    card.get_by_label("The summary", exact=True).fill("In my own words.")
    card.get_by_role("button", name="Save").click()
    expect(status).to_be_hidden()


@pytest.mark.slow
def test_view_waits_for_a_card_that_is_still_being_fetched(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    run = request_summary(page, session)
    scripted.script(Reply(text=SUMMARY))
    page.route("**/context/", lambda route: None)  # held
    run_in_background(engine.execute_run, run.pk).join()
    page.get_by_role("region", name="Summary").get_by_role("button", name="View").click()
    expect(page.locator(".card")).to_have_count(0)
    page.unroute("**/context/")  # and what was held goes on
    expect(page.locator(".card summary")).to_be_focused()


@pytest.mark.slow
def test_a_run_is_stopped_while_the_model_writes(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    run = request_summary(page, session)
    chunks = PausedChunks("## Goal\n\nSix questions, ", "and an answer to each.")
    scripted.script(Reply(chunks=chunks))
    work = run_in_background(engine.execute_run, run.pk)
    status = page.get_by_role("region", name="Summary")
    status.get_by_role("button", name="Cancel").click()
    expect(status).to_be_hidden()
    chunks.resume.set()
    work.join()
    run.refresh_from_db()
    session.refresh_from_db()
    assert (run.status, session.compacted_summary) == ("skipped", None)
    expect(page.locator(".card")).to_have_count(0)


@pytest.mark.slow
def test_a_run_that_fails_says_why_and_is_tried_again(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    run = request_summary(page, session)
    scripted.default = Reply(status=500, text="out of order")
    run_in_background(engine.execute_run, run.pk).join()
    status = page.get_by_role("region", name="Summary")
    expect(status.get_by_role("status")).to_have_text(
        re.compile(r"^No summary could be written: .*out of order.* Nothing changed\.$")
    )
    with expect_request(page):
        status.get_by_role("button", name="Try again").click()
    expect(status).to_be_hidden()
    assert CompactionRun.objects.filter(status="queued").count() == 1


@pytest.mark.slow
def test_a_summary_that_was_written_elsewhere_leaves_a_dot_in_the_list(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_long(session)
    Session.objects.filter(pk=session.pk).update(title="Bread")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    page.goto("/new/")
    dot = page.locator(".row-news")
    expect(dot).to_have_count(1)
    expect(dot).to_be_hidden()
    run_in_background(summarize, session, SUMMARY, 5).join()
    page.reload()
    expect(page.get_by_role("link", name="Bread A new summary")).to_be_visible()
    expect(dot).to_be_visible()
    page.get_by_role("link", name="Bread A new summary").click()
    expect(page.locator(".card")).to_be_visible()
    page.goto("/new/")
    expect(dot).to_be_hidden()
