"""An answer that streams into the page: what it costs the main thread, in all and in its longest task, beside the same text drawn once."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import expect

from chatcore.models import Session
from tests.benchmarks import stored
from tests.benchmarks.stage import Stage
from tests.benchmarks.timing import Row
from tests.scripted import Reply

TOKEN = 4  # characters
RATE = 100  # pieces a second
IDLE = 10  # seconds
CATEGORY = "disabled-by-default-devtools.timeline"  # the tasks of every thread, and how long each had a processor
SENTENCE = (
    "The *index* holds the words of every message, and a `query` reads only the **pages** that it needs; see [how](https://example.com/). "
)
CODE = (
    'def window(messages, budget):\n    """The newest that fit."""\n'
    "    for message in reversed(messages):\n        budget -= estimate(message)\n"
)
ROW = "| `index.db` | 1.2 GB | 0.4 GB | The words of every message, as they were said |\n"
TABLE = "| file | before | after | what it holds |\n|---|--:|--:|---|\n"
ITEM = "- The **index** shrank to a third, and the *log* was rewritten.\n"
MATH = "The sum $\\sum_{i=1}^{n} x_i$ and its bound are\n\n$$\n\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}\n$$\n\n"
PARTS = ("## A part\n\n", f"{SENTENCE * 3}\n\n", f"{ITEM * 4}\n", f"```python\n{CODE * 2}```\n\n", f"{TABLE}{ROW * 3}\n", MATH)

# The view that is shown draws only what changes; a new one draws everything.
DRAW = """async (texts) => {
    const { viewOf } = await import("/static/chatcore/js/markdown.js");
    const prose = document.querySelector(".answer .prose");
    for (const text of texts) {
        const fresh = prose.cloneNode();
        delete fresh.dataset.shown;
        document.querySelector(".answer .prose").replaceWith(fresh);
        viewOf(fresh).finish(text);
        await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
    }
}"""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of processor time that the page's main thread took: over what it takes when nothing happens, and in its longest task."""

    whole: float
    longest: float


def rows(stage: Stage) -> Iterator[Row]:
    """16 KB as people read them, then what is long: a whole text, and single blocks that are never finished."""
    idle = _idle(stage)
    text = mixed(16_000)
    streamed = _streamed(stage, text, TOKEN, idle)
    yield Row(name="stream 16 KB, in all", value=streamed.whole, limit=800)
    yield Row(name="  its longest task", value=streamed.longest, limit=50)
    once = _cost(stage, lambda: stage.page.evaluate(DRAW, [text]), idle)
    yield Row(name="  the text drawn once", value=once.whole)
    anew = _cost(stage, lambda: stage.page.evaluate(DRAW, [text[:length] for length in range(200, len(text), 200)]), idle)
    yield Row(name="  drawn anew 80 times", value=anew.whole)
    blocks = {
        "100 KB": mixed(100_000),
        "60 KB of one paragraph": SENTENCE * (60_000 // len(SENTENCE)),
        "60 KB of one list": ITEM * (60_000 // len(ITEM)),
    }
    blocks |= {
        "60 KB of one table": TABLE + ROW * (60_000 // len(ROW)),
        "60 KB of one code block": f"```python\n{CODE * (60_000 // len(CODE))}```",
    }
    for name, long in blocks.items():
        cost = _streamed(stage, long, 10 * TOKEN, idle)
        yield Row(name=f"stream {name}, in all", value=cost.whole)
        yield Row(name="  its longest task", value=cost.longest, limit=50)


def mixed(length: int) -> str:
    """Prose, lists, code, tables and formulas, about so many characters."""
    text = ""
    for part in itertools.cycle(PARTS):
        if len(text) + len(part) > length:
            return text
        text += part
    raise AssertionError


def _streamed(stage: Stage, text: str, size: int, idle: float) -> Cost:
    """A new chat's first answer, in pieces of this size."""
    session = Session.objects.create(owner=stored.user(), model=stage.using)
    stage.scripted.script(Reply(chunks=[text[at : at + size] for at in range(0, len(text), size)], chunk_delay=1 / RATE))
    stage.page.goto(f"/c/{session.pk}/")
    stage.page.get_by_label("Your message").fill("Go on")

    def said() -> None:
        stage.page.get_by_label("Your message").press("Enter")
        expect(stage.page.locator(".answer")).to_have_attribute("data-status", "complete", timeout=600_000)

    return _cost(stage, said, idle)


def _idle(stage: Stage) -> float:
    """Milliseconds a second of a page that only waits."""
    stage.page.goto("/new/")
    stage.page.wait_for_timeout(1000)
    return _cost(stage, lambda: stage.page.wait_for_timeout(1000 * IDLE), 0).whole / IDLE


def _cost(stage: Stage, work: Callable[[], Any], idle: float) -> Cost:
    browser = stage.page.context.browser
    assert browser
    began = time.monotonic()
    browser.start_tracing(page=stage.page, categories=[CATEGORY])
    work()
    stage.page.wait_for_timeout(500)  # colors and formulas come after it
    tasks = _tasks(json.loads(browser.stop_tracing())["traceEvents"])
    return Cost(sum(tasks) - idle * (time.monotonic() - began), max(tasks))


def _tasks(events: list[dict[str, Any]]) -> list[float]:
    """Each task of the busiest page's main thread."""
    main: dict[tuple[int, int], list[float]] = {
        (event["pid"], event["tid"]): [] for event in events if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    for event in events:
        thread = event["pid"], event["tid"]
        if event["name"] == "RunTask" and thread in main:
            main[thread].append(event.get("tdur", 0) / 1000)
    return max(main.values(), key=sum)
