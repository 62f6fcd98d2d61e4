"""The actions on a message: copy, quote, edit, regenerate, versions, pin, fork and delete."""

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from chatcore.models import Attachment, Message, Session
from chatcore.turns import control, versions
from chatcore.turns.client_tools import ClientToolResult
from compaction.models import CompactionRun
from tests.support.browsing import PausedChunks, send_message, store_exchange, wait_until
from tests.support.page_compactions import fill_long
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def choose(page: Page, message: Locator, act: str) -> None:
    """Choose an action from the menu of a message."""
    message.hover()
    message.get_by_role("button", name="More actions").click()
    page.locator("#message-menu").get_by_role("button", name=act).click()


def test_an_answer_is_given_again_and_its_versions_are_stepped_through(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Red."), Reply(text="Green, *perhaps*."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Which color?")
    answer = page.locator(".answer")
    expect(answer.locator(".prose")).to_have_text("Red.")
    expect(answer).to_have_attribute("data-status", "complete")
    answer.get_by_role("button", name="Answer again").click()
    expect(answer.locator(".prose em")).to_have_text("perhaps")
    expect(answer.locator(".version-number")).to_have_text("2/2")
    expect(answer.get_by_role("button", name="Later version")).to_be_disabled()
    answer.get_by_role("button", name="Earlier version").click()
    expect(answer.locator(".prose")).to_have_text("Red.")
    expect(answer.locator(".version-number")).to_have_text("1/2")
    expect(answer).to_have_count(1)
    expect(page.locator(".user")).to_have_count(1)


def test_a_message_is_edited_in_its_place_and_sent_again(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Two and too?", "Four, I guess.", "Sure?", "Yes.")
    scripted.script(Reply(text="Four."))
    page.goto(f"/c/{session.pk}/")
    first = page.locator(".user").first
    first.hover()
    first.get_by_role("button", name="Edit this message").click()
    field = page.get_by_label("Edit the message")
    expect(field).to_be_focused()
    expect(field).to_have_value("Two and too?")
    field.press("Escape")
    expect(field).to_have_count(0)
    expect(first.locator(".words")).to_be_visible()
    choose(page, first, "Edit")
    field.fill("Two and two?")
    field.press("Control+Enter")
    expect(page.locator(".answer .prose")).to_have_text(["Four."])
    expect(page.locator(".user .words")).to_have_text(["Two and two?"])
    expect(page.locator(".user .version-number")).to_have_text("2/2")
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator(".message")).to_have_count(4)
    expect(page.locator(".answer .prose").last).to_have_text("Yes.")


@pytest.mark.slow
def test_a_pin_shows_in_every_tab_and_is_taken_out(page: Page, session: Session) -> None:
    store_exchange(session, "Remember 1742.", "I will.")
    page.goto(f"/c/{session.pk}/")
    second = page.context.new_page()
    second.goto(f"/c/{session.pk}/")
    choose(page, page.locator(".user"), "Pin")
    for tab in (page, second):
        expect(tab.locator(".user .pinned")).to_be_visible()
        expect(tab.locator(".answer .pinned")).to_be_hidden()
    choose(second, second.locator(".user"), "Unpin")
    expect(page.locator(".user .pinned")).to_be_hidden()
    assert not Message.objects.filter(pinned=True).exists()


@pytest.mark.slow
def test_a_fork_opens_as_a_chat_of_its_own(page: Page, session: Session) -> None:
    store_exchange(session, "One", "Two", "Three", "Four")
    page.goto(f"/c/{session.pk}/")
    choose(page, page.locator(".answer").first, "Fork from here")
    expect(page).not_to_have_url(re.compile(str(session.pk)))
    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".answer .prose")).to_have_text(["Two"])


@pytest.mark.slow
def test_a_message_is_deleted_after_being_asked(page: Page, session: Session) -> None:
    store_exchange(session, "Keep this", "Of course", "Forget this", "Forgotten")
    page.goto(f"/c/{session.pk}/")
    last = page.locator(".user").last
    choose(page, last, "Delete…")
    dialog = page.get_by_role("dialog", name="Delete this message?")
    dialog.get_by_role("button", name="Keep it").click()
    expect(page.locator(".message")).to_have_count(4)
    choose(page, last, "Delete…")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator(".message")).to_have_count(3)
    expect(page.get_by_text("Forget this")).to_have_count(0)


@pytest.mark.slow
def test_a_message_is_copied_and_quoted_as_it_was_written(page: Page, session: Session) -> None:
    store_exchange(session, "Say it", "Some *words*\n\nand more")
    page.goto(f"/c/{session.pk}/")
    answer = page.locator(".answer")
    answer.get_by_role("button", name="Copy the message").click()
    expect(answer.locator("[data-copied]")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Some *words*\n\nand more"
    choose(page, answer, "Quote")
    expect(page.get_by_label("Your message")).to_have_value("> Some *words*\n> \n> and more\n\n")
    expect(page.get_by_label("Your message")).to_be_focused()


@pytest.mark.slow
def test_what_another_tab_supersedes_vanishes_and_an_answer_being_written_goes_on(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Old question", "Old answer")
    chunks = PausedChunks("New ", "words ", "at last.")
    scripted.script(Reply(chunks=chunks))
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".answer .prose")).to_have_text("Old answer")
    send_message(page, "Go on")
    expect(page.locator(".answer .prose").last).to_contain_text("words")
    choose(page, page.locator(".user").first, "Pin")
    expect(page.locator(".user .pinned").first).to_be_visible()
    expect(page.locator(".answer .prose").last).to_contain_text("New words")
    chunks.resume.set()
    expect(page.locator(".answer .prose").last).to_have_text("New words at last.")
    versions.edit_answer(session.messages.get(content="Old answer"), "Other words")
    expect(page.locator(".answer .prose")).to_have_text(["Other words"])
    expect(page.locator(".message")).to_have_count(2)


def test_what_is_written_meanwhile_waits_for_the_end_of_the_answer(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks("First ", "answer.")
    scripted.script(Reply(chunks=chunks), Reply(text="Second answer."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "First?")
    expect(page.locator(".answer .prose")).to_contain_text("First")
    for words in ("Never sent", "Secnd?"):
        send_message(page, words)
        expect(page.get_by_label("Your message")).to_have_value("")
    page.reload()
    waiting = page.locator(".queued-item")
    expect(waiting).to_have_count(2)
    waiting.first.get_by_role("button", name="Remove the waiting message").click()
    waiting.get_by_role("button", name="Edit the waiting message").click()
    expect(page.get_by_label("Your message")).to_have_value("Secnd?")
    page.get_by_label("Your message").fill("Second?")
    page.get_by_role("button", name="Send after this answer").click()
    expect(waiting).to_have_text(re.compile("Second?"))
    chunks.resume.set()
    expect(page.locator(".answer .prose")).to_have_text(["First answer.", "Second answer."])
    expect(page.locator(".user .words")).to_have_text(["First?", "Second?"])
    expect(waiting).to_have_count(0)


@pytest.mark.slow
def test_a_stop_by_hand_holds_what_waits_until_it_is_sent_by_hand(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(chunks=["Once upon ", "a time "], cut_after=2, hang=True),
        Reply(text="Of course."),
        Reply(text="Blue."),
    )
    page.goto(f"/c/{session.pk}/")
    send_message(page, "A story")
    expect(page.locator(".answer .prose")).to_contain_text("a time")
    for words in ("Make it blue", "And long"):
        send_message(page, words)
    expect(page.get_by_role("button", name="Send now")).to_be_hidden()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".queued-note")).to_have_text("On hold, because the answer was stopped.")
    send_message(page, "Do you mind?")
    expect(page.locator(".answer .prose").last).to_have_text("Of course.")
    expect(page.locator(".queued-words")).to_have_text(["Make it blue", "And long"])
    page.reload()
    expect(page.locator(".queued-words")).to_have_text(["Make it blue", "And long"])
    page.locator(".queued-item").last.get_by_role(
        "button", name="Remove the waiting message"
    ).click()
    page.get_by_role("button", name="Send now").click()
    expect(page.locator(".answer .prose").last).to_have_text("Blue.")
    expect(page.locator(".user .words")).to_have_text(["A story", "Do you mind?", "Make it blue"])
    expect(page.locator(".queued-item")).to_have_count(0)
    expect(page.locator(".queued-note")).to_be_hidden()


@pytest.mark.slow
def test_a_turn_that_waits_for_another_program_says_so_and_goes_on(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("weather", {"city": "Rome"})]), Reply(text="Sunny.")
    )
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    control.start_turn(session, content="Weather?", tools=[{"name": "weather"}])
    notice = page.get_by_text("Waiting for the program that runs weather.")
    expect(notice).to_be_visible()
    page.reload()
    expect(notice).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    control.submit_tool_results(session, [ClientToolResult(tool_call_id="call_1", content="22 °C")])
    expect(page.locator(".answer .prose").last).to_have_text("Sunny.")
    expect(notice).to_be_hidden()
    result = session.messages.get(role="tool")
    Attachment.objects.create(
        session=session,
        message=result,
        kind="output",
        name="weather.txt",
        media_type="text/plain",
        size=4,
        text="Rome",
        data=b"",
    )
    page.reload()
    page.locator(".call summary").click()
    expect(page.locator(".call-result pre")).to_have_text("22 °C")
    with page.expect_download() as download:
        page.get_by_role("link", name="Full output").click()
    assert download.value.path().read_text() == "Rome"


@pytest.mark.slow
def test_when_it_was_said_stands_below_each_message(page: Page, session: Session) -> None:
    store_exchange(session, "One?", "One.", "Two?", "Two.")
    Message.objects.filter(session=session, seq__lte=2).update(
        created_at=datetime(2024, 11, 3, 14, 5, tzinfo=UTC)
    )
    page.goto(f"/c/{session.pk}/")
    times = page.locator(".message > .foot > local-time")
    hour = re.compile(r"^\d?\d:\d\d\s[AP]M$")
    expect(times).to_have_text([re.compile(r"^Nov 3, 2024, 2:05\sPM$")] * 2 + [hour] * 2)
    expect(times.first).to_have_attribute(
        "title", re.compile(r"^Sunday, November 3, 2024 at 2:05:00\sPM$")
    )
    send_message(page, "Three?")
    expect(page.locator(".answer")).to_have_count(3)
    expect(times.nth(4)).to_have_text(hour)
    expect(times.nth(5)).to_have_text(hour)


def test_the_tree_of_branches_opens_one_that_was_left(page: Page, session: Session) -> None:
    hostile = "<img src=x onerror=alert(1)> {{ 7 }}"
    store_exchange(session, "Where is the key?", "Under the mat.", "Which mat?", "The blue one.")
    mark = session.messages.get(seq=2)
    versions.edit_answer(mark, hostile)
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="2/2: all branches").click()
    tree = page.get_by_role("dialog", name="Branches of this chat")
    expect(tree.locator(".branch-words")).to_have_text(
        ["Where is the key?", "Under the mat.", hostile]
    )
    tree.get_by_role("button", name="Under the mat. 3 messages").click()
    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.get_by_text("The blue one.")).to_be_visible()
    assert session.messages.get(content="The blue one.").branch is None
    page.get_by_role("button", name="What to do with this chat").click()
    page.get_by_role("button", name="Branches", exact=True).click()
    tree.get_by_role("button", name="Where is the key?").click()
    expect(page.locator("article[data-seq='1']")).to_be_focused()


def test_whoever_goes_to_a_message_while_a_branch_opens_stays_there(
    page: Page, session: Session
) -> None:
    held: list[Route] = []
    store_exchange(session, "Where is the key?", "Under the mat.", "Which mat?", "The blue one.")
    versions.edit_answer(session.messages.get(seq=2), "Nowhere.")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    page.get_by_role("button", name="2/2: all branches").click()
    page.route(re.compile(r"/messages/\?"), lambda route: held.append(route), times=1)
    tree = page.get_by_role("dialog", name="Branches of this chat")
    tree.get_by_role("button", name="Under the mat. 3 messages").click()
    wait_until(page, lambda: bool(held))
    first = page.locator("article[data-seq='1']")
    first.evaluate("article => { article.tabIndex = -1; article.focus() }")
    held[0].continue_()
    expect(page.get_by_text("The blue one.")).to_be_visible()
    expect(page.locator("[data-working]")).to_have_count(0)
    expect(first).to_be_focused()


def test_whoever_goes_on_while_a_branch_opens_keeps_the_focus(page: Page, session: Session) -> None:
    held: list[Route] = []
    store_exchange(session, "Where is the key?", "Under the mat.", "Which mat?", "The blue one.")
    mark = session.messages.get(seq=2)
    versions.edit_answer(mark, "Nowhere.")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    page.get_by_role("button", name="2/2: all branches").click()
    page.route(re.compile("/context/$"), lambda route: held.append(route), times=1)
    tree = page.get_by_role("dialog", name="Branches of this chat")
    tree.get_by_role("button", name="Under the mat. 3 messages").click()
    expect(page.get_by_text("The blue one.")).to_be_visible()
    page.get_by_label("Your message").press_sequentially("Is it ")
    wait_until(page, lambda: bool(held))
    with page.expect_response(lambda response: response.request == held[0].request):
        held[0].continue_()
    page.keyboard.type("the ")
    first = page.locator("article[data-seq='1']")
    first.evaluate("article => { article.tabIndex = -1; article.focus() }")
    Message.objects.filter(session=session, seq=1).update(content="Where is my key?")
    versions.edit_answer(session.messages.get(seq=2), "In the door.")
    expect(page.get_by_text("Where is my key?")).to_be_visible()
    expect(first).to_be_focused()
    expect(page.get_by_label("Your message")).to_have_value("Is it the ")


def test_the_menu_says_beforehand_where_a_summary_would_save_nothing(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Hello", "Hello to you", "How are you?", "Well.")
    fill_long(session, exchanges=1, words=400)
    page.route("**/sessions/*/context", lambda _: None)  # who is quick opens it before the meter
    page.goto(f"/c/{session.pk}/")
    act = page.locator("[data-menu=compact]")
    third, long = page.locator('[data-seq="3"]'), page.locator('[data-seq="5"]')
    third.hover()
    with page.expect_request("**/compact"):
        third.get_by_role("button", name="More actions").click()
    expect(page.locator("#message-menu[data-placed]")).to_be_visible()
    place = page.locator("#message-menu").bounding_box()
    expect(act).to_be_disabled()
    expect(act).to_have_accessible_name("Too little to summarize")
    assert page.locator("#message-menu").bounding_box() == place, "the menu has moved"
    act.click(force=True)
    long.hover()
    long.get_by_role("button", name="More actions").click()
    expect(act).to_be_enabled()
    expect(act).to_have_accessible_name("Summarize up to here")
    assert not CompactionRun.objects.exists()
    assert not scripted.requests
