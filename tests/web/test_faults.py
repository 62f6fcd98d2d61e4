"""Faults that the page must heal by itself, without losing a word.

A connection breaks, the server dies, the sign-in expires, another tab is open.
"""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page, Route, expect

from chatcore.events import retention
from chatcore.models import Message, Session, SessionEvent
from chatcore.turns import control
from tests.conftest import Live
from tests.support.browsing import (
    PausedChunks,
    send_message,
    store_exchange,
    wait_until,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import serve
from tests.support.served_streams import WITHIN, find_web_processes, register_model
from tests.support.tcp_proxy import TcpProxy

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def list_questions(scripted: ScriptedModel) -> list[str]:
    """Return the newest message of each request that the model received."""
    return [
        request.json["messages"][-1]["content"]
        for request in scripted.requests
        if request.json.get("messages")
    ]


@pytest.fixture
def connection(page: Page, live: Live) -> Iterator[TcpProxy]:
    """The connection from the page to the server, which a test can break."""
    with TcpProxy(live.url) as connection:
        yield connection


def test_a_line_that_breaks_in_the_middle_of_an_answer_loses_and_doubles_nothing(
    page: Page, session: Session, scripted: ScriptedModel, connection: TcpProxy
) -> None:
    chunks = PausedChunks(*(f"word{number} " for number in range(30)))
    scripted.script(Reply(chunks=chunks))
    page.goto(f"{connection.url}/c/{session.pk}/")
    send_message(page, "Count")
    expect(page.locator(".answer .prose")).to_contain_text("word5")
    connection.disconnect()
    expect(page.locator(".connection")).to_contain_text("No connection to the server.")
    expect(page.locator(".answer .prose")).to_contain_text("word5")
    chunks.resume.set()
    wait_until(page, lambda: Message.objects.filter(status="complete", role="assistant").exists())
    connection.reconnect()
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".answer .prose")).to_have_text("".join(chunks).strip())
    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".connection")).to_be_hidden()


def test_what_is_sent_without_a_connection_waits_and_goes_in_its_order(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="One."), Reply(text="Two."))
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    page.context.set_offline(True)
    for words in ("First?", "Second?"):
        send_message(page, words)
        expect(page.get_by_label("Your message")).to_have_value("")
    expect(page.locator(".queued-words")).to_have_text(["First?", "Second?"])
    expect(page.locator(".connection")).to_contain_text("Your messages are kept")
    page.context.set_offline(False)
    expect(page.locator(".user .words")).to_have_text(["First?", "Second?"])
    expect(page.locator(".answer .prose")).to_have_text(["One.", "Two."])
    expect(page.locator(".queued-item")).to_have_count(0)
    expect(page.locator(".connection")).to_be_hidden()
    assert list_questions(scripted) == ["First?", "Second?"]


@pytest.mark.slow
def test_a_network_that_goes_and_comes_back_continues_the_answer(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks("Here ", "and ", "there.")
    scripted.script(Reply(chunks=chunks))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Where?")
    expect(page.locator(".answer .prose")).to_contain_text("and")
    page.context.set_offline(True)
    expect(page.locator(".connection")).to_be_visible()
    chunks.resume.set()
    wait_until(page, lambda: Message.objects.filter(status="complete", role="assistant").exists())
    page.context.set_offline(False)
    expect(page.locator(".answer .prose")).to_have_text("Here and there.")
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".message")).to_have_count(2)


def lose_response(route: Route) -> None:
    """Let the server store the message, and lose its response."""
    route.fetch()
    route.abort()


@pytest.mark.slow
def test_a_message_whose_arrival_nobody_heard_of_is_said_once(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks("One ", "answer.")
    scripted.script(Reply(chunks=chunks))
    page.goto(f"/c/{session.pk}/")
    page.route("**/messages", lose_response, times=1)
    send_message(page, "Once")
    expect(page.locator(".user .words")).to_have_text(["Once"])
    expect(page.locator(".queued-item")).to_have_count(0)
    expect(page.get_by_label("Your message")).to_have_value("")
    chunks.resume.set()
    expect(page.locator(".answer .prose")).to_have_text(["One answer."])
    send_message(page, "Once")  # the same words may be meant again
    expect(page.locator(".answer")).to_have_count(2)
    assert list_questions(scripted) == ["Once", "Once"]


@pytest.mark.slow
def test_a_message_that_did_not_arrive_outlives_the_page_and_is_said_once(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    page.goto(f"/c/{session.pk}/")
    page.route("**/messages", lambda route: route.abort())
    send_message(page, "Do not lose me")
    expect(page.locator(".queued-words")).to_have_text(["Do not lose me"])
    page.reload()
    expect(page.locator(".queued-words")).to_have_text(["Do not lose me"])
    page.unroute_all()
    expect(page.locator(".user .words")).to_have_text(["Do not lose me"])
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".queued-item")).to_have_count(0)
    assert list_questions(scripted) == ["Do not lose me"]


@pytest.mark.slow
def test_a_page_that_is_left_while_it_sends_sends_the_same_again(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    page.goto(f"/c/{session.pk}/")
    page.route("**/messages", lambda route: route.fetch())  # and no answer ever
    send_message(page, "Once")
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".user .words")).to_have_text(["Once"])
    page.unroute_all()
    page.reload()
    if page.get_by_label(
        "Your message"
    ).input_value():  # else the page queued it with its last breath
        page.get_by_label("Your message").press("Enter")
    expect(page.get_by_label("Your message")).to_have_value("")
    expect(page.locator(".queued-item")).to_have_count(0)
    assert Message.objects.filter(role="user").count() == 1
    assert list_questions(scripted) == ["Once"]


def test_a_lost_sign_in_leads_back_to_the_words(
    page: Page, session: Session, scripted: ScriptedModel, user: User
) -> None:
    page.goto(f"/c/{session.pk}/")
    page.context.clear_cookies(name="sessionid")
    send_message(page, "Already sent")
    line = page.locator(".connection")
    expect(line).to_contain_text("You are signed out. Your text is kept.")
    page.get_by_label("Your message").fill("Half a thou")
    line.get_by_role("link", name="Sign in").click()
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("alice's password")
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"/c/{session.pk}/")
    expect(page.locator(".user .words")).to_have_text(["Already sent"])
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.get_by_label("Your message")).to_have_value("Half a thou")
    assert list_questions(scripted) == ["Already sent"]


@pytest.mark.slow
def test_signing_in_in_another_tab_is_enough(
    page: Page, session: Session, scripted: ScriptedModel, user: User
) -> None:
    Session.objects.filter(pk=session.pk).update(title="Old name")
    page.goto(f"/c/{session.pk}/")
    page.context.clear_cookies()
    page.get_by_role(
        "button", name="Archived"
    ).click()  # a piece of the page, not the page to sign in
    expect(page.locator(".connection")).to_contain_text("You are signed out")
    expect(page.get_by_role("link", name="Old name")).to_be_visible()
    send_message(page, "Still here")
    expect(page.locator(".queued-words")).to_have_text(["Still here"])
    other = page.context.new_page()
    other.goto("/login/")
    other.get_by_label("Name").fill("alice")
    other.get_by_label("Password").fill("alice's password")
    other.get_by_role("button", name="Sign in").click()
    expect(other.locator(".chat-title")).to_be_visible()
    expect(page.locator(".user .words")).to_have_text(
        ["Still here"], timeout=40_000
    )  # it asks four times a minute
    expect(page.locator(".connection")).to_be_hidden()
    assert list_questions(scripted) == ["Still here"]


@pytest.mark.slow
def test_two_tabs_share_what_is_written_and_send_it_once(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks("First ", "answer.")
    scripted.script(Reply(chunks=chunks), Reply(text="Second answer."))
    page.goto(f"/c/{session.pk}/")
    other = page.context.new_page()
    other.goto(f"/c/{session.pk}/")
    page.get_by_label("Your message").fill("First?")
    expect(other.get_by_label("Your message")).to_have_value("First?")
    page.get_by_label("Your message").press("Enter")
    expect(other.get_by_label("Your message")).to_have_value("")
    send_message(page, "Second?")
    for tab in (page, other):
        expect(tab.locator(".answer .prose")).to_contain_text("First")
        expect(tab.locator(".queued-words")).to_have_text(["Second?"])
    other.get_by_label("Your message").press_sequentially("Half a thou")
    chunks.resume.set()
    for tab in (page, other):
        expect(tab.locator(".answer .prose")).to_have_text(["First answer.", "Second answer."])
        expect(tab.locator(".queued-item")).to_have_count(0)
        expect(tab.get_by_label("Your message")).to_have_value("Half a thou")
    assert list_questions(scripted) == ["First?", "Second?"]


@pytest.mark.slow
def test_a_page_that_slept_for_hours_shows_all_that_was_said(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Before", "Said before")
    page.clock.install()
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".answer .prose")).to_have_text(["Said before"])
    page.context.set_offline(True)
    expect(page.locator(".connection")).to_be_attached()
    scripted.script(Reply(chunks=["Said ", "in the ", "night."]))
    control.wait_for_turn(control.start_turn(session, content="Are you awake?").pk, 30)
    SessionEvent.objects.filter(session=session).update(at=timezone.now() - timedelta(hours=2))
    assert retention.prune_events()
    page.clock.fast_forward("02:00:00")
    page.context.set_offline(False)
    expect(page.locator(".answer .prose")).to_have_text(["Said before", "Said in the night."])
    expect(page.locator(".user .words")).to_have_text(["Before", "Are you awake?"])
    expect(page.locator(".message")).to_have_count(4)
    expect(page.locator(".answer[data-status=complete]")).to_have_count(2)


@pytest.mark.slow
def test_a_page_whose_events_are_no_longer_kept_shows_what_is_stored(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Before", "Said before")
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".answer .prose")).to_have_text(["Said before"])
    page.context.set_offline(True)
    expect(page.locator(".connection")).to_be_attached()
    control.wait_for_turn(control.start_turn(session, content="Are you there?").pk, 30)
    days_ago = timezone.now() - timedelta(days=9)
    SessionEvent.objects.filter(session=session).update(at=days_ago)
    session.turns.update(finished_at=days_ago)
    retention.prune_events()
    assert not session.events.exists()
    page.context.set_offline(False)
    expect(page.locator(".user .words")).to_have_text(["Before", "Are you there?"])
    expect(page.locator(".answer[data-status=complete]")).to_have_count(2)


@pytest.mark.slow
def test_going_back_to_a_page_shows_what_was_said_meanwhile(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Before", "Said before")
    page.goto(f"/c/{session.pk}/")
    page.get_by_label("Your message").fill("Half a thou")
    page.get_by_role("link", name="alice").click()
    expect(page.get_by_role("heading", name="API tokens")).to_be_visible()
    scripted.script(Reply(text="Said meanwhile."))
    control.wait_for_turn(control.start_turn(session, content="Elsewhere").pk, 30)
    page.go_back(wait_until="commit")
    expect(page.locator(".answer .prose")).to_have_text(["Said before", "Said meanwhile."])
    expect(page.locator(".answer[data-status=complete]")).to_have_count(2)
    expect(page.get_by_label("Your message")).to_have_value("Half a thou")


@pytest.mark.slow  # tests above break the connection, and faults/ kills without a page
@pytest.mark.faults
def test_a_server_that_is_killed_in_the_middle_and_comes_back_is_gone_on_with(
    browser: Browser, scripted: ScriptedModel, tmp_path: Path
) -> None:
    scripted.script(
        Reply(chunks=[f"word{number} " for number in range(300)], chunk_delay=0.1),
        Reply(text="Here I am again."),
    )
    with serve(tmp_path, "--no-local-model") as product:
        link = product.sign_in_link
        register_model(product, scripted)
        page = browser.new_context(base_url=product.url).new_page()
        page.goto(link)
        send_message(page, "Count")
        expect(page.locator(".answer .prose")).to_contain_text("word9", timeout=60_000)
        send_message(page, "Are you there?")
        # A quick machine would have another process there before the page says a word.
        os.kill(product.pid, SIGSTOP)
        os.kill(find_web_processes(product)[0], SIGKILL)
        expect(page.locator(".connection")).to_contain_text("No connection to the server.")
        os.kill(product.pid, SIGCONT)
        expect(page.locator(".answer")).to_have_attribute(
            "data-status", "interrupted", timeout=WITHIN * 1000
        )
        expect(page.locator(".connection")).to_be_hidden()
        expect(page.get_by_text("Stopped here. The text so far is kept.")).to_be_visible()
        assert (page.locator(".answer .prose").text_content() or "").startswith(
            "word0 word1 word2 "
        )
        expect(page.locator(".queued-note")).to_have_text(
            "On hold, because the last answer failed."
        )
        page.get_by_role("button", name="Send now").click()
        expect(page.locator(".answer .prose").last).to_have_text("Here I am again.")
        expect(page.locator(".user .words")).to_have_text(["Count", "Are you there?"])
        page.context.close()
