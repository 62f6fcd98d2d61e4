"""The promise as people see it: a chat in Chromium, with a real language model, that fills, optimizes itself, is undone and goes on."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from tests.support.browsing import ARGUMENTS, CHROMIUM, send
from tests.support.journey import ROOT, STORY, Served, serve, until

pytestmark = [pytest.mark.model, pytest.mark.browser]

WINDOW = 2048
ANSWER_TOKENS = 48
AT_LENGTH = "First tell me the history of baking, century by century, in at least two thousand words."  # so that there is time to stop it
PATIENCE = (
    120_000  # milliseconds for one answer or one summary of the small model on a busy machine
)
MORE_TRIES = 4
SHOTS = ROOT / "test-results"
VIEWPORTS = {"wide": (1280, 860), "phone": (360, 780)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("journey")
    with serve(
        folder, CHATCORE_LOCAL_MODEL="0.5b", CHATCORE_LOCAL_MODEL_WINDOW=str(WINDOW)
    ) as served:
        until(lambda: any("embedded model is ready" in line for line in served.lines), 600)
        yield served


@pytest.fixture
def page(served: Served) -> Iterator[Page]:
    """Signed in by the printed link; a script that fails fails the test."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        page = browser.new_page(viewport={"width": 1280, "height": 860}, base_url=served.url)
        page.set_default_timeout(PATIENCE)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(served.sign_in_link)
        yield page
        browser.close()
        assert wrong == []


def test_a_chat_fills_optimizes_itself_is_undone_and_goes_on(page: Page) -> None:

    # The first answer streams, and the meter moves.
    with page.expect_navigation():
        page.get_by_role("link", name="New chat").first.click()
    send(page, f"{STORY[0]} {AT_LENGTH}")
    assert grows(page)
    shoot(page, "1-streaming")
    keep_answers_short(page)
    page.keyboard.press("Escape")
    expect(page.locator(".answer")).to_have_attribute("data-status", "interrupted")
    begun = meter(page)
    assert begun > 0

    # Told note after note, it summarizes by itself while the composer stays open.
    count = 0
    while (usage := context(page))["estimated_input_tokens"] < usage["threshold_tokens"]:
        count += 1
        send(page, note(count))
        answered(page, count)
    assert meter(page) > begun
    optimizing = page.get_by_text("Optimizing conversation context…")
    expect(optimizing).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_label("Your message")).to_be_enabled()
    full = meter(page)
    shoot(page, "2-optimizing")
    expect(optimizing).to_be_hidden(timeout=PATIENCE)
    summarized(page)

    # The card stands at the boundary and holds the stored summary.
    card = page.locator(".card")
    expect(card).to_contain_text("The model sees a summary of the messages above")
    expect(card.locator("+ .message")).to_have_attribute(
        "data-seq", str(stored(page)["compact_boundary_seq"])
    )
    expect(page.locator(".message")).to_have_count(2 + 2 * count)
    until(lambda: meter(page) < full, 60)
    card.locator("summary").click()
    expect(card.locator(".card-summary")).to_be_visible()
    assert letters(card.locator(".card-summary").inner_text())[:40] in letters(
        stored(page)["compacted_summary"]
    )
    shoot(page, "3-card", at=card)

    # Undone, the model sees the messages themselves again; the talk goes on.
    card.get_by_role("button", name="Undo").click()
    expect(card).to_have_count(0)
    assert stored(page)["compacted_summary"] is None
    shoot(page, "4-undone")
    send(page, "How many guests do we expect?")
    answered(page, count + 1)
    shoot(page, "5-on")


def note(number: int) -> str:
    """Two things to know; numbered, because the small model copies what repeats."""
    told = " ".join(STORY[(2 * number + more) % len(STORY)] for more in (0, 1))
    return f"Note {number}. {told} Please confirm note {number} in one short sentence."


def grows(page: Page) -> bool:
    """Whether the answer is seen at three lengths, each longer, while it is being written."""
    words = page.locator(".answer[data-status=streaming] .prose")
    seen = [0]
    while len(seen) < 4:
        if (length := len(words.inner_text())) != seen[-1]:
            seen.append(length)
    return seen == sorted(seen)


def answered(page: Page, count: int) -> None:
    expect(page.locator(".answer[data-status=complete]")).to_have_count(count, timeout=PATIENCE)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def summarized(page: Page) -> None:
    """The smallest model's summaries are not always usable: then the people at the page ask for another one, as it tells them they may."""
    for _ in range(MORE_TRIES):
        if stored(page)["compacted_summary"]:
            return
        send(page, "/compact in three short sentences")
        until(
            lambda: all(run["status"] not in ("queued", "running") for run in runs(page)),
            PATIENCE / 1_000,
        )


def runs(page: Page) -> Any:
    return page.request.get(f"{address(page)}/compactions").json()["results"]


def meter(page: Page) -> int:
    """The percent that the page shows."""
    return int(page.locator(".meter-used").inner_text().split("·")[1].strip(" %"))


def address(page: Page) -> str:
    return "/api/v1/sessions/" + page.url.rstrip("/").rsplit("/", 1)[1]


def stored(page: Page) -> Any:
    return page.request.get(address(page)).json()


def context(page: Page) -> Any:
    return page.request.get(f"{address(page)}/context").json()


def keep_answers_short(page: Page) -> None:
    headers = {"X-CSRFToken": page.locator("body").get_attribute("data-csrf") or ""}
    change = {
        "params": {"max_tokens": ANSWER_TOKENS, "temperature": 0},
        "system_prompt": "You take notes. Answer in one sentence.",
    }
    answer = page.request.patch(address(page), data=change, headers=headers)
    assert answer.ok, answer.text()


def letters(words: str) -> str:
    """What is left when Markdown and line breaks are taken away."""
    return "".join(filter(str.isalnum, words))


def shoot(page: Page, name: str, *, at: Locator | None = None) -> None:
    """The moment in both colors, at a desk and on a phone; `at` is what must be in sight."""
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
