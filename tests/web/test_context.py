"""The context on the page: the meter, the card at the boundary, the panel and slash commands."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from chatcore.context import revisions
from chatcore.models import Message, Session
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.browsing import PausedChunks, store_exchange
from tests.support.events import append_events
from tests.support.page_compactions import (
    SUMMARY,
    execute_run,
    expect_request,
    fill_long,
    run_in_background,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def compact_session(
    session: Session, scripted: ScriptedModel, summary: str = SUMMARY
) -> CompactionRun:
    scripted.script(Reply(text=summary))
    run = engine.request_run(session.pk, trigger=CompactionRun.Trigger.MANUAL)
    return execute_run(run)


def open_card(page: Page, session: Session) -> Locator:
    """Open the newest card and return it."""
    page.goto(f"/c/{session.pk}/")
    card = page.locator(".card:not([data-superseded])")
    card.locator("summary").click()
    return card


def test_the_meter_tells_what_fills_the_window_and_counts_the_draft(
    page: Page, session: Session
) -> None:
    fill_long(session, exchanges=7, words=238)  # in the middle between threshold and window
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).to_have_text("nearly full")
    meter = page.locator(".context-total")
    before = meter.text_content() or ""
    page.locator(".meter-button").focus()
    page.get_by_label("Your message").focus()
    page.keyboard.type("/not counted")
    expect(page.locator("#context")).to_be_hidden()
    page.get_by_label("Your message").fill("a draft of some length " * 200)
    expect(meter).not_to_have_text(before)
    page.locator(".meter-button").hover()
    popover = page.locator("#context")
    expect(popover).to_be_visible()
    for part in ("Messages", "Newest message", "Your draft", "Tools"):
        expect(popover.locator(".parts")).to_contain_text(part)
    expect(meter).to_have_text(re.compile(r"^[\d,]+ of 8,192 tokens, more than full$"))
    expect(popover.locator(".summarizes-at")).to_have_text("A summary is made at 85%.")
    expect(popover).to_contain_text("Before the next answer the older messages become a summary.")
    expect(popover).not_to_contain_text(re.compile("oneclaw|Estimated"))
    page.get_by_role("button", name="What to do with this chat").hover()
    expect(popover).to_be_hidden()


def test_a_card_tells_what_was_done_and_how_the_summary_changed(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_long(session)
    compact_session(session, scripted)
    Message.objects.filter(session=session, seq=2).update(pinned=True)
    fill_long(session)
    compact_session(session, scripted, SUMMARY.replace("short answer", "long answer"))
    card = open_card(page, session)
    expect(card.locator(".card-facts")).to_have_text(
        re.compile(r"\d+ messages.*\d+% shorter", re.DOTALL)
    )
    expect(card.locator(".card-details")).to_have_text(
        re.compile(r"[\d,]+ → [\d,]+ tokens.*scripted/test-model.*a summary was written", re.DOTALL)
    )
    expect(card.locator(".card-summary")).to_contain_text("wanted a long answer")
    card.get_by_role("tab", name="Changes").click()
    expect(card.locator("del")).to_have_text(re.compile(r"^\s*short\s*$"))
    expect(card.locator("ins")).to_have_text(re.compile(r"^\s*long\s*$"))
    page.keyboard.press("ArrowRight")
    expect(card.locator(".targets li").first).to_contain_text(
        re.compile(r"summarized[\d,]+ characters, in the summary")
    )
    card.get_by_role("tab", name="Kept as written").click()
    expect(card.locator(".kept li")).to_have_text(re.compile("#2.*Answer.*Answer 0"))
    expect(page.locator(".card[data-superseded]")).to_have_count(1)


def test_a_summary_is_edited_and_written_anew_with_a_focus(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_long(session)
    first = compact_session(session, scripted)
    card = open_card(page, session)
    card.get_by_role("button", name="Edit the summary").click()
    card.get_by_label("The summary", exact=True).fill("## Goal\n\nIn my own words.")
    card.get_by_role("button", name="Save").click()
    expect(card.locator(".card-summary")).to_contain_text("In my own words.")
    expect(card).to_contain_text("edited by hand")
    session.refresh_from_db()
    assert session.compacted_summary == "## Goal\n\nIn my own words."
    card.get_by_role("button", name="Redo with a focus").click()
    card.get_by_label("What the summary should focus on").fill("the numbers")
    card.get_by_role("button", name="Rewrite").click()
    expect(page.locator("#snackbar")).to_contain_text("being rewritten")
    expect(card.locator(".card-summary")).to_contain_text("In my own words.")
    again = CompactionRun.objects.get(status="queued")
    assert again.instructions == "the numbers"
    scripted.script(Reply(text=SUMMARY))
    execute_run(again)
    expect(card).to_contain_text("focus: the numbers")
    first.refresh_from_db()
    assert (first.status, again.boundary_after) == ("rewound", first.boundary_after)


def test_the_panel_shows_the_next_request_word_for_word(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(system_prompt="Be <b>brief</b>.")
    fill_long(session)
    run = compact_session(session, scripted)
    page.goto(f"/c/{session.pk}/")
    page.locator(".meter-button").click()
    page.get_by_role("button", name="Show all that is sent").click()
    panel = page.get_by_role("dialog", name="What the model sees now")
    expect(panel.locator(".panel-facts")).to_have_text(
        re.compile(
            r"test-model · \d+ messages · about [\d.]+k? tokens · version 1 · policy oneclaw"
        )
    )
    expect(panel.locator("[data-sent=system] pre")).to_contain_text("Be <b>brief</b>.")
    expect(panel.locator("[data-sent=system] pre")).to_contain_text("The user asked six questions")
    numbers = panel.locator(".sent-messages .sent-seq").filter(visible=True)
    expect(numbers.first).to_have_text(f"#{run.boundary_after}")
    panel.get_by_role("button", name="Copy as JSON").click()
    expect(panel.get_by_role("button", name="Copied")).to_be_attached()
    context = json.loads(page.evaluate("navigator.clipboard.readText()"))
    stored = [message["seq"] for message in context["messages"] if message["seq"]]
    assert stored[0] == run.boundary_after
    panel.get_by_text("All summaries").click()
    expect(panel.locator(".runs li")).to_contain_text("applied")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


@pytest.mark.slow
def test_slash_commands_are_completed_and_carried_out(
    page: Page, session: Session, model: AiModel
) -> None:
    AiModel.objects.create(provider=model.provider, name="other-model", context_window_size=4096)
    fill_long(session)
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.press_sequentially("/s")
    expect(page.locator("#slash li")).to_have_count(1)
    field.press("Tab")
    expect(field).to_have_value("/summarize ")
    field.press_sequentially("the numbers")
    with expect_request(page):
        field.press("Enter")
    expect(field).to_have_value("")
    assert CompactionRun.objects.get().instructions == "the numbers"
    field.press_sequentially("/model oth")
    field.press("Enter")
    expect(page.locator(".context-total")).to_contain_text(" of 4,096 tokens")
    field.press_sequentially("/con")
    field.press("Enter")
    expect(page.get_by_role("dialog", name="What the model sees now")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        field.fill("/export")
        field.press("Enter")
    assert download.value.suggested_filename == f"{session.pk}.json"
    field.fill("/fork")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page).not_to_have_url(re.compile(str(session.pk)))
    expect(page.locator(".message")).to_have_count(12)


@pytest.mark.slow
def test_an_unknown_command_is_sent_as_text_after_a_word(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="No such thing."))
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.fill("/dance now")
    field.press("Enter")
    expect(page.locator("#snackbar")).to_contain_text("There is no command /dance")
    expect(page.locator(".user")).to_have_count(0)
    field.press("Enter")
    expect(page.locator(".user .words")).to_have_text("/dance now")
    expect(page.locator(".answer .prose")).to_have_text("No such thing.")


@pytest.mark.slow
def test_what_is_sent_in_a_shorter_form_says_so_and_shows_it(page: Page, session: Session) -> None:
    store_exchange(
        session, "Read the file", "It is long: " + "<i>line</i> " * 300, "And now?", "Done."
    )
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".context-total")).to_contain_text(" of 8,192 tokens")
    expect(page.locator(".shortened")).to_have_count(0)
    edit = revisions.MessageEdit(message_seq=2, kind="pruned", replacement="<i>line</i> … [cut]")
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary=None,
        boundary_seq=None,
        edits=[edit],
        source="compaction",
    )
    append_events(session.pk, ("session.updated", {"fields": ["compacted_summary"]}))
    form = page.locator("[data-seq='2'] .shortened")
    expect(form).to_contain_text(
        re.compile(r"The model sees a shortened form\s+3,612 →\s+19\s+characters")
    )
    expect(form.locator("pre")).to_be_hidden()
    form.locator("summary").click()
    expect(form.locator("pre")).to_have_text("<i>line</i> … [cut]")
    expect(page.locator("[data-seq='2'] .prose")).to_contain_text("line line line")


@pytest.mark.slow
def test_a_message_is_where_optimizing_ends_and_the_page_says_while_it_runs(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_long(session)
    page.goto(f"/c/{session.pk}/")
    message = page.locator("[data-seq='4']")
    message.hover()
    message.get_by_role("button", name="More actions").click()
    with expect_request(page):
        page.get_by_role("button", name="Summarize up to here").click()
    run = CompactionRun.objects.get()
    chunks = PausedChunks(
        "## Goal\n\nSix questions, each of them about everything, ", "and a short answer to each."
    )
    scripted.script(Reply(chunks=chunks))
    work = run_in_background(engine.execute_run, run.pk)
    expect(page.get_by_text("Making room: the older messages")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Making room: the older messages")).to_be_visible()
    expect(page.get_by_label("Your message")).to_be_editable()
    chunks.resume.set()
    expect(page.locator(".card + .message")).to_have_attribute("data-seq", "5")
    work.join()
    expect(page.get_by_text("Making room: the older messages")).to_be_hidden()
    expect(page.locator("[data-compacted]")).to_have_count(4)
