"""The page while the server is full or its database is busy: a sentence, and the text is kept."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from chatcore.models import Message, Session
from chatcore.turns import control
from models_registry.models import AiModel
from tests.support.browsing import PausedChunks, send_message
from tests.support.outages import lock_sqlite
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_message_that_a_full_server_refuses_stays_in_the_composer(
    page: Page, session: Session, user: User, model: AiModel, scripted: ScriptedModel, settings: Any
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_AT_ONCE": 1}
    chunks = PausedChunks("One ", "two ", "three.")
    scripted.script(Reply(chunks=chunks), Reply(text="Here I am."))
    other = Session.objects.create(owner=user, model=model)
    turn = control.start_turn(other, content="Hold the only place.")
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Is there room?")
    expect(page.locator("#snackbar")).to_contain_text("The server has too many answers to write")
    expect(page.get_by_label("Your message")).to_have_value("Is there room?")
    assert not Message.objects.filter(session=session).exists()
    chunks.resume.set()
    control.wait_for_turn(turn.pk)
    page.get_by_label("Your message").press("Enter")
    expect(page.locator(".answer .prose")).to_contain_text("Here I am.")
    expect(page.get_by_label("Your message")).to_have_value("")


@pytest.mark.slow
def test_a_queued_message_waits_until_a_full_server_has_room(
    page: Page, session: Session, user: User, model: AiModel, scripted: ScriptedModel, settings: Any
) -> None:
    first, other = PausedChunks("One ", "two."), PausedChunks("Three ", "four.")
    scripted.script(Reply(chunks=first), Reply(chunks=other), Reply(text="Now I am."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "First")
    expect(page.locator(".answer .prose")).to_contain_text("One")
    turn = control.start_turn(
        Session.objects.create(owner=user, model=model), content="Hold the only place."
    )
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_AT_ONCE": 1}
    send_message(page, "Second")
    expect(page.locator(".queued li")).to_have_count(1)
    with page.expect_response("**/messages") as refusal:
        first.resume.set()
    assert refusal.value.status == 503
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    expect(page.locator(".queued li")).to_have_count(1)
    other.resume.set()
    control.wait_for_turn(turn.pk)
    expect(page.locator(".answer .prose").last).to_contain_text("Now I am.")
    expect(page.locator(".queued li")).to_have_count(0)


def test_a_part_of_a_page_that_cannot_be_stored_is_told_in_a_line(
    page: Page, session: Session
) -> None:
    page.goto(f"/c/{session.pk}/")
    row = page.locator(f"[href='/c/{session.pk}/']").first
    expect(row).to_be_visible()
    expect(page.locator(".meter-used")).not_to_have_text("–")  # the page asks for nothing more
    with lock_sqlite():
        page.evaluate(
            """path => htmx.ajax("POST", path, {swap: "none", values: {on: "true"}})""",
            f"/c/{session.pk}/pin/",
        )
        expect(page.locator("#snackbar")).to_contain_text("The server cannot use its database")
    session.refresh_from_db()
    assert not session.pinned
