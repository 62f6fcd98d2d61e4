"""`chatcore serve`: run everything on one machine, under one parent process."""

import importlib.util
import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from redis.exceptions import RedisError

from chatcore.serving import listening, preparation, programs, start_lock, static_files
from chatcore.serving.local_model import register
from chatcore.serving.parent import Plan, become_parent
from chatcore.serving.programs import MAX_WEB_PROCESSES
from chatcore.web import sign_in


def count_spare_cores() -> int:
    """Return the number of this machine's cores without the one that the other processes need."""
    return min(max((os.cpu_count() or 1) - 1, 1), MAX_WEB_PROCESSES)


class Command(BaseCommand):
    help = (
        "Run everything on one machine and print a one-time sign-in link; Ctrl-C stops all of it,"
        " a second one at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--no-local-model", action="store_true", help="leave the embedded language model out"
        )
        parser.add_argument(
            "--workers", type=int, default=settings.Q_CLUSTER["workers"], help="job processes"
        )
        parser.add_argument(
            "--web",
            type=int,
            default=count_spare_cores(),
            help="web processes, which share the port (default: the cores less one)",
        )

    def handle(
        self,
        *,
        host: str,
        port: int,
        no_local_model: bool,
        workers: int,
        web: int,
        **options: Any,
    ) -> None:
        server_socket = listening.bind_socket(host, port)
        if workers < 1:
            raise CommandError(f"--workers is {workers}; it must be at least 1.", returncode=2)
        if not 1 <= web <= MAX_WEB_PROCESSES:
            raise CommandError(
                f"--web is {web}; it must be from 1 to {MAX_WEB_PROCESSES}.", returncode=2
            )
        try:
            welcome = self._prepare(host, port)
        except RedisError as error:
            raise CommandError(
                f"The server that CHATCORE_REDIS_URL names cannot be used: {error}"
            ) from None
        local_model = "no" if no_local_model else self._choose_local_model()
        children = [
            *programs.build_web_programs(
                host,
                web,
                drain_seconds=settings.SERVE_DRAIN_SECONDS,
                static_folder=static_files.provide_folder(),
                local_model=local_model,
            ),
            programs.build_worker(workers),
        ]
        if local_model == "yes":
            children.append(programs.build_local_model())
        preparation.close_connections()
        become_parent(Plan(programs=children, socket=server_socket.fileno(), welcome=welcome))

    def _prepare(self, host: str, port: int) -> str:
        """Prepare the database, and return the line that welcomes people."""
        with start_lock.hold_start_lock():
            preparation.prepare_database()
            # The embedded model is offered again when it has started and registered itself.
            register.withdraw_model()
            return self._build_welcome(host, port)

    def _build_welcome(self, host: str, port: int) -> str:
        address = settings.PUBLIC_URL or f"http://{programs.format_link_host(host)}:{port}"
        sign_in.keep_address(address)
        user = sign_in.ensure_administrator()
        if user is None:
            return (
                f"Chatcore is up at {address}{reverse('home')} — no active superuser;"
                " `chatcore createsuperuser` makes one."
            )
        if not settings.PRINTS_SIGN_IN_LINK:
            return (
                f"Chatcore is up at {address}{reverse('home')} — `chatcore sign_in_link` prints a"
                " link."
            )
        link = f"{address}{sign_in.build_link_path(user)}"
        return f"Chatcore is up. Sign in, once and within 15 minutes: {link}"

    def _choose_local_model(self) -> str:
        if importlib.util.find_spec("xllamacpp") is not None:
            return "yes"
        self._print_line(
            "The embedded language model is not installed"
            " (pip install 'chatcore[local-model]'); going on without it."
        )
        return "not installed"

    def _print_line(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
