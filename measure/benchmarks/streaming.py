"""Measure the processor time of the page's main thread while an answer streams into it."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from chatcore.models import Session
from measure.benchmarks import sample_sessions
from measure.benchmarks.browser_stage import Stage
from measure.benchmarks.timing import Row
from tests.support.scripted_wire import Reply

TOKEN = 4  # characters
DELAY = 0.01  # seconds between pieces
TASK = "ThreadControllerImpl::RunTask"
SENTENCE = (
    "The *index* holds the words of message {0}; a `query` reads only the **pages** it needs; "
    "see [how](https://example.com/{0}). "
)
CODE = (
    'def window_{0}(messages, budget):\n    """The newest that fit."""\n'
    "    for message in reversed(messages):\n        budget -= {0}\n"
)
ROW = "| `index_{0}.db` | {0}.2 GB | 0.4 GB | The words of every message, as they were said |\n"
TABLE = "| file | before | after | what it holds |\n|---|--:|--:|---|\n"
ITEM = "- The **index** {0} shrank to a third, and the *log* was rewritten.\n"
MATH = (
    "The sum $\\sum_{{i={0}}}^{{n}} x_i$ has a bound:\n\n"
    "$$\n\\int_{0}^\\infty e^{{-x^2}}\\,dx = \\frac{{\\sqrt{{\\pi}}}}{{{0}}}\n$$\n\n"
)
PARTS = (
    "## Part {0}\n\n",
    f"{SENTENCE * 3}\n\n",
    f"{ITEM * 4}\n",
    f"```python\n{CODE * 2}```\n\n",
    f"{TABLE}{ROW * 3}\n",
    MATH,
)

# Wait for the end of the answer and half a second more, until its last colors and formulas are
# drawn.
WATCH_END = """() => {
    window.ended = new Promise((resolve) => {
        const complete = ".answer[data-status=complete]";
        const look = () => document.querySelector(complete) && setTimeout(resolve, 500);
        const changes = { attributeFilter: ["data-status"], childList: true, subtree: true };
        new MutationObserver(look).observe(document.querySelector(".timeline"), changes);
    });
}"""
# Draw each of the texts as a page that was reloaded draws it.
DRAW = """async (texts) => {
    const { getMarkdownView } = await import("/static/chatcore/js/markdown.js");
    for (const text of texts) {
        const prose = document.querySelector(".answer .prose");
        const fresh = prose.cloneNode();
        delete fresh.dataset.shown;
        prose.replaceWith(fresh);
        getMarkdownView(fresh).showFinal(text);
        await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
    }
}"""


@dataclass(frozen=True)
class Cost:
    """Milliseconds of processor time of the main thread, in all and in the longest task."""

    total: float
    longest: float


def measure_rows(stage: Stage) -> Iterator[Row]:
    """Measure streaming 16 KB of a fast and of a slow model, and longer texts.

    The note compares it with drawing the text once, and with drawing it anew for every piece.
    """
    text = build_mixed_text(16_000)
    fast = _stream_answer(stage, text, 4 * TOKEN)
    once = _measure_cost(stage, lambda: stage.page.evaluate(DRAW, [text]))
    anew = _measure_cost(
        stage,
        lambda: stage.page.evaluate(DRAW, [text[:length] for length in range(200, len(text), 200)]),
    )
    note = f"drawn once: {once.total:.0f}, anew 80 times: {anew.total:.0f}"
    yield Row(name="stream 16 KB, 400 tokens a second", value=fast.total, limit=800, note=note)
    yield Row(name="  longest task", value=fast.longest, limit=50)
    slowly = _stream_answer(stage, text, TOKEN)
    yield Row(name="stream 16 KB, 100 tokens a second", value=slowly.total, note="in 40 seconds")
    yield Row(name="  longest task", value=slowly.longest, limit=50)
    for name, long in build_long_texts().items():
        cost = _stream_answer(stage, long, 10 * TOKEN)
        yield Row(name=f"stream {name}", value=cost.total)
        yield Row(name="  longest task", value=cost.longest, limit=50)


def build_long_texts() -> dict[str, str]:
    """Build a long mixed text, and texts that are one single block."""
    blocks = {
        "60 KB, one paragraph": repeat_part(SENTENCE, 60_000),
        "60 KB, one list": repeat_part(ITEM, 60_000),
        "60 KB, one table": TABLE + repeat_part(ROW, 60_000),
        "60 KB, one code block": f"```python\n{repeat_part(CODE, 60_000)}```",
    }
    return {"100 KB": build_mixed_text(100_000)} | blocks


def build_mixed_text(length: int) -> str:
    """Build prose, lists, code, tables and formulas of which no part occurs twice."""
    return "".join(
        itertools.islice(
            (part.format(number) for number in itertools.count() for part in PARTS),
            length * len(PARTS) // 1500,
        )
    )


def repeat_part(part: str, length: int) -> str:
    """Repeat a part with rising numbers."""
    return "".join(part.format(number) for number in range(length // len(part)))


def _stream_answer(stage: Stage, text: str, size: int) -> Cost:
    """Measure the first answer of a new chat, streamed in pieces of this size."""
    session = Session.objects.create(owner=sample_sessions.get_user(), model=stage.using)
    stage.scripted.script(
        Reply(chunks=[text[at : at + size] for at in range(0, len(text), size)], chunk_delay=DELAY)
    )
    stage.page.goto(f"/c/{session.pk}/")
    stage.page.get_by_label("Your message").fill("Go on")
    stage.page.evaluate(WATCH_END)

    def send() -> None:
        stage.page.keyboard.press("Enter")
        stage.page.evaluate("ended")

    return _measure_cost(stage, send)


def _measure_cost(stage: Stage, work: Callable[[], Any]) -> Cost:
    browser = stage.page.context.browser
    assert browser
    stage.page.wait_for_timeout(1000)  # until the tasks of opening the page have ended
    browser.start_tracing(page=stage.page, categories=["toplevel"])
    work()
    tasks = _list_tasks(json.loads(browser.stop_tracing())["traceEvents"])
    return Cost(sum(tasks), max(tasks))


def _list_tasks(events: list[dict[str, Any]]) -> list[float]:
    """Return the tasks of the main thread that had most to do, in ms each: it is the page's."""
    threads: dict[tuple[int, int], list[float]] = {}
    for event in events:
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain":
            threads[event["pid"], event["tid"]] = []
    for event in events:
        if event["name"] == TASK and (event["pid"], event["tid"]) in threads:
            threads[event["pid"], event["tid"]].append(event.get("tdur", 0) / 1000)
    return max(threads.values(), key=sum)
