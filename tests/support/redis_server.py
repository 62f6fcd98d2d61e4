"""A Redis server of a test's own, which it can stop and start."""

import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Self

import redis

from tests.support.waiting import wait_until


class RedisServer:
    """`with RedisServer(folder) as server`: `server.url` answers until `server.kill()`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def is_installed() -> bool:
        return shutil.which("redis-server") is not None

    def start(self) -> None:
        options = {"--port": str(self.port), "--save": "", "--dir": str(self._folder)}
        self._process = subprocess.Popen(
            ["redis-server", *(part for option in options.items() for part in option)],
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers, seconds=60, what="Redis")

    def kill(self) -> None:
        """Kill the server as a crash does."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop the server without closing a connection: nobody answers."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self._process and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(60)

    def _answers(self) -> bool:
        try:
            return bool(redis.Redis.from_url(self.url, socket_connect_timeout=1).ping())
        except redis.RedisError:
            return False
