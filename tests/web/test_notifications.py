"""What somebody hears of an answer that ends while they look elsewhere."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import PausedChunks, send_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# The headless browser shows no notification, and is never hidden: both are played.
STAGE = """
  window.shown = [];
  window.asked = 0;
  window.Notification = class extends EventTarget {
    static permission = sessionStorage.getItem("permission") ?? "default";
    static async requestPermission() {
      window.asked += 1;
      sessionStorage.setItem("permission", "granted");
      return (this.permission = sessionStorage.getItem("refuses") ? "denied" : "granted");
    }
    constructor(title, { body }) {
      super();
      window.shown.push(`${title}: ${body}`);
      window.last = this;
    }
    close() {}
  };
  window.focus = () => (window.wasFocused = true);
  window.look = (elsewhere) => {
    Object.defineProperty(document, "hidden", { value: elsewhere, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  };
"""


@pytest.fixture
def stage(page: Page) -> Page:
    page.add_init_script(STAGE)
    page.clock.install()
    return page


def answer_while_away(page: Page, scripted: ScriptedModel, *, seconds: int) -> None:
    """Let an answer of so many seconds end while the page is hidden."""
    chunks = PausedChunks("One ", "two")
    scripted.script(Reply(chunks=chunks))
    send_message(page, "Count slowly")
    expect(page.locator(".answer").last).to_have_attribute("data-status", "streaming")
    page.evaluate("look(true)")
    page.clock.fast_forward(seconds * 1000)
    chunks.resume.set()
    expect(page.locator(".answer").last).to_have_attribute("data-status", "complete")


@pytest.mark.slow
def test_a_long_answer_is_told_of_once_the_person_wants_it(
    stage: Page, session: Session, scripted: ScriptedModel
) -> None:
    page = stage
    page.goto(f"/c/{session.pk}/")
    answer_while_away(page, scripted, seconds=11)
    expect(page).to_have_title("● Count slowly · Chatcore")
    assert page.evaluate("[shown.length, asked]") == [0, 0], "nobody has asked for it"
    page.evaluate("look(false)")
    expect(page).to_have_title("Count slowly · Chatcore")
    page.goto("/settings/")
    page.get_by_label("Tell me when a long answer is there").check()
    assert page.evaluate("asked") == 1
    page.goto(f"/c/{session.pk}/")
    answer_while_away(page, scripted, seconds=2)
    expect(page).to_have_title("● Count slowly · Chatcore")
    assert page.evaluate("shown") == []
    page.evaluate("look(false)")
    answer_while_away(page, scripted, seconds=11)
    page.wait_for_function("shown.length")
    assert page.evaluate("shown") == ["Count slowly: The answer has ended."]
    page.evaluate("last.dispatchEvent(new Event('click'))")
    assert page.evaluate("wasFocused")


@pytest.mark.slow
def test_a_browser_that_refuses_says_so(stage: Page) -> None:
    stage.goto("/settings/")
    stage.evaluate("sessionStorage.setItem('refuses', '1')")
    stage.get_by_label("Tell me when a long answer is there").click()
    expect(stage.get_by_text("The browser does not allow it.")).to_be_visible()
    expect(stage.get_by_label("Tell me when a long answer is there")).not_to_be_checked()
