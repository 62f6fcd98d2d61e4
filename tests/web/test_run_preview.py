"""What a summary made now would do, in the meter's panel."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.browsing import store_exchange, wait_until
from tests.support.page_compactions import fill_long

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
def test_the_panel_says_what_a_summary_takes_in_and_leads_to_what_stays(
    page: Page, session: Session
) -> None:
    fill_long(session)
    run = engine.preview_run(session.pk)
    page.goto(f"/c/{session.pk}/")
    held: list[Route] = []
    page.route("**/compact", lambda route: held.append(route))
    page.locator(".meter-button").click()
    act = page.get_by_role("button", name="Summarize now")
    wait_until(page, lambda: held)
    place = act.bounding_box()
    held[0].continue_()
    preview = page.locator(".context-preview")
    expect(preview).to_contain_text(
        re.compile(rf"takes in {run.messages_compacted} messages\. Then it is .* full\.")
    )
    assert act.bounding_box() == place, "what is about to be pressed has moved"
    preview.get_by_role("button", name="Show what stays").click()
    expect(page.locator("#context")).to_be_hidden()
    expect(page.locator(f'[data-seq="{run.boundary_after}"]')).to_be_focused()
    assert not CompactionRun.objects.exists()


@pytest.mark.slow
def test_it_says_nothing_where_there_is_nothing_to_summarize(page: Page, session: Session) -> None:
    store_exchange(session, "Hello", "Hello to you")
    page.goto(f"/c/{session.pk}/")
    with page.expect_response("**/compact") as answer:
        page.locator(".meter-button").click()
    assert answer.value.json()["status"] == "skipped"
    expect(page.locator(".context-preview")).to_be_hidden()
