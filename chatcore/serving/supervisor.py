"""Keep child processes running: start them, restart dead and hung ones, stop all together.

Each child runs in a process session of its own. So Ctrl-C in the terminal reaches only the
supervisor, which then stops the children in order; and one signal reaches whatever a child started.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from chatcore.serving.health import HealthAddress, wait_until_hung

LinePrinter = Callable[[str], None]
EXIT_GIVE_UP = 78  # EX_CONFIG: a child ends with it if a restart would not help
FIRST_DELAY_SECONDS = 0.5  # before a restart; doubled each time
LONGEST_DELAY_SECONDS = 30.0
HURRY_SECONDS = 10.0  # until KILL, after a second signal
STEADY_SECONDS = 60.0  # after a run of this length the delay starts again at the first one


def _do_nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class ChildProcess:
    """A program to keep running.

    `health` is checked over HTTP, and a child without a first answer within `startup_seconds`
    counts as hung (health.py). `stop_seconds` pass between TERM and KILL; after a second signal no
    more than HURRY_SECONDS.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    health: HealthAddress | None = None
    startup_seconds: float = 60.0
    stop_seconds: float = 10.0
    on_answer: Callable[[], None] = _do_nothing


class _StopRequested(Exception):
    """A signal asks the supervisor to stop."""


async def supervise_children(children: Sequence[ChildProcess], *, print_line: LinePrinter) -> None:
    """Keep `children` running until TERM, INT or HUP; return when all of them have ended.

    At the first signal they may end what they have in hand, and at the second they end at once.
    """
    loop = asyncio.get_running_loop()
    stop_event = asyncio.Event()
    hurry_event = asyncio.Event()

    def note_signal() -> None:
        (hurry_event if stop_event.is_set() else stop_event).set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, note_signal)
    try:
        async with asyncio.TaskGroup() as group:
            for child in children:
                group.create_task(_keep_child_running(child, print_line, hurry_event))
            await stop_event.wait()
            print_line("Stopping …")
            # An exception makes the group cancel its tasks, and each task stops its child.
            raise _StopRequested
    except* _StopRequested:
        print_line("Stopped.")


async def _keep_child_running(
    child: ChildProcess, print_line: LinePrinter, hurry_event: asyncio.Event
) -> None:
    delay = FIRST_DELAY_SECONDS
    while True:
        start_time = time.monotonic()
        reason, has_given_up = await _run_child_once(child, hurry_event)
        if has_given_up:
            print_line(f"The {child.name} will not be started again.")
            return
        if time.monotonic() - start_time > STEADY_SECONDS:
            delay = FIRST_DELAY_SECONDS
        else:
            delay = min(delay * 2, LONGEST_DELAY_SECONDS)
        print_line(f"The {child.name} {reason}; starting it again in {delay:g} s.")
        await asyncio.sleep(delay)


async def _run_child_once(child: ChildProcess, hurry_event: asyncio.Event) -> tuple[str, bool]:
    """Run a child until it ends or hangs, and stop it if it hangs.

    Returns what happened, and whether the child asks not to be started again.
    """
    process = await _start_process(child)
    exit_task = asyncio.create_task(process.wait())
    hang_task = asyncio.create_task(
        wait_until_hung(
            child.health,
            pid=process.pid,
            startup_seconds=child.startup_seconds,
            on_answer=child.on_answer,
        )
    )
    try:
        await asyncio.wait({exit_task, hang_task}, return_when=asyncio.FIRST_COMPLETED)
        if exit_task.done():
            exit_code = exit_task.result()
            return f"ended ({_describe_exit(exit_code)})", exit_code == EXIT_GIVE_UP
        # Raises what went wrong in the health check itself: an error of ours must not look like
        # a hung child.
        await hang_task
        return "does not answer any more", False
    finally:
        hang_task.cancel()
        await _stop_process(process, exit_task, child.stop_seconds, hurry_event)


async def _start_process(child: ChildProcess) -> Process:
    command = [
        sys.executable,
        "-m",
        "chatcore.serving.launcher",
        str(os.getpid()),
        *child.command,
    ]
    return await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **child.environment}, start_new_session=True
    )


async def _stop_process(
    process: Process, exit_task: "asyncio.Task[int]", seconds: float, hurry_event: asyncio.Event
) -> None:
    """Send TERM to the child, wait at most `seconds`, then kill the rest of its process session.

    TERM goes to the child alone, because a child that has children stops them in its own order. It
    is sent again, and the wait becomes short, when `hurry_event` is set.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        hurry_task = asyncio.create_task(hurry_event.wait())
        await asyncio.wait(
            {exit_task, hurry_task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        hurry_task.cancel()
        if process.returncode is None and hurry_event.is_set():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await asyncio.wait({exit_task}, timeout=min(seconds, HURRY_SECONDS))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await exit_task


def _describe_exit(code: int) -> str:
    if code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
