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

from chatcore.serving.health import Address, hung

Say = Callable[[str], None]
GAVE_UP = 78  # EX_CONFIG: the child says that starting it again would not help
FIRST_DELAY, LONGEST_DELAY, STEADY = (
    0.5,
    30.0,
    60.0,
)  # seconds; a child that ran STEADY seconds has a clean record


def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Child:
    """A program to keep running. `health` is asked over HTTP; after `patience` seconds without a first answer it counts as hung."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    health: Address | None = None
    patience: float = 60.0
    stop_seconds: float = 10.0
    on_answer: Callable[[], None] = _nothing


class _Stopped(Exception):
    """A signal asked for the end."""


async def supervise(children: Sequence[Child], *, say: Say) -> None:
    """Keep `children` running until TERM, INT or HUP; returns when every one of them is gone."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    try:
        async with asyncio.TaskGroup() as group:
            for child in children:
                group.create_task(_keep_running(child, say))
            await stopped.wait()
            say("Stopping …")
            raise _Stopped  # the group cancels its tasks, and each stops its child
    except* _Stopped:
        say("Stopped.")


async def _keep_running(child: Child, say: Say) -> None:
    delay = FIRST_DELAY
    while True:
        started = time.monotonic()
        reason, gave_up = await _run_once(child)
        if gave_up:
            say(f"The {child.name} will not be started again.")
            return
        delay = (
            FIRST_DELAY if time.monotonic() - started > STEADY else min(delay * 2, LONGEST_DELAY)
        )
        say(f"The {child.name} {reason}; starting it again in {delay:g} s.")
        await asyncio.sleep(delay)


async def _run_once(child: Child) -> tuple[str, bool]:
    """Start it and wait until it is dead or hung; says which, and whether it gave up. Nothing of it is left."""
    process = await _start(child)
    over = asyncio.create_task(process.wait())
    silent = asyncio.create_task(
        hung(child.health, patience=child.patience, on_answer=child.on_answer)
    )
    try:
        await asyncio.wait({over, silent}, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            return f"ended ({_ending(over.result())})", over.result() == GAVE_UP
        await silent  # a mistake of ours in asking must not pass for a hung child
        return "does not answer any more", False
    finally:
        silent.cancel()
        await _stop(process, over, child.stop_seconds)


async def _start(child: Child) -> Process:
    wrapped = [
        sys.executable,
        "-m",
        "chatcore.serving.supervised",
        str(os.getpid()),
        *child.command,
    ]
    return await asyncio.create_subprocess_exec(
        *wrapped, env={**os.environ, **child.environment}, start_new_session=True
    )


async def _stop(process: Process, over: "asyncio.Task[int]", seconds: float) -> None:
    """TERM to the child itself (its own children are its business), a bounded wait, then KILL to what is left of its session."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({over}, timeout=seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await over


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
