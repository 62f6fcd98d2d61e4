"""A PostgreSQL server of a test's own, which it can stop, kill and start."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg
from django.conf import settings

from tests.support.worker_processes import wait_until

# Debian keeps the server's programs apart, one folder a version.
FOLDERS = [str(folder) for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
OPTIONS = ("fsync=off", "max_connections=200", "unix_socket_directories=", "log_min_messages=fatal")
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


def find_program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([*reversed(FOLDERS), os.environ["PATH"]]))


class PostgresServer:
    """`with PostgresServer() as server`: `server.url` answers unless it was stopped or killed."""

    def __init__(self, options: Sequence[str] = (), log: Path | None = None) -> None:
        """Take more options of the server, and where to write its log, if it has one."""
        self._options = (*OPTIONS, *options)
        self._log = log
        # Not in a test's folder, which another user may not enter.
        self._folder = Path(tempfile.mkdtemp(prefix="chatcore-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def folder(self) -> Path:
        """Where the server may read: its own folder, which goes with it."""
        return self._folder

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a product that uses the server, with keys that all machines share."""
        return {
            "CHATCORE_DATABASE_URL": self.url,
            "CHATCORE_SECRET_KEY": settings.SECRET_KEY,
            "CHATCORE_KEY_ENCRYPTION_KEYS": ",".join(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]),
        }

    @staticmethod
    def is_installed() -> bool:
        return bool(find_program("initdb") and find_program("postgres"))

    def start(self) -> None:
        options = [part for option in self._options for part in ("-c", option)]
        arguments = ["-D", str(self._folder / "data"), "-p", str(self.port), *options]
        with open(self._log or os.devnull, "ab") as log:
            self._process = subprocess.Popen(
                [str(find_program("postgres")), "-h", "127.0.0.1", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                **_drop_root(),
            )
        wait_until(self.answers, seconds=60, what="PostgreSQL")

    def stop(self, mode: str = "fast") -> None:
        """Stop as an operator does: fast breaks connections, immediate does not even write."""
        self._end(SIGNALS[mode])

    def kill(self) -> None:
        """Kill all of its processes, as a machine that loses power does."""
        assert self._process
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)
        # Its children lead sessions of their own; they end when they miss their parent.
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        wait_until(lambda: not self._has_processes(), seconds=60, what="the end of its processes")

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def __enter__(self) -> Self:
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres")
        subprocess.run(
            [str(find_program("initdb")), "-D", str(self._folder / "data"), "-U", "postgres", "-N"],
            check=True,
            capture_output=True,
            **_drop_root(),
        )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, number: int) -> None:
        if self._process and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(60)

    def _has_processes(self) -> bool:
        return any(
            str(self._folder) in " ".join(process.info["cmdline"] or ())
            for process in psutil.process_iter(["cmdline"])
        )


def _drop_root() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
