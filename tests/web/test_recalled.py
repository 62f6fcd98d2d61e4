"""What a turn brought back from before the boundary, at its answer."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from chatcore.transfer import importer
from tests.support.browsing import PHONE, send_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import summarize

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOCKER = "My locker at the swimming pool has the number 4711 <b>really</b>."


@pytest.fixture
def talk(session: Session) -> Session:
    """A long talk that begins with a locker; all but its end is summarized."""
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    said = [{"role": "user", "content": LOCKER}, {"role": "assistant", "content": "Noted."}]
    said += [
        {"role": role, "content": f"Word {number}."}
        for number in range(50)
        for role in ("user", "assistant")
    ]
    importer.import_messages(session, said)
    summarize(session, "They talked of words.", boundary_seq=100)
    return session


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [None, pytest.param(PHONE, marks=pytest.mark.slow)])
def test_the_answer_names_its_passages_and_leads_to_their_messages(
    page: Page, talk: Session, scripted: ScriptedModel, viewport: dict[str, int] | None
) -> None:
    if viewport:
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
    scripted.script(Reply(text="It is 4711."))
    page.goto(f"/c/{talk.pk}/")
    send_message(page, "What number has my locker at the swimming pool?")
    line = page.locator(".answer").last.get_by_text("Brought back: 1 passage")
    expect(line).to_be_visible()
    page.reload()
    expect(line).to_be_visible()
    expect(page.locator(".recalled")).to_have_count(1)
    page.locator(".recalled summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".recalled-text")).to_have_text(LOCKER)
    page.keyboard.press("Tab")
    link = page.locator(".recalled-link")
    expect(link).to_be_focused()
    expect(link).to_contain_text("Message 1, ")
    page.keyboard.press("Enter")
    first_message = page.locator("[data-seq='1']")
    expect(first_message).to_be_in_viewport()
    expect(first_message.locator(".words")).to_have_text(LOCKER)


@pytest.mark.slow
def test_an_answer_that_needed_nothing_has_no_such_line(
    page: Page, talk: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello."))
    page.goto(f"/c/{talk.pk}/")
    send_message(page, "Explain monads, please.")
    expect(page.locator(".answer").last).to_have_attribute("data-status", "complete")
    expect(page.locator(".recalled")).to_have_count(0)
