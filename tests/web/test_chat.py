"""The chat in a real browser, against the real server and a scripted model."""

import re
import threading
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from chatcore.turns import recorder
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel, Provider
from tests.support.browsing import PausedChunks, send_message, store_exchange, wait_until
from tests.support.events import append_events
from tests.support.page_compactions import SUMMARY, run_in_background
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.told_summaries import store_summaries

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_first_message_opens_a_chat_and_its_answer_streams(
    page: Page, model: AiModel, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks("Hel", "lo, **wor", "ld**")
    scripted.script(Reply(chunks=chunks))
    page.goto("/new/")
    send_message(page, "Are you\nthere?")
    expect(page.locator(".user .words")).to_have_text("Are you\nthere?")
    expect(page.locator(".answer")).to_have_attribute("data-status", "streaming")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    chunks.resume.set()
    expect(page.locator(".answer .prose strong")).to_have_text("world")
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}/$"))
    expect(page.locator(".chat-row [aria-current=page]")).to_have_text("Are you there?")
    expect(page.get_by_label("Your message")).to_have_value("")
    page.goto("/new/")
    expect(page.get_by_label("Your message")).to_have_value("")


def test_a_reload_in_the_middle_misses_nothing_and_doubles_nothing(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    words = PausedChunks(*(f"word{number} " for number in range(40)))
    scripted.script(Reply(chunks=words, chunk_delay=0.05, reasoning="Counting 😀."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Count")
    expect(page.locator(".answer .prose")).to_contain_text("word5")
    page.reload()
    expect(page.locator(".answer .prose")).to_contain_text("word5")
    expect(page.locator(".answer")).to_have_attribute("data-status", "streaming")
    words.resume.set()
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".answer .prose")).to_have_text("".join(words).strip())
    expect(page.locator(".reasoning .words")).to_have_text("Counting 😀.")
    expect(page.locator(".message")).to_have_count(2)


def test_two_tabs_show_the_same(page: Page, session: Session, scripted: ScriptedModel) -> None:
    page.goto(f"/c/{session.pk}/")
    second = page.context.new_page()
    second.goto(f"/c/{session.pk}/")
    scripted.script(Reply(text="For both."))
    send_message(page, "Who sees this?")
    for tab in (page, second):
        expect(tab.locator(".user .words")).to_have_text("Who sees this?")
        expect(tab.locator(".answer .prose")).to_have_text("For both.")
        expect(tab.locator(".message")).to_have_count(2)


def test_a_silent_model_is_seen_to_read_with_seconds_and_a_share(
    page: Page, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "TELL_SECONDS", 0)
    Provider.objects.update(options={"tells_reading": True})
    words = PausedChunks("Done.")
    scripted.script(Reply(reading=[(100, 220, 400)], chunks=words))
    page.clock.install()
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Read all this.")
    waiting = page.locator(".waiting")
    expect(waiting).to_be_visible()
    expect(waiting.locator(".waited")).to_be_empty()
    page.clock.fast_forward(70_000)
    expect(waiting).to_contain_text(re.compile(r"The model is reading · 40% · 1 min 1\d s"))
    words.resume.set()
    expect(page.locator(".answer .prose")).to_have_text("Done.")
    expect(waiting).to_be_hidden()


def test_a_tool_call_folds_its_question_and_result(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("calculate", {"expression": "6*7"})]),
        Reply(text="It is 42."),
    )
    page.goto(f"/c/{session.pk}/")
    send_message(page, "6 × 7?")
    expect(page.get_by_text("It is 42.")).to_be_visible()
    page.locator(".call summary").click()
    expect(page.locator(".call-arguments")).to_contain_text('"6*7"')
    expect(page.locator(".call-result")).to_contain_text("42")
    page.reload()
    expect(page.locator(".call-result pre")).to_have_text("42")


def test_a_failed_turn_keeps_the_message_and_says_why(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(status=401, body=b'{"error": {"message": "no such key", "code": "invalid_api_key"}}')
    )
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Precious words")
    expect(page.locator(".turn-error")).to_contain_text("Your message is kept")
    expect(page.locator(".user .words")).to_have_text("Precious words")
    page.get_by_role("button", name="Change the message").click()
    expect(page.get_by_label("Your message")).to_have_value("Precious words")


@pytest.mark.slow
def test_text_that_could_not_be_sent_stays_in_the_composer(page: Page, model: AiModel) -> None:
    page.goto("/new/")
    page.route("**/sessions", lambda route: route.abort())
    send_message(page, "Do not lose me")
    expect(page.locator("#snackbar")).to_contain_text("Your text is kept here")
    expect(page.get_by_label("Your message")).to_have_value("Do not lose me")
    page.reload()
    expect(page.get_by_label("Your message")).to_have_value("Do not lose me")


def test_nothing_that_a_model_writes_can_run_or_call_home(page: Page, session: Session) -> None:
    evil = (
        "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
        "<form action='/logout/'><button>Click</button></form>"
        "<style>body{display:none}</style><iframe src='/'></iframe>\n\n"
        "![pixel](http://192.0.2.1/track.png) [run](javascript:alert(1)) "
        "[out](https://example.org/)"
    )
    requested_urls: list[str] = []
    page.on("request", lambda request: requested_urls.append(request.url))
    store_exchange(session, "Hi", evil)
    page.goto(f"/c/{session.pk}/")
    prose = page.locator(".prose")
    link = prose.get_by_role("link", name="out")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(link).to_have_attribute("target", "_blank")
    expect(prose.locator("script, form, style, iframe, img, [onerror]")).to_have_count(0)
    expect(prose.get_by_text("run", exact=True)).not_to_have_attribute("href", re.compile("."))
    expect(prose).to_contain_text("<script>document.title='owned'</script>")
    expect(page).not_to_have_title("owned")
    assert not [url for url in requested_urls if "192.0.2.1" in url]


@pytest.mark.slow
def test_code_is_colored_and_copied(page: Page, session: Session) -> None:
    store_exchange(session, "Code?", "```python\nprint('hi')  # <b>\n```")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator("pre .hljs-string")).to_have_text("'hi'")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "print('hi')  # <b>\n"


def test_a_summary_is_announced_and_leaves_a_card_that_can_be_undone(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    for number in range(6):
        store_exchange(
            session, f"Question {number} " + "about everything " * 120, f"Answer {number}"
        )
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).to_have_text(re.compile(" full$"))
    seen = threading.Event()

    def when_seen(_: dict[str, Any]) -> Reply:
        seen.wait()
        return Reply(text=SUMMARY)

    scripted.script(when_seen)
    page.locator(".meter-button").click()
    page.get_by_role("button", name="Summarize now").click()
    expect(page.locator("#context")).to_be_hidden()
    run = wait_for_run(page)
    engine_thread = run_in_background(engine.execute_run, run.pk)
    expect(page.get_by_text("Making room: the older messages")).to_be_visible()
    expect(page.get_by_label("Your message")).to_be_enabled()
    seen.set()
    card = page.locator(".card")
    expect(card).to_contain_text("The model sees a summary of the messages above")
    engine_thread.join()
    expect(page.get_by_text("Making room: the older messages")).to_be_hidden()
    expect(card).to_contain_text(
        re.compile(r"\d+ messages.*→.*tokens.*scripted/test-model", re.DOTALL)
    )
    boundary = CompactionRun.objects.get().boundary_after
    expect(page.locator(".card + .message")).to_have_attribute("data-seq", str(boundary))
    expect(page.locator("[data-compacted]")).to_have_count((boundary or 0) - 1)
    card.locator("summary").click()
    expect(card).to_contain_text("The user asked six questions")
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_count(0)
    expect(page.locator("[data-compacted]")).to_have_count(0)


def wait_for_run(page: Page) -> CompactionRun:
    wait_until(page, CompactionRun.objects.exists)
    return CompactionRun.objects.get()


@pytest.mark.slow
def test_a_summary_being_read_stays_in_place_and_open(page: Page, session: Session) -> None:
    store_exchange(session, *(f"message {number} " + "and more " * 30 for number in range(1, 13)))
    Session.objects.filter(pk=session.pk).update(
        compacted_summary=SUMMARY * 8, compact_boundary_seq=9
    )
    CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        boundary_after=9,
        **store_summaries(session, after=SUMMARY * 8),
    )
    page.goto(f"/c/{session.pk}/")
    opener = page.locator(".card summary")
    opener.click()
    expect(page.locator(".card-summary")).to_be_visible()
    page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")
    expect(opener).to_be_in_viewport(ratio=0.95)
    with page.expect_response("**/compactions?*"):
        append_events(session.pk, ("session.updated", {"fields": ["params"]}))
    expect(page.locator(".card-summary")).to_be_visible()


@pytest.mark.slow
def test_a_trimmed_history_is_told_twice_quietly(page: Page, session: Session) -> None:
    store_exchange(session, "Long ago", "Yes")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".answer")).to_be_visible()
    notice = "Conversation history has been automatically trimmed"
    append_events(session.pk, ("context.trimmed", {"notice": notice}))
    words = "The oldest messages no longer fit, and the model does not see them."
    expect(page.locator("#snackbar[data-shown]")).to_have_text(words)
    expect(page.locator(".notice")).to_contain_text(notice)
    expect(page.locator(".notice-words")).to_have_text(words)


@pytest.mark.slow
def test_a_model_without_a_known_window_shows_tokens_alone(
    page: Page, session: Session, model: AiModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=None)
    store_exchange(session, "Hello " * 200, "Hello")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).to_have_text(re.compile(r"^[\d,]+ tokens$"))


@pytest.mark.slow
def test_a_message_sent_before_the_script_has_come_is_not_lost(
    page: Page, session: Session
) -> None:
    page.route("**/chat.js", lambda route: route.abort())
    page.goto(f"/c/{session.pk}/")
    page.get_by_label("Your message").fill("Too early")
    page.get_by_role("button", name="Send").click()
    page.evaluate("new Promise(requestAnimationFrame)")  # what was sent would be under way by now
    expect(page.get_by_label("Your message")).to_have_value("Too early")
    expect(page).to_have_url(re.compile(r"/$"))
