"""An event loop whose time jumps over every wait, for tests of time limits."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import ParamSpec

P = ParamSpec("P")


class JumpingSelector(selectors.DefaultSelector):
    """Lets time pass in a jump where the loop would wait for its next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; if nothing is, let the time pass until which the loop waits."""
        ready = super().select(0 if timeout is not None else None)
        if not ready:
            self.seconds += timeout or 0
        return ready


def jumping(test: Callable[P, Coroutine[object, object, None]]) -> Callable[P, None]:
    """Run a test on such a loop. Nothing in it may wait for another thread or process."""

    def create_loop() -> asyncio.AbstractEventLoop:
        selector = JumpingSelector()
        loop = asyncio.SelectorEventLoop(selector)
        loop.time = lambda: selector.seconds  # type: ignore[method-assign]
        return loop

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=create_loop) as runner:
            runner.run(test(*args, **kwargs))

    return run


async def pass_seconds(seconds: float) -> None:
    """Let so many seconds of such a loop pass."""
    await asyncio.sleep(seconds)
