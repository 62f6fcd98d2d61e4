"""PgBouncer in transaction mode before a PostgreSQL server."""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

from tests.support.waiting import wait_until


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))


class PgBouncer:
    """`with PgBouncer(folder, server_port) as pooler`: `pooler.url` answers until it is killed."""

    def __init__(self, folder: Path, server_port: int) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"postgres://postgres@127.0.0.1:{self._port}/postgres"
        folder.mkdir()
        folder.parent.chmod(0o755)  # the pooler runs as another user
        (folder / "users.txt").write_text('"postgres" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self._port}\nunix_socket_dir =\n"
            f"auth_type = any\nauth_file = {folder}/users.txt\npool_mode = transaction\n"
            "default_pool_size = 10\n"
            "ignore_startup_parameters = extra_float_digits,options\n"
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._process = subprocess.Popen(
            [str(find_pgbouncer()), "-q", str(self._folder / "pgbouncer.ini")],
            stderr=subprocess.DEVNULL,
            **user,  # type: ignore[call-overload]
        )
        wait_until(self._answers, what="PgBouncer")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 2):
            return True
        return False
