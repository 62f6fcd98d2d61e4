"""A chat with 10,000 messages beside one with 60: opening it, going through it, and typing in it."""

import statistics
from collections.abc import Callable, Iterator

from playwright.sync_api import Page

from chatcore.models import Session
from tests.benchmarks import spoken, stored
from tests.benchmarks.stage import Stage
from tests.benchmarks.timing import FLAT, Row, measure_in_turns
from tests.support.scripted_wire import Reply, split_pieces

OPENINGS = 9  # times
SCREENS = 150
KEYS = 80
KEY_EVERY = 60  # milliseconds
MOST = 200

# Milliseconds from asking for the page until the newest message is painted as markdown and the composer answers.
USABLE = """
window.usable = new Promise((tell) => {
    const look = () => {
        const chat = document.querySelector("chat-stream");
        const newest = [...document.querySelectorAll(".timeline > .message")].at(-1);
        const drawn = chat?.composer && newest?.querySelector(".prose[data-shown]");
        const there = drawn && newest.getBoundingClientRect().bottom <= document.querySelector(".dock").getBoundingClientRect().top;
        requestAnimationFrame(there ? () => setTimeout(() => tell(performance.now())) : look);
    };
    look();
});
"""
# Scroll so many screens, each drawn before the next; the most messages there were, results within their calls included.
SCROLL = """
async (screens) => {
    const scroller = document.querySelector(".scroll");
    let most = 0;
    for (let screen = 0; screen < Math.abs(screens); screen += 1) {
        scroller.scrollBy({ top: Math.sign(screens) * scroller.clientHeight, behavior: "instant" });
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
        await document.querySelector("chat-stream").timeline.stretch.settled;
        most = Math.max(most, document.querySelectorAll(".timeline :is(.message, .call [data-result])").length);
    }
    return most;
}
"""
# From reaching the top until what is earlier is painted, in milliseconds.
GO_UP = """
async () => {
    const list = document.querySelector(".timeline");
    const first = list.dataset.before;
    document.querySelector(".scroll").scrollTop = 0;
    const began = performance.now();
    while (list.dataset.before === first) await new Promise(requestAnimationFrame);
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    return performance.now() - began;
}
"""
# From each key until the frame that shows it is painted, in milliseconds.
RECORD_KEYS = """
window.typed = [];
document.querySelector(".composer textarea").addEventListener("keydown", ({ timeStamp }) => {
    requestAnimationFrame(() => setTimeout(() => typed.push(performance.now() - timeStamp)));
});
"""


def measure_rows(stage: Stage) -> Iterator[Row]:
    """Opening is flat in the history, the page holds no more than MOST, and a key is seen at once."""
    stage.page.add_init_script(USABLE)
    exchange = list(spoken.list_ten_messages())
    short, long = (
        stored.create_conversation(messages, stage.using, exchange) for messages in (60, 10_000)
    )
    few, many = measure_in_turns(
        _make_opening(stage.page, short), _make_opening(stage.page, long), times=OPENINGS
    )
    yield Row(name="open a chat, 60 stored", value=few)
    yield Row(name="open a chat, 10k stored", value=many, limit=1_000)
    yield Row(name="  10k against 60", value=many / few, limit=FLAT, unit="×")
    yield from _measure_scrolling(stage.page)
    yield from _measure_typing(stage, long)


def _make_opening(page: Page, session: Session) -> Callable[[], float]:
    def open_chat() -> float:
        page.goto(f"/c/{session.pk}/", wait_until="commit")
        return float(page.evaluate("usable"))

    return open_chat


def _measure_scrolling(page: Page) -> Iterator[Row]:
    most = max(page.evaluate(SCROLL, SCREENS * way) for way in (-1, 1, -1))
    yield Row(
        name=f"messages on the page, {SCREENS} screens up and down",
        value=most,
        limit=MOST + 1,
        unit="",
    )
    going_up = statistics.median(page.evaluate(GO_UP) for _ in range(OPENINGS))
    yield Row(
        name="go up by 60 messages",
        value=going_up,
        note="from the top's coming near until they are painted",
    )


def _measure_typing(stage: Stage, session: Session) -> Iterator[Row]:
    page = stage.page
    _make_opening(page, session)()
    while page.locator(".timeline > .message").count() < 160:
        page.evaluate(GO_UP)
    page.keyboard.press("End")
    page.evaluate(RECORD_KEYS)
    message_count = page.locator(".timeline > .message").count()
    yield from _type(page, f"a key, {message_count} messages on the page")
    page.get_by_label("Your message").fill((spoken.SENTENCE * 4 + "\n\n") * 250)
    yield from _type(page, "a key in a draft of 90 KB")
    stage.scripted.script(
        Reply(
            chunks=split_pieces(
                "\n\n".join(said["content"] for said in spoken.list_ten_messages()) * 4, 1_000
            ),
            chunk_delay=0.05,
        )
    )
    page.get_by_label("Your message").fill("Go on.")
    page.get_by_label("Your message").press("Enter")
    page.locator(".answer[data-status=streaming] .prose[data-shown]").wait_for()
    yield from _type(page, "a key while an answer streams")
    assert page.locator(".answer[data-status=streaming]").count(), (
        "the answer ended before the typing did"
    )
    page.keyboard.press("Escape")


def _type(page: Page, name: str) -> Iterator[Row]:
    page.get_by_label("Your message").focus()
    page.evaluate("typed.length = 0")
    page.keyboard.type(("A question of some length. " * KEYS)[:KEYS], delay=KEY_EVERY)
    page.wait_for_function("keys => typed.length >= keys", arg=KEYS)
    took = sorted(page.evaluate("typed"))
    slow = took[int(len(took) * 0.95)]
    yield Row(
        name=name,
        value=statistics.median(took),
        limit=50,
        note=f"until it is painted; 95 of 100 within {slow:.0f} ms",
    )
