"""A chat with 10,000 messages beside one with 60: opening it, going through it, and typing in it."""

import statistics
from collections.abc import Callable, Iterator

from playwright.sync_api import Page

from chatcore.models import Session
from tests.benchmarks import spoken, stored
from tests.benchmarks.stage import Stage
from tests.benchmarks.timing import FLAT, Row, by_turns
from tests.support.scripted_wire import Reply, split_pieces

OPENED = 9  # times
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
SCROLLED = """
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
WENT_UP = """
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
TYPED = """
window.typed = [];
document.querySelector(".composer textarea").addEventListener("keydown", ({ timeStamp }) => {
    requestAnimationFrame(() => setTimeout(() => typed.push(performance.now() - timeStamp)));
});
"""


def rows(stage: Stage) -> Iterator[Row]:
    """Opening is flat in the history, the page holds no more than MOST, and a key is seen at once."""
    stage.page.add_init_script(USABLE)
    said = list(spoken.ten())
    short, long = (stored.conversation(messages, stage.using, said) for messages in (60, 10_000))
    few, many = by_turns(_opening(stage.page, short), _opening(stage.page, long), times=OPENED)
    yield Row(name="open a chat, 60 stored", value=few)
    yield Row(name="open a chat, 10k stored", value=many, limit=1_000)
    yield Row(name="  10k against 60", value=many / few, limit=FLAT, unit="×")
    yield from _through(stage.page)
    yield from _typing(stage, long)


def _opening(page: Page, session: Session) -> Callable[[], float]:
    def opened() -> float:
        page.goto(f"/c/{session.pk}/", wait_until="commit")
        return float(page.evaluate("usable"))

    return opened


def _through(page: Page) -> Iterator[Row]:
    most = max(page.evaluate(SCROLLED, SCREENS * way) for way in (-1, 1, -1))
    yield Row(
        name=f"messages on the page, {SCREENS} screens up and down",
        value=most,
        limit=MOST + 1,
        unit="",
    )
    went = statistics.median(page.evaluate(WENT_UP) for _ in range(OPENED))
    yield Row(
        name="go up by 60 messages",
        value=went,
        note="from the top's coming near until they are painted",
    )


def _typing(stage: Stage, session: Session) -> Iterator[Row]:
    page = stage.page
    _opening(page, session)()
    while page.locator(".timeline > .message").count() < 160:
        page.evaluate(WENT_UP)
    page.keyboard.press("End")
    page.evaluate(TYPED)
    held = page.locator(".timeline > .message").count()
    yield from _typed(page, f"a key, {held} messages on the page")
    page.get_by_label("Your message").fill((spoken.SENTENCE * 4 + "\n\n") * 250)
    yield from _typed(page, "a key in a draft of 90 KB")
    stage.scripted.script(
        Reply(
            chunks=split_pieces("\n\n".join(said["content"] for said in spoken.ten()) * 4, 1_000),
            chunk_delay=0.05,
        )
    )
    page.get_by_label("Your message").fill("Go on.")
    page.get_by_label("Your message").press("Enter")
    page.locator(".answer[data-status=streaming] .prose[data-shown]").wait_for()
    yield from _typed(page, "a key while an answer streams")
    assert page.locator(".answer[data-status=streaming]").count(), (
        "the answer ended before the typing did"
    )
    page.keyboard.press("Escape")


def _typed(page: Page, name: str) -> Iterator[Row]:
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
