"""A process without threads that forks one child for each crash: `python -m` this module.

To start Python with Django takes seconds, and to fork takes none. It reads a line of JSON for each
crash, and answers with what the child was told before it died.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class CrashingProcess:
    """The process that forks; `crash` runs an act in a child of it."""

    process: "subprocess.Popen[str]"

    def crash(self, **order: Any) -> tuple[int, list[str]]:
        """Run an act in a child until it dies; return how it ended, and what it was told."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(order, default=str) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["status"], answer["sent"]


@contextmanager
def start_crashing_process(database_url: str) -> Iterator[CrashingProcess]:
    """Start the process over this database, and end it afterwards."""
    environment = os.environ | {
        "CHATCORE_DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        env=environment,
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        yield CrashingProcess(process)
        assert process.stdin
        process.stdin.close()


def main() -> None:
    """Fork for each line of the standard input."""
    import django

    django.setup()
    from chatcore.providers.registry import warm_up
    from tests.support import crash_acts  # noqa: F401 - loaded before the forks

    warm_up(["openai"])
    for line in sys.stdin:
        order = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            _run_child(order, writer)
        os.close(writer)
        with os.fdopen(reader) as told:
            sent = told.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status, "sent": sent}), flush=True)


def _run_child(order: dict[str, Any], writer: int) -> None:
    from tests.support.crash_acts import ACTS, Stage, stop_turns
    from tests.support.crash_points import CrashPoint, watch_commits

    def tell(text: str) -> None:
        os.write(writer, f"{text}\n".encode())  # not buffered: the process dies without warning

    exit_code = 1
    try:
        point = CrashPoint(order["point"], order["moment"], "kill", order["number"])
        stage = Stage(UUID(order["session"]), tell=tell)
        with watch_commits(point.visit):
            ACTS[order["act"]](stage)
            stop_turns()  # what follows an answer is part of the act
        exit_code = 0
    finally:
        # Neither threads are waited for nor handlers run.
        os._exit(exit_code)


if __name__ == "__main__":
    main()
