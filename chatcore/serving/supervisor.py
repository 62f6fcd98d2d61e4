"""Children kept alive: started in sessions of their own, started again when dead or hung, and all stopped together."""

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
EXIT_GIVE_UP = 78  # EX_CONFIG: the child says that starting it again would not help
FIRST_DELAY, LONGEST_DELAY, STEADY_SECONDS = (
    0.5,
    30.0,
    60.0,
)  # seconds; a child that ran STEADY seconds has a clean record


def _do_nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class ChildProcess:
    """A program to keep running. `health` is asked over HTTP; after `patience` seconds without a first answer it counts as hung."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    health: HealthAddress | None = None
    startup_seconds: float = 60.0
    stop_seconds: float = 10.0
    on_answer: Callable[[], None] = _do_nothing


class _StopRequested(Exception):
    """A signal asked for the end."""


async def supervise_children(children: Sequence[ChildProcess], *, print_line: LinePrinter) -> None:
    """Keep `children` running until TERM, INT or HUP; returns when every one of them is gone."""
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
            raise _StopRequested  # the group cancels its tasks, and each stops its child
    except* _StopRequested:
        print_line("Stopped.")


async def _keep_child_running(child: ChildProcess, print_line: LinePrinter) -> None:
    delay = FIRST_DELAY
    while True:
        start_time = time.monotonic()
        reason, has_given_up = await _run_child_once(child)
        if has_given_up:
            print_line(f"The {child.name} will not be started again.")
            return
        delay = (
            FIRST_DELAY
            if time.monotonic() - start_time > STEADY_SECONDS
            else min(delay * 2, LONGEST_DELAY)
        )
        print_line(f"The {child.name} {reason}; starting it again in {delay:g} s.")
        await asyncio.sleep(delay)


async def _run_child_once(child: ChildProcess) -> tuple[str, bool]:
    """Start it and wait until it is dead or hung; says which, and whether it gave up. Nothing of it is left."""
    process = await _start_process(child)
    exit_task = asyncio.create_task(process.wait())
    hang_task = asyncio.create_task(
        wait_until_hung(
            child.health, startup_seconds=child.startup_seconds, on_answer=child.on_answer
        )
    )
    try:
        await asyncio.wait({exit_task, hang_task}, return_when=asyncio.FIRST_COMPLETED)
        if exit_task.done():
            return (
                f"ended ({_describe_exit(exit_task.result())})",
                exit_task.result() == EXIT_GIVE_UP,
            )
        await hang_task  # a mistake of ours in asking must not pass for a hung child
        return "does not answer any more", False
    finally:
        hang_task.cancel()
        await _stop_process(process, exit_task, child.stop_seconds)


async def _start_process(child: ChildProcess) -> Process:
    command = [
        sys.executable,
        "-m",
        "chatcore.serving.supervised",
        str(os.getpid()),
        *child.command,
    ]
    return await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **child.environment}, start_new_session=True
    )


async def _stop_process(process: Process, exit_task: "asyncio.Task[int]", seconds: float) -> None:
    """TERM to the child itself (its own children are its business), a bounded wait, then KILL to what is left of its session."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({exit_task}, timeout=seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await exit_task


def _describe_exit(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
