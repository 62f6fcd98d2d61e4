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
from chatcore.serving.heartbeats import PIPE_VARIABLE, HeartbeatPipe

LinePrinter = Callable[[str], None]
EXIT_GIVE_UP = 78  # EX_CONFIG: a child ends with it if a restart would not help
FIRST_DELAY_SECONDS = 0.5  # before a restart; doubled each time
LONGEST_DELAY_SECONDS = 30.0
STEADY_SECONDS = 60.0  # after a run of this length the delay starts again at the first one


def _do_nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class ChildProcess:
    """A program to keep running.

    `health` is checked over HTTP, and a child without a first answer within `startup_seconds`
    counts as hung. So does one that is silent for `silence_seconds` (heartbeats.py), if it has
    them. `stop_seconds` pass between TERM and KILL.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    health: HealthAddress | None = None
    silence_seconds: float | None = None
    startup_seconds: float = 60.0
    stop_seconds: float = 10.0
    on_answer: Callable[[], None] = _do_nothing


class _StopRequested(Exception):
    """A signal asks the supervisor to stop."""


async def supervise_children(children: Sequence[ChildProcess], *, print_line: LinePrinter) -> None:
    """Keep `children` running until TERM, INT or HUP; return when all of them have ended."""
    loop = asyncio.get_running_loop()
    stop_event = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop_event.set)
    try:
        async with asyncio.TaskGroup() as group:
            for child in children:
                group.create_task(_keep_child_running(child, print_line))
            await stop_event.wait()
            print_line("Stopping …")
            # An exception makes the group cancel its tasks, and each task stops its child.
            raise _StopRequested
    except* _StopRequested:
        print_line("Stopped.")


async def _keep_child_running(child: ChildProcess, print_line: LinePrinter) -> None:
    delay = FIRST_DELAY_SECONDS
    while True:
        start_time = time.monotonic()
        reason, has_given_up = await _run_child_once(child)
        if has_given_up:
            print_line(f"The {child.name} will not be started again.")
            return
        if time.monotonic() - start_time > STEADY_SECONDS:
            delay = FIRST_DELAY_SECONDS
        else:
            delay = min(delay * 2, LONGEST_DELAY_SECONDS)
        print_line(f"The {child.name} {reason}; starting it again in {delay:g} s.")
        await asyncio.sleep(delay)


async def _run_child_once(child: ChildProcess) -> tuple[str, bool]:
    """Run a child until it ends or hangs, and stop it if it hangs.

    Returns what happened, and whether the child asks not to be started again.
    """
    with HeartbeatPipe() as heartbeats:
        process = await _start_process(child, heartbeats)
        exit_task = asyncio.create_task(process.wait())
        hang_task = asyncio.create_task(_wait_until_hung(child, heartbeats))
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
            await _stop_process(process, exit_task, child.stop_seconds)


async def _wait_until_hung(child: ChildProcess, heartbeats: HeartbeatPipe) -> None:
    if child.silence_seconds is not None:
        await heartbeats.wait_until_silent(child.silence_seconds)
        return
    await wait_until_hung(
        child.health, startup_seconds=child.startup_seconds, on_answer=child.on_answer
    )


async def _start_process(child: ChildProcess, heartbeats: HeartbeatPipe) -> Process:
    command = [
        sys.executable,
        "-m",
        "chatcore.serving.launcher",
        str(os.getpid()),
        *child.command,
    ]
    return await asyncio.create_subprocess_exec(
        *command,
        env={
            **os.environ,
            **child.environment,
            PIPE_VARIABLE: str(heartbeats.child_end),
        },
        pass_fds=[heartbeats.child_end],
        start_new_session=True,
    )


async def _stop_process(process: Process, exit_task: "asyncio.Task[int]", seconds: float) -> None:
    """Send TERM to the child, wait at most `seconds`, then kill the rest of its process session.

    TERM goes to the child alone, because a child that has children stops them in its own order.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({exit_task}, timeout=seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await exit_task


def _describe_exit(code: int) -> str:
    if code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
