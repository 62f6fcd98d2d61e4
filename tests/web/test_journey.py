"""The promise as users see it, in Chromium with a real language model.

A chat fills its context, compacts itself, is rewound and goes on.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browsing import send_message
from tests.support.served_product import ROOT, STORY, ServedProduct, serve, wait_for

pytestmark = [pytest.mark.model, pytest.mark.browser, pytest.mark.slow]

WINDOW = 2048
ANSWER_TOKENS = 48
# So that there is time to stop it.
LONG_TASK = (
    "First tell me the history of baking, century by century, in at least two thousand words."
)
# A summary reads the whole window and may be written four times, in parts. An answer of
# ANSWER_TOKENS takes a fraction of that, so a multiple of its time bounds whatever comes next.
PATIENCE_IN_ANSWERS = 80
MANUAL_TRIES = 4
SHOTS = ROOT / "test-results"
VIEWPORTS = {"wide": (1280, 860), "phone": (360, 780)}


@pytest.fixture
def product(tmp_path: Path) -> Iterator[ServedProduct]:
    """A server for one test, because its sign-in link works once."""
    with serve(
        tmp_path, CHATCORE_LOCAL_MODEL="0.5b", CHATCORE_LOCAL_MODEL_WINDOW=str(WINDOW)
    ) as product:
        wait_for(lambda: any("embedded model is ready" in line for line in product.lines), 600)
        yield product


@pytest.fixture
def page(product: ServedProduct, browser: Browser) -> Iterator[Page]:
    """A page that is signed in by the printed link. A failing script fails the test."""
    page = browser.new_page(viewport={"width": 1280, "height": 860}, base_url=product.url)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(product.sign_in_link)
    yield page
    page.close()
    assert errors == []


def test_a_chat_fills_optimizes_itself_is_undone_and_goes_on(page: Page) -> None:

    # The first answer streams, and the meter moves.
    with page.expect_navigation():
        page.get_by_role("link", name="New chat").first.click()
    send_message(page, f"{STORY[0]} {LONG_TASK}")
    assert wait_for_growth(page)
    take_screenshot(page, "1-streaming")
    keep_answers_short(page)
    page.keyboard.press("Escape")
    expect(page.locator(".answer")).to_have_attribute("data-status", "interrupted")
    first_percent = read_meter(page)
    assert first_percent > 0

    # How fast is the model here and now? Every later wait is a multiple of this.
    start = time.monotonic()
    send_message(page, write_note(1))
    expect_answers(page, 1, timeout=600_000)
    patience = max(60.0, PATIENCE_IN_ANSWERS * (time.monotonic() - start)) * 1_000
    page.set_default_timeout(patience)

    # Note after note, it summarizes by itself while the composer stays open.
    count = 1
    while (usage := read_context(page))["estimated_input_tokens"] < usage["threshold_tokens"]:
        count += 1
        send_message(page, write_note(count))
        expect_answers(page, count, timeout=patience)
    assert read_meter(page) > first_percent
    optimizing = page.get_by_text("Making room: the older messages")
    expect(optimizing).to_be_visible(timeout=patience)
    expect(page.get_by_label("Your message")).to_be_enabled()
    full_percent = read_meter(page)
    take_screenshot(page, "2-optimizing")
    expect(optimizing).to_be_hidden(timeout=patience)
    expect(page.locator(".message")).to_have_count(2 + 2 * count)

    # The smallest model may fail at a summary, also when it is asked again. The promise is then
    # that nothing changes and that the talk goes on.
    if request_summary(page, patience):
        look_at_card_and_undo(page, full_percent)
    else:
        assert all(run["status"] != "applied" and run["error"] for run in list_runs(page))
    assert read_session(page)["compacted_summary"] is None
    send_message(page, "How many guests do we expect?")
    expect_answers(page, count + 1, timeout=patience)
    take_screenshot(page, "5-on")


def look_at_card_and_undo(page: Page, full_percent: int) -> None:
    """Check that the card shows the stored summary at the boundary, and undo it."""
    card = page.locator(".card")
    expect(card).to_contain_text("The model sees a summary of the messages above")
    expect(card.locator("+ .message")).to_have_attribute(
        "data-seq", str(read_session(page)["compact_boundary_seq"])
    )
    wait_for(lambda: read_meter(page) < full_percent, 60)
    card.locator("summary").click()
    expect(card.locator(".card-summary")).to_be_visible()
    assert keep_letters(card.locator(".card-summary").inner_text())[:40] in keep_letters(
        read_session(page)["compacted_summary"]
    )
    take_screenshot(page, "3-card", at=card)
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_count(0)
    take_screenshot(page, "4-undone")


def write_note(number: int) -> str:
    """Write two notes with a number, because the small model copies repetitions."""
    lines = " ".join(STORY[(2 * number + more) % len(STORY)] for more in (0, 1))
    return f"Note {number}. {lines} Please confirm note {number} in one short sentence."


def wait_for_growth(page: Page) -> bool:
    """Return True when the streaming answer was seen at three growing lengths."""
    words = page.locator(".answer[data-status=streaming] .prose")
    seen = [0]
    while len(seen) < 4:
        if (length := len(words.inner_text())) != seen[-1]:
            seen.append(length)
    return seen == sorted(seen)


def expect_answers(page: Page, count: int, *, timeout: float) -> None:
    expect(page.locator(".answer[data-status=complete]")).to_have_count(count, timeout=timeout)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def request_summary(page: Page, patience: float) -> bool:
    """Request a summary by hand until there is one, and return whether there is."""
    for _ in range(MANUAL_TRIES):
        if read_session(page)["compacted_summary"]:
            return True
        send_message(page, "/compact in three short sentences")
        wait_for(
            lambda: all(run["status"] not in ("queued", "running") for run in list_runs(page)),
            patience / 1_000,
        )
    return bool(read_session(page)["compacted_summary"])


def list_runs(page: Page) -> Any:
    return page.request.get(f"{build_api_address(page)}/compactions").json()["results"]


def read_meter(page: Page) -> int:
    """Return the percentage that the page shows."""
    return int(page.locator("context-meter").get_attribute("data-percent") or 0)


def build_api_address(page: Page) -> str:
    return "/api/v1/sessions/" + page.url.rstrip("/").rsplit("/", 1)[1]


def read_session(page: Page) -> Any:
    return page.request.get(build_api_address(page)).json()


def read_context(page: Page) -> Any:
    return page.request.get(f"{build_api_address(page)}/context").json()


def keep_answers_short(page: Page) -> None:
    headers = {"X-CSRFToken": page.locator("body").get_attribute("data-csrf") or ""}
    change = {
        "params": {"max_tokens": ANSWER_TOKENS, "temperature": 0},
        "system_prompt": "You take notes. Answer in one sentence.",
    }
    answer = page.request.patch(build_api_address(page), data=change, headers=headers)
    assert answer.ok, answer.text()


def keep_letters(words: str) -> str:
    """Return the text without Markdown and line breaks."""
    return "".join(filter(str.isalnum, words))


def take_screenshot(page: Page, name: str, *, at: Locator | None = None) -> None:
    """Save screenshots in both themes, wide and on a phone, with `at` scrolled into view."""
    for place, (width, height) in VIEWPORTS.items():
        page.set_viewport_size({"width": width, "height": height})
        for color in ("light", "dark"):
            page.emulate_media(color_scheme=color)
            if at:
                at.evaluate("element => element.scrollIntoView()")
            page.screenshot(
                path=SHOTS / f"journey-{name}-{place}-{color}.png", animations="disabled"
            )
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 860})
