"""A chat with 10,000 messages beside one with 60: opening it, going through it, and typing in it."""

from collections.abc import Callable, Iterator

from tests.benchmarks import spoken, stored
from tests.benchmarks.stage import Stage
from tests.benchmarks.timing import FLAT, Row, by_turns

OPENED = 9  # times

# Milliseconds from the click on a link until the newest message is painted as markdown and the composer answers.
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


def rows(stage: Stage) -> Iterator[Row]:
    """Opening is flat in the history."""
    stage.page.add_init_script(USABLE)
    few, many = by_turns(*(_opening(stage, messages) for messages in (60, 10_000)), times=OPENED)
    yield Row(name="open a chat, 60 stored", value=few)
    yield Row(name="open a chat, 10k stored", value=many, limit=1_000)
    yield Row(name="  10k against 60", value=many / few, limit=FLAT, unit="×")


def _opening(stage: Stage, messages: int) -> Callable[[], float]:
    session = stored.conversation(messages, stage.using, list(spoken.ten()))

    def opened() -> float:
        stage.page.goto(f"/c/{session.pk}/", wait_until="commit")
        return float(stage.page.evaluate("usable"))

    return opened
