"""On the page, each answer shows the request that it came from."""

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from chatcore.context import revisions
from chatcore.contrib.sent_requests.extension import SentRequests
from chatcore.models import Session
from chatcore.turns import deletion
from tests.support.browsing import store_exchange
from tests.support.compaction_sessions import list_chat_calls, say
from tests.support.scripted_model import ScriptedModel
from tests.support.stored_talk import summarize

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def open_request(page: Page, number: int) -> Locator:
    """Open the request of the answer with this place on the page, by keyboard alone."""
    answer = page.locator("article.answer").nth(number)
    answer.get_by_role("button", name="More actions").press("Enter")
    page.get_by_role("button", name="See what was sent").press("Enter")
    return page.get_by_role("dialog", name="What was sent for this answer")


@pytest.mark.slow
def test_an_answer_shows_what_was_sent_for_it_after_the_summary_has_changed(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(system_prompt="Be <b>brief</b>.")
    say(session, "I like tea.")
    summarize(session, "They like tea.", boundary_seq=3)
    say(session, "What do I like?")
    revisions.reword_summary(session.pk, base_version=1, summary="They like coffee.")
    page.goto(f"/c/{session.pk}/")
    dialog = open_request(page, 1)
    expect(dialog.locator(".panel-facts")).to_contain_text("test-model · 1 message · ")
    system = dialog.locator("[data-sent=system] pre")
    expect(system).to_contain_text("Be <b>brief</b>.")
    expect(system).to_contain_text("They like tea.")
    sent_system = list_chat_calls(scripted)[1].json["messages"][0]["content"]
    assert system.inner_text() == sent_system
    expect(dialog.locator(".sent-messages pre")).to_have_text(["What do I like?"])
    dialog.get_by_role("button", name="Copy as JSON").click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_attached()
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))["context_version"] == 1
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    dialog = open_request(page, 0)
    expect(system).to_have_text("Be <b>brief</b>.")
    expect(dialog.locator(".sent-messages pre")).to_have_text(["I like tea."])


@pytest.mark.slow
def test_what_was_deleted_is_counted_and_what_was_imported_is_not_known(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    store_exchange(session, "Imported?", "Yes.")
    say(session, "My secret is swordfish.")
    say(session, "And then?")
    deletion.delete_message(session.messages.get(seq=3))
    page.goto(f"/c/{session.pk}/")
    dialog = open_request(page, 0)
    expect(dialog.locator(".panel-facts")).to_contain_text("It was imported")
    page.keyboard.press("Escape")
    dialog = open_request(page, 2)
    expect(dialog.locator(".panel-removed")).to_contain_text("a message was deleted since: 2")
    expect(dialog).not_to_contain_text("swordfish")


@pytest.mark.slow
def test_a_question_has_no_request_of_its_own(page: Page, session: Session) -> None:
    say(session, "Tea?")
    page.goto(f"/c/{session.pk}/")
    page.locator("article.user").get_by_role("button", name="More actions").press("Enter")
    expect(page.get_by_role("button", name="Fork from here")).to_be_visible()
    expect(page.get_by_role("button", name="See what was sent")).to_be_hidden()


def test_the_menu_of_an_answer_opens_without_the_app(
    page: Page, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SentRequests, "build_page_parts", lambda *arguments: [])
    errors: list[object] = []
    page.on("pageerror", lambda error: errors.append(error))
    store_exchange(session, "Tea?", "Yes.")
    page.goto(f"/c/{session.pk}/")
    page.locator("article.answer").get_by_role("button", name="More actions").press("Enter")
    expect(page.get_by_role("button", name="Too little to summarize")).to_be_visible()
    expect(page.get_by_role("button", name="See what was sent")).to_have_count(0)
    assert not errors
