"""Keep programs running: `python -m chatcore.serving.parent FD` reads from FD which ones, as JSON.

`chatcore serve` and `chatcore web` become this process when everything is prepared. It stays as
long as they do, so it imports no Django. Each program runs in a process session of its own: Ctrl-C
in a terminal reaches only this process, and one signal reaches whatever a program has started.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import NoReturn

import psutil

EXIT_GIVE_UP = 78  # EX_CONFIG: a program ends with it if another start would not help
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>

# All in seconds.
TICK = 0.5
FIRST_DELAY = 0.5  # before another start; doubled each time
LONGEST_DELAY = 30.0
STEADY = 60.0  # after a run of this length the delay begins again
LOOK_INTERVAL = 5.0  # at the states of processes
LONGEST_STOP = 15.0  # for which a process may stay stopped
READY = 120.0  # for a new web process to serve in place of an old one
HURRY = 10.0  # until KILL, after a second signal


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """What to run. `stop_seconds` pass between TERM and KILL.

    A web program gets two more arguments: the number of the shared socket, and that of a pipe to
    which it writes when it serves.
    """

    name: str
    command: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    stop_seconds: float = 10.0
    is_web: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Programs, the socket of web programs, and what to say when the first of them serves."""

    programs: list[Program]
    socket: int
    welcome: str = ""


def become_parent(plan: Plan) -> NoReturn:
    """Replace this process by the parent of these programs."""
    reader, writer = os.pipe()
    os.write(writer, json.dumps(asdict(plan)).encode())  # far less than a pipe holds
    os.close(writer)
    for number in (reader, plan.socket):
        os.set_inheritable(number, True)
    sys.stdout.flush()
    command = [sys.executable, "-m", "chatcore.serving.parent", str(reader)]
    os.execv(sys.executable, command)  # noqa: S606


class Child:
    """A program and its process, from one start to the next."""

    def __init__(self, program: Program, listener: int) -> None:
        self.program = program
        self.is_ready = False
        self.start_time = time.monotonic()
        self.stopped_since: float | None = None
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._reader = reader
        parent = os.getpid()
        numbers = [listener, writer] if program.is_web else []
        self.process = subprocess.Popen(  # noqa: S603 - commands of our own
            [*program.command, *map(str, numbers)],
            env={**os.environ, **program.environment},
            pass_fds=numbers,
            start_new_session=True,
            preexec_fn=lambda: die_with(parent),  # there are no threads here
        )
        os.close(writer)

    def look(self) -> str | None:
        """Note whether it serves. Return how it ended, if it has."""
        if not self.is_ready:
            with suppress(BlockingIOError):
                self.is_ready = bool(os.read(self._reader, 1))
        code = self.process.poll()
        if code is not None:
            return f"ended ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"
        return None

    def is_stopped_for_long(self) -> bool:
        """Return True if it was stopped by a signal, and did not go on for LONGEST_STOP."""
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED:
                self.stopped_since = self.stopped_since or time.monotonic()
                return time.monotonic() - self.stopped_since >= LONGEST_STOP
        self.stopped_since = None
        return False

    def ask(self, number: int) -> None:
        """Send a signal to its first process only: that one stops the others in order."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill(self) -> None:
        """Kill what is left of its process session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._reader)


class Parent:
    """Starts the programs, starts them again, and ends them all at a signal."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._welcome = plan.welcome
        self._signals: list[int] = []
        self._children: dict[Program, Child] = {}
        self._delays = dict.fromkeys(plan.programs, FIRST_DELAY)
        self._due = dict.fromkeys(plan.programs, 0.0)  # when each is to be started
        self._next_look = 0.0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.append(number))

    def run(self) -> None:
        """Keep the programs running until TERM or INT; HUP starts the web programs anew."""
        while not {signal.SIGTERM, signal.SIGINT} & set(self._signals):
            if signal.SIGHUP in self._signals:
                self._signals.remove(signal.SIGHUP)
                self._renew_web_programs()
            self._start_due_programs()
            self._look_at_children()
            time.sleep(TICK)
        self._signals = self._signals[-1:]
        print_line("Stopping …")
        self._stop(list(self._children.values()))
        print_line("Stopped.")

    def _start_due_programs(self) -> None:
        now = time.monotonic()
        for program, due in list(self._due.items()):
            if now >= due:
                del self._due[program]
                self._children[program] = Child(program, self._plan.socket)

    def _look_at_children(self) -> None:
        is_looking_due = time.monotonic() >= self._next_look
        if is_looking_due:
            self._next_look = time.monotonic() + LOOK_INTERVAL
        for program, child in list(self._children.items()):
            reason = child.look()
            if self._welcome and child.is_ready:
                print_line(self._welcome)
                self._welcome = ""
            if reason is None and is_looking_due and child.is_stopped_for_long():
                reason = "does not answer any more"
            if reason is not None:
                self._replace(program, child, reason)

    def _replace(self, program: Program, child: Child, reason: str) -> None:
        child.kill()
        del self._children[program]
        if child.process.returncode == EXIT_GIVE_UP:
            print_line(f"The {program.name} will not be started again.")
            return
        is_steady = time.monotonic() - child.start_time > STEADY
        delay = FIRST_DELAY if is_steady else min(2 * self._delays[program], LONGEST_DELAY)
        self._delays[program] = delay
        self._due[program] = time.monotonic() + delay
        print_line(f"The {program.name} {reason}; starting it again in {delay:g} s.")

    def _renew_web_programs(self) -> None:
        """Put new processes into service one by one, and then end the old ones."""
        print_line("Starting the web processes anew …")
        for program, old in list(self._children.items()):
            if not program.is_web:
                continue
            new = Child(program, self._plan.socket)
            if self._wait_until_ready(new):
                self._children[program] = new
                self._stop([old], ask=signal.SIGHUP)
            else:
                new.kill()
                print_line(f"The new {program.name} does not serve; the old one goes on.")

    def _wait_until_ready(self, child: Child) -> bool:
        deadline = time.monotonic() + READY
        while not self._signals and time.monotonic() < deadline and child.look() is None:
            if child.is_ready:
                return True
            time.sleep(TICK)
        return False

    def _stop(self, children: Sequence[Child], *, ask: int = signal.SIGTERM) -> None:
        """Let programs end what they have in hand, and at another signal at once.

        HUP asks a web process whose socket another one serves (chatcore/serving/draining.py).
        """
        now = time.monotonic()
        deadlines = {child: now + child.program.stop_seconds for child in children}
        signal_count = len(self._signals)
        for child in children:
            child.ask(ask)
        while any(
            child.process.poll() is None and time.monotonic() < deadline
            for child, deadline in deadlines.items()
        ):
            if len(self._signals) > signal_count:
                signal_count = len(self._signals)
                hurry = time.monotonic() + HURRY
                deadlines = {child: min(due, hurry) for child, due in deadlines.items()}
                for child in children:
                    child.ask(signal.SIGTERM)
            time.sleep(TICK / 10)
        for child in children:
            child.kill()


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have died before the request. No signal comes then, so nothing must start.
    if os.getppid() != parent:
        os._exit(1)


def print_line(line: str) -> None:
    """Print a line at once, also where the output is a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the plan, and carry it out."""
    with os.fdopen(int(sys.argv[1])) as file:
        values = json.load(file)
    programs = [Program(**each) for each in values.pop("programs")]
    Parent(Plan(programs=programs, **values)).run()


if __name__ == "__main__":
    main()
