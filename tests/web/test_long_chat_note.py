"""What the page says of a chat that is longer than its model can read at once."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from chatcore.transfer import exporter
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.browsing import send_message, store_exchange
from tests.support.page_compactions import execute_run, expect_request
from tests.web.test_axe import find_objections

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def narrow(window: int) -> None:
    AiModel.objects.update(context_window_size=window)


@pytest.mark.slow
def test_a_chat_that_was_imported_says_what_the_next_message_does_and_it_does_that(
    page: Page, full: Session, tmp_path: Path
) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(exporter.export_session(full)))
    narrow(4096)
    page.goto("/new/")
    page.locator("#import-file").set_input_files(file)
    page.wait_for_url("**/c/**")
    note = page.get_by_role("region", name="The next message")
    words = note.get_by_role("status")
    expect(words).to_have_text(
        re.compile(
            r"^This chat is longer than test-model can read at once \([\d,]+ of 4,096 tokens\)\. "
            r"Before the next answer the older \d+ messages are summarized; nothing is lost\.$"
        )
    )
    expect(note.get_by_role("button", name="Summarize now")).to_be_visible()
    assert not find_objections(page)
    announced = re.search(r"older (\d+)", words.inner_text())
    assert announced
    send_message(page, "And the flight?")
    expect(note).to_be_hidden()
    expect(page.locator(".answer[data-status=complete]")).to_have_count(8)
    run = CompactionRun.objects.exclude(session=full).get(trigger="before_request")
    assert (run.status, run.messages_compacted) == ("applied", int(announced[1]))


@pytest.mark.slow
def test_the_button_summarizes_at_once(page: Page, full: Session) -> None:
    narrow(4096)
    page.goto(f"/c/{full.pk}/")
    note = page.get_by_role("region", name="The next message")
    with expect_request(page):
        note.get_by_role("button", name="Summarize now").click()
    expect(note).to_be_hidden()
    execute_run(CompactionRun.objects.get())
    expect(page.get_by_role("region", name="Summary").get_by_role("status")).to_contain_text(
        "older messages are now a summary"
    )
    page.reload()
    expect(page.locator(".meter-used")).not_to_have_text("–")
    expect(note).to_be_hidden()


@pytest.mark.slow
def test_a_chat_that_is_not_summarized_by_itself_says_so(page: Page, full: Session) -> None:
    narrow(4096)
    Session.objects.filter(pk=full.pk).update(auto_compact=False)
    page.goto(f"/c/{full.pk}/")
    expect(
        page.get_by_role("region", name="The next message").get_by_role("status")
    ).to_contain_text(re.compile(r"is longer than .* It is not summarized automatically\.$"))


@pytest.mark.slow
def test_under_the_threshold_nothing_is_said_and_nothing_is_asked(
    page: Page, session: Session
) -> None:
    store_exchange(session, "Hello", "Hello to you")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response("**/context") as answer:
        page.goto(f"/c/{session.pk}/")
    assert answer.value.json()["should_compact"] is False
    expect(page.locator(".meter-used")).not_to_have_text("–")
    expect(page.get_by_role("region", name="The next message")).to_be_hidden()
    assert not [url for url in asked if url.endswith("/compact")]
