"""Count what runs of ours for one message: python -m measure.turn.path [--list].

From the request to the stored answer and the check after it: our files and functions, by a
profiler in all threads, and the statements on SQLite. The process has answered once before, so
what is loaded and remembered is not counted. Comprehensions and module bodies are no functions.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from chatcore.base.databases.statement_watchers import add_watcher
from measure.benchmarks.load.product import run_provider
from measure.turn.__main__ import PACE, SHORT_TOKENS

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(
    f"{ROOT / name}/" for name in ("chatcore", "compaction", "models_registry", "textkit")
)
CHECK_SECONDS = 0.6  # until all that follows an answer is done; chores come between otherwise


class TurnPath:
    """What ran while `is_recording`."""

    def __init__(self) -> None:
        self.is_recording = False
        self.functions: Counter[tuple[str, str]] = Counter()
        self.statements: list[str] = []

    def note_call(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a function of ours (a profile function, see `sys.setprofile`)."""
        code = frame.f_code
        if (
            self.is_recording
            and event == "call"
            and code.co_filename.startswith(PACKAGES)
            and not code.co_name.startswith("<")
        ):
            name = f"{code.co_qualname}:{code.co_firstlineno}"
            self.functions[code.co_filename.removeprefix(f"{ROOT}/"), name] += 1

    def watch_connection(self, *, connection: BaseDatabaseWrapper, **_: Any) -> None:
        """Note the statements of a connection (a receiver of `connection_created`)."""
        add_watcher(connection, self.note_statement)

    def note_statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Note a statement (an execute wrapper of Django's)."""
        if self.is_recording:
            self.statements.append(sql)
        return execute(sql, params, many, context)


def create_people(provider_port: int, folder: str) -> tuple[str, list[str]]:
    """Create the database, and return a token with two sessions."""
    os.environ.update(
        DJANGO_SETTINGS_MODULE="chatcore.settings",
        CHATCORE_DATA_DIR=folder,
        CHATCORE_DATABASE_URL=f"sqlite:///{folder}/chatcore.sqlite3",
        CHATCORE_LOG_LEVEL="CRITICAL",
    )
    address = f"http://127.0.0.1:{provider_port}/v1"
    output = subprocess.run(
        [sys.executable, "-m", "measure.benchmarks.load.people", address, "1", "3"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    token, sessions = json.loads(output.splitlines()[-1])["people"][0]
    return token, sessions


def serve() -> int:
    """Serve the product in a thread of this process; return the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config("chatcore.asgi:application", log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server could not start"
        time.sleep(0.1)
    return int(listener.getsockname()[1])


def send(port: int, token: str, session: str) -> None:
    """Send a message, and wait for the answer and for what follows it."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/sessions/{session}/messages",
        json.dumps({"content": f"Count to {SHORT_TOKENS}"}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 201, response.read()
    time.sleep(CHECK_SECONDS)


def main() -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(prog="python -m measure.turn.path", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name all of them")
    options = parser.parse_args()
    path = TurnPath()
    with run_provider(PACE) as provider_port, tempfile.TemporaryDirectory() as folder:
        token, sessions = create_people(provider_port, folder)
        connection_created.connect(path.watch_connection)
        threading.setprofile(path.note_call)
        port = serve()
        send(port, token, sessions[0])
        send(port, token, sessions[1])
        path.is_recording = True
        send(port, token, sessions[1])
        path.is_recording = False
    files = Counter(file for file, _ in path.functions)
    if options.list:
        for file in sorted(files):
            names = sorted(
                (int(name.partition(":")[2]), name.partition(":")[0], count)
                for (each, name), count in path.functions.items()
                if each == file
            )
            print(file, ", ".join(f"{name} ×{count}" for _, name, count in names), sep=": ")
        print(*path.statements, sep="\n")
    print(f"{len(files)} files, {len(path.functions)} functions, {len(path.statements)} statements")
    return 0


if __name__ == "__main__":
    main_status = main()
    sys.stdout.flush()
    os._exit(main_status)
