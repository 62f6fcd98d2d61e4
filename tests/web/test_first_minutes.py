"""The first minutes: no model yet, a first message that is refused, and words on their way."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from chatcore.models import Session
from chatcore.sessions.changes import record_session_change
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.browsing import send_message, wait_until
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_message_written_before_there_is_a_model_waits_and_is_sent(
    page: Page, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Good morning."), Reply(text="Here I am."))
    AiModel.objects.update(is_active=False)
    page.goto("/new/")
    expect(page.locator("context-meter")).to_be_hidden()
    send, row = (page.locator(name).bounding_box() for name in (".send:visible", ".composer-row"))
    assert send
    assert row
    assert row["x"] + row["width"] - send["x"] - send["width"] < send["width"], "not at the end"
    send_message(page, "Is anybody there?")
    send_message(page, "Hello?")
    expect(page.locator(".queued-words")).to_have_text(["Is anybody there?", "Hello?"])
    expect(page.locator(".queued-note")).to_have_text("Sent when the model is ready.")
    expect(page.locator("context-meter")).to_be_hidden()
    page.reload()
    expect(page.locator(".queued li")).to_have_count(2)
    assert not Session.objects.exists()
    AiModel.objects.update(is_active=True)
    expect(page.locator(".answer .prose")).to_have_text(["Good morning.", "Here I am."])
    expect(page.locator(".queued li")).to_have_count(0)
    assert Session.objects.count() == 1


@pytest.mark.slow
def test_a_first_message_that_is_refused_leaves_no_chat_and_keeps_its_words(
    page: Page, model: AiModel, scripted: ScriptedModel, tmp_path: Path
) -> None:
    scripted.script(Reply(text="It came."))
    program = tmp_path / "game.exe"
    program.write_bytes(bytes(range(256)) * 8)
    page.goto("/new/")
    page.locator(".composer input[type=file]").set_input_files(program)
    send_message(page, "Look at this")
    expect(page.locator(".chip[data-failed]")).to_be_visible()
    expect(page.get_by_label("Your message")).to_have_value("Look at this")
    expect(page).to_have_url(re.compile(r"/new/$"))
    wait_until(page, lambda: not Session.objects.exists())
    page.get_by_role("button", name="Remove game.exe").click()
    page.get_by_label("Your message").press("Enter")
    expect(page.locator(".answer .prose")).to_have_text("It came.")
    assert Session.objects.count() == 1


def test_words_are_seen_at_once_and_come_back_if_they_are_refused(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    waiting: list[Route] = []
    scripted.script(Reply(text="Yes."))
    page.route(re.compile("/messages$"), lambda route: waiting.append(route))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Is it quick?")
    echo = page.locator(".echo[aria-busy=true] .words")
    expect(echo).to_have_text("Is it quick?")
    expect(page.get_by_label("Your message")).to_have_value("")
    wait_until(page, lambda: bool(waiting))
    waiting.pop().fulfill(status=503, json={"type": "overloaded", "title": "Full"})
    expect(page.get_by_label("Your message")).to_have_value("Is it quick?")
    expect(echo).to_have_count(0)
    page.get_by_label("Your message").press("Enter")
    wait_until(page, lambda: bool(waiting))
    page.reload()  # the message waits in the line now, and is sent again under the same key
    wait_until(page, lambda: len(waiting) == 2)
    waiting.pop().continue_()
    expect(page.locator(".answer .prose")).to_have_text("Yes.")
    expect(page.locator(".user .words")).to_have_text(["Is it quick?"])


@pytest.mark.slow
def test_a_message_that_waits_offline_has_its_icons(page: Page, session: Session) -> None:
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".meter-used")).not_to_have_text("–")
    page.context.set_offline(True)
    send_message(page, "Later")
    item = page.locator(".queued li")
    expect(item).to_have_count(1)
    for icon in item.locator("svg").all():
        assert icon.evaluate("svg => svg.getBBox().width > 0")


def test_the_sample_shows_how_it_remembers_without_a_model(page: Page, live: Live) -> None:
    page.goto("/new/")
    page.get_by_role("button", name="See how it remembers").click()
    expect(page.locator(".message")).to_have_count(12)
    expect(page.locator(".message[data-compacted]")).to_have_count(8)
    expect(page.locator(".answer").last).to_contain_text("number R-2291")
    page.get_by_role("button", name="Show the summary").click()
    card = page.locator(".card:not([data-superseded])")
    expect(card.locator(".card-count")).to_have_text("8 messages")
    expect(card.locator(".card-missing")).to_contain_text("on Saturday, 18 July.")
    card.get_by_role("tab", name="Changes").click()
    expect(card.locator("[data-view=changes]")).to_contain_text("Clara bakes the cake")
    card.get_by_role("button", name="Undo").click()
    expect(page.locator(".message[data-compacted]")).to_have_count(4)


def test_buttons_of_the_sample_are_there_when_the_script_is(page: Page, live: Live) -> None:
    """The server sends them with the messages, and a click before the script came was lost."""
    held: list[Route] = []
    page.goto("/new/")
    page.route("**/chat*.js", lambda route: held.append(route))
    page.get_by_role("button", name="See how it remembers").click()
    expect(page.locator(".message[data-compacted]")).to_have_count(8)
    button = page.get_by_role("button", name="Show the summary", include_hidden=True)
    expect(button).to_be_hidden()
    for route in held:
        route.continue_()
    button.click()
    card = page.locator(".card:not([data-superseded])")
    expect(card.get_by_role("tab", name="Changes")).to_be_visible()


def test_a_summary_that_cannot_be_fetched_is_opened_when_it_comes(page: Page, live: Live) -> None:
    """Its button said nothing, and the card came closed."""
    runs = "**/compactions?status=applied*"
    page.route(runs, lambda route: route.fulfill(status=503, json={}))
    page.goto("/new/")
    page.get_by_role("button", name="See how it remembers").click()
    page.get_by_role("button", name="Show the summary").click()
    expect(page.locator(".snackbar")).to_contain_text("cannot use its database")
    page.unroute(runs)
    record_session_change(Session.objects.get().pk, {"title": "Lake Garda"})
    card = page.locator(".card:not([data-superseded])")
    expect(card.get_by_role("tab", name="Changes")).to_be_visible()


def test_the_question_of_the_sample_is_sent_with_one_click_and_a_draft_stays(
    page: Page, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text="Clara has to know.")
    page.goto("/new/")
    page.get_by_role("button", name="See how it remembers").click()
    page.get_by_label("Your message").fill("Not yet")
    page.get_by_role("button", name="What is our plan for rain").click()
    expect(page.locator(".answer .prose").last).to_have_text("Clara has to know.")
    expect(page.locator(".user .words").last).to_have_text(re.compile("^What is our plan"))
    expect(page.get_by_label("Your message")).to_have_value("Not yet")


def test_the_meter_of_the_sample_has_its_normal_color(page: Page, model: AiModel) -> None:
    page.goto("/new/")
    page.get_by_role("button", name="See how it remembers").click()
    expect(page.locator("context-meter")).to_have_attribute("data-level", "ok")
    expect(page.locator(".meter-used")).to_have_text("nearly empty")
    page.get_by_role("button", name="Show what the model reads now").click()
    expect(page.get_by_role("dialog", name="What the model sees now")).to_contain_text("R-2291")


@pytest.mark.slow
def test_an_example_is_written_into_the_field_and_not_sent(page: Page, model: AiModel) -> None:
    page.goto("/new/")
    page.get_by_role("button", name="Explain compound interest").click()
    field = page.get_by_label("Your message")
    expect(field).to_have_value("Explain compound interest as if I were twelve")
    expect(field).to_be_focused()
    assert not Session.objects.exists()


@pytest.mark.slow
def test_a_link_signs_in_on_another_device_once(page: Page, model: AiModel) -> None:
    page.goto("/settings/")
    page.get_by_role("button", name="Sign in on another device").click()
    expect(page.get_by_alt_text("Picture with the link")).to_be_visible()
    expect(page.get_by_text("This address is of this computer only.")).to_be_visible()
    link = page.locator("#device-link code").inner_text()
    browser = page.context.browser
    assert browser
    phone = browser.new_context().new_page()
    phone.goto(link)
    expect(phone.get_by_label("Your message")).to_be_visible()
    phone.goto(link)
    expect(phone.get_by_role("heading", name="This link was already used")).to_be_visible()
    phone.context.close()
