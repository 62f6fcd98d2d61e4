"""Compare a chat of 10,000 messages with one of 60: opening, scrolling and typing."""

import statistics
from collections.abc import Callable, Iterator

from playwright.sync_api import Page

from chatcore.models import Session
from measure.benchmarks import sample_messages, sample_sessions
from measure.benchmarks.browser_stage import Stage
from measure.benchmarks.timing import FLAT, Row, measure_in_turns
from tests.support.scripted_wire import Reply, split_pieces

OPENINGS = 9  # how often a chat is opened
SCREENS = 150
KEYS = 80
KEY_INTERVAL = 60  # milliseconds
MAX_MESSAGES = 200  # that the page holds at the same time

# Milliseconds from the request until the newest message is painted as markdown and the composer
# can be used.
USABLE = """
window.usable = new Promise((resolve) => {
    const look = () => {
        const chat = document.querySelector("chat-stream");
        const newest = [...document.querySelectorAll(".timeline > .message")].at(-1);
        const isDrawn = chat?.composer && newest?.querySelector(".prose[data-shown]");
        const dock = document.querySelector(".dock");
        const bottom = newest?.getBoundingClientRect().bottom;
        const isVisible = isDrawn && bottom <= dock.getBoundingClientRect().top;
        const finish = () => setTimeout(() => resolve(performance.now()));
        requestAnimationFrame(isVisible ? finish : look);
    };
    look();
});
"""
# Scroll by a number of screens, each drawn before the next, and return the highest number of
# messages on the page. A tool result counts, too.
SCROLL = """
async (screens) => {
    const scroller = document.querySelector(".scroll");
    let most = 0;
    for (let screen = 0; screen < Math.abs(screens); screen += 1) {
        scroller.scrollBy({ top: Math.sign(screens) * scroller.clientHeight, behavior: "instant" });
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
        await document.querySelector("chat-stream").timeline.pager.whenIdle;
        const messages = ".timeline :is(.message, .call [data-result])";
        most = Math.max(most, document.querySelectorAll(messages).length);
    }
    return most;
}
"""
# Milliseconds from reaching the top until the earlier messages are painted.
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
# Milliseconds from each key until the frame that shows it is painted.
RECORD_KEYS = """
window.typed = [];
document.querySelector(".composer textarea").addEventListener("keydown", ({ timeStamp }) => {
    requestAnimationFrame(() => setTimeout(() => typed.push(performance.now() - timeStamp)));
});
"""


def measure_rows(stage: Stage) -> Iterator[Row]:
    """Measure opening, scrolling and typing."""
    stage.page.add_init_script(USABLE)
    exchange = list(sample_messages.list_ten_messages())
    short, long = (
        sample_sessions.create_conversation(messages, stage.using, exchange)
        for messages in (60, 10_000)
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
        limit=MAX_MESSAGES + 1,
        unit="",
    )
    going_up = statistics.median(page.evaluate(GO_UP) for _ in range(OPENINGS))
    yield Row(
        name="go up by 60 messages",
        value=going_up,
        note="from nearing the top until they are painted",
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
    page.get_by_label("Your message").fill((sample_messages.SENTENCE * 4 + "\n\n") * 250)
    yield from _type(page, "a key in a draft of 90 KB")
    stage.scripted.script(
        Reply(
            chunks=split_pieces(
                "\n\n".join(message["content"] for message in sample_messages.list_ten_messages())
                * 4,
                1_000,
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
    page.keyboard.type(("A question of some length. " * KEYS)[:KEYS], delay=KEY_INTERVAL)
    page.wait_for_function("keys => typed.length >= keys", arg=KEYS)
    delays = sorted(page.evaluate("typed"))
    p95 = delays[int(len(delays) * 0.95)]
    yield Row(
        name=name,
        value=statistics.median(delays),
        limit=50,
        note=f"until it is painted; 95 of 100 within {p95:.0f} ms",
    )
