"""Failures in people's words: what fits, one line that counts, and a way on."""

import re

import pytest
from playwright.sync_api import Page, expect
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from chatcore.web.advice import choose_advice
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.browsing import PausedChunks, send_message, store_exchange
from tests.support.compaction_sessions import fill_session, summarize_or_chat
from tests.support.page_compactions import (
    SUMMARY,
    execute_run,
    expect_request,
    fill_long,
    run_in_background,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.web.test_axe import find_objections


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_an_answer_that_its_limit_cut_says_so_and_is_continued(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="One, two", finish="length"), Reply(text="three."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Count.")
    expect(page.get_by_text("Cut at its limit.")).to_be_visible()
    expect(page.get_by_text("Stopped here.")).to_be_hidden()
    page.reload()
    expect(page.get_by_text("Cut at its limit.")).to_be_visible()
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.locator(".answer .prose").last).to_have_text("three.")
    expect(page.get_by_role("button", name="Continue", exact=True)).to_be_hidden()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_trimming_is_told_in_one_line_with_why_and_what_now(
    page: Page, full: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(status=500, text="out of order"))
    run_in_background(lambda: engine.compact_now(full.pk, trigger="manual")).join()
    page.goto(f"/c/{full.pk}/")
    for count, words in enumerate(("And the flight?", "And the hotel?"), start=1):
        send_message(page, words)
        expect(page.locator(".answer[data-status=complete]")).to_have_count(7 + count)
    meter = page.locator("context-meter")
    expect(meter).to_have_attribute("data-level", "lost")
    sent_tokens = api.get(f"/api/v1/sessions/{full.pk}/context/preview").json()["tokens"]
    expect(meter.locator(".context-total")).to_contain_text(f"{sent_tokens:,} of 8,192 tokens, ")
    expect(page.locator(".notice").filter(visible=True)).to_have_count(1)
    status = page.get_by_role("region", name="Summary")
    told = re.compile(
        r"^No summary could be written: .*out of order\.? Nothing changed; the \d+ oldest messages "
        r"are left out of answers until it works\.$"
    )
    for _ in range(2):
        expect(status.get_by_role("status")).to_have_text(told)
        expect(page.locator(".notice").filter(visible=True)).to_have_count(1)
        expect(page.get_by_text("no longer fit, and the model").filter(visible=True)).to_have_count(
            1
        )
        expect(page.locator("[data-left-out]").first).to_be_attached()
        expect(page.get_by_role("button", name="Try again")).to_have_count(1)
        page.reload()
    with expect_request(page):
        status.get_by_role("button", name="Try again").click()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_meter_goes_on_telling_what_is_sent_when_the_wait_after_a_failure_is_over(
    page: Page, full: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(text="I cannot help with that."))
    run_in_background(lambda: engine.compact_now(full.pk, trigger="manual")).join()
    SessionState.objects.filter(pk=full.pk).update(not_before=None)
    usage = api.get(f"/api/v1/sessions/{full.pk}/context").json()
    assert (usage["automatic"], usage["next_request"]) == ("on", "trimmed")
    sent_tokens = api.get(f"/api/v1/sessions/{full.pk}/context/preview").json()["tokens"]
    assert sent_tokens < usage["estimated_input_tokens"]
    page.goto(f"/c/{full.pk}/")
    meter = page.locator("context-meter")
    expect(meter.locator(".context-total")).to_contain_text(f"{sent_tokens:,} of 8,192 tokens, ")
    expect(meter.locator(".context-whole")).to_have_text(
        f"That is sent. The whole chat has {usage['estimated_input_tokens']:,} tokens."
    )
    expect(meter).to_have_attribute("data-level", "lost")
    expect(meter.locator(".context-soon")).to_contain_text("tried again with the next message")
    status = page.get_by_role("region", name="Summary")
    expect(status.get_by_role("status")).to_contain_text("not good enough and was not used.")
    expect(page.get_by_role("region", name="The next message")).to_be_hidden()
    status.get_by_role("button", name="Close").click()
    expect(status).to_be_hidden()


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_each_answer_from_a_trimmed_request_says_so_at_its_place(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    SessionState.objects.create(session_id=session.pk, fruitless=2)  # no automatic summary
    fill_session(session, messages=20)
    words = PausedChunks("From Porto ", "at nine.")
    scripted.script(Reply(chunks=words), Reply(text="Two hundred euros."))
    page.goto(f"/c/{session.pk}/")
    lines = page.locator(".trimmed-answer").filter(visible=True)
    answer = page.locator(".answer").last
    try:
        send_message(page, "And the flight?")
        expect(answer.locator(".prose")).to_have_text("From Porto")
        told = re.compile(r"^\s*Answered without \d+ older messages\. Nothing is deleted\.\s*$")
        expect(lines).to_have_text([told])
        place = answer.locator(".prose").evaluate("prose => prose.offsetTop")
    finally:
        words.resume.set()
    expect(answer).to_have_attribute("data-status", "complete")
    assert answer.locator(".prose").evaluate("prose => prose.offsetTop") == place
    send_message(page, "And its price?")
    expect(lines).to_have_text([told, told])
    expect(page.locator(".answer[data-status=complete]")).to_have_count(12)
    shown = [" ".join(text.split()) for text in lines.all_inner_texts()]
    page.reload()
    expect(lines).to_have_text(shown)
    expect(page.locator(".notice").filter(visible=True)).to_have_count(1)
    assert not find_objections(page)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Reply(status=429, text="You exceeded your current quota."), "exceeded your current quota"),
        (Reply(status=400, text="It violates our content policy."), "violates our content policy"),
    ],
    ids=["quota", "content policy"],
)
def test_a_summary_that_failed_is_written_by_another_model(
    page: Page,
    session: Session,
    model: AiModel,
    scripted: ScriptedModel,
    failure: Reply,
    words: str,
) -> None:
    AiModel.objects.create(provider=model.provider, name="kind-model", context_window_size=32_768)
    scripted.default = lambda request: (
        Reply(text=SUMMARY) if request["model"] == "kind-model" else failure
    )
    fill_long(session)
    page.goto(f"/c/{session.pk}/")
    page.locator(".meter-button").click()
    with expect_request(page):
        page.get_by_role("button", name="Summarize now").click()
    run_in_background(engine.execute_run, CompactionRun.objects.get().pk).join()
    status = page.get_by_role("region", name="Summary")
    expect(status.get_by_role("status")).to_contain_text(words)
    page.set_viewport_size({"width": 360, "height": 740})
    status.get_by_role("button", name="Try with another model…").click()
    dialog = page.get_by_role("dialog", name="Summarize with another model")
    field = dialog.get_by_role("combobox", name="Model")
    expect(field).to_be_focused()
    expect(field).to_have_value("scripted/kind-model")
    assert not find_objections(page)
    with expect_request(page):
        dialog.get_by_role("button", name="Summarize").click()
    expect(dialog).to_be_hidden()
    run = execute_run(CompactionRun.objects.get(status="queued"))
    assert (run.model, run.summary_model) == ("scripted/kind-model",) * 2
    expect(status.get_by_role("status")).to_have_text(
        re.compile(r"now a summary\. .* · written by scripted/kind-model$")
    )
    expect(page.locator(".picker-name")).to_have_text("test-model")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_where_there_is_one_model_no_other_is_offered(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=500, text="out of order")
    fill_long(session)
    page.goto(f"/c/{session.pk}/")
    page.locator(".meter-button").click()
    with expect_request(page):
        page.get_by_role("button", name="Summarize now").click()
    run_in_background(engine.execute_run, CompactionRun.objects.get().pk).join()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.get_by_role("button", name="Try with another model…")).to_have_count(0)
