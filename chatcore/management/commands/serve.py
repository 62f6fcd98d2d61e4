"""`chatcore serve`: run everything on one machine, under one parent process."""

import os
from argparse import ArgumentParser
from functools import cached_property

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from django.utils.module_loading import import_string

from chatcore.base.databases.outages import get_redis_errors
from chatcore.extension import get_extensions
from chatcore.serving import listening, preparation, programs, static_files
from chatcore.serving.parent import Plan, become_parent
from chatcore.serving.programs import MAX_WEB_PROCESSES, Companion
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
            "--workers", type=int, default=settings.Q_CLUSTER["workers"], help="job processes"
        )
        parser.add_argument(
            "--web",
            type=int,
            default=count_spare_cores(),
            help="web processes, which share the port (default: the cores less one)",
        )
        for companion in self.companions:
            companion.add_arguments(parser)

    def handle(
        self,
        *,
        host: str,
        port: int,
        workers: int,
        web: int,
        **options: object,
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
        except get_redis_errors() as error:
            raise CommandError(
                f"The server that CHATCORE_REDIS_URL names cannot be used: {error}"
            ) from None
        additions = [companion.add(options) for companion in self.companions]
        web_environment: dict[str, str] = {}
        for addition in additions:
            web_environment.update(addition.web_environment)
            self._print_line(addition.line)
        children = [
            *programs.build_web_programs(
                host,
                web,
                drain_seconds=settings.SERVE_DRAIN_SECONDS,
                static_folder=static_files.provide_folder(),
                environment=web_environment,
            ),
            programs.build_worker(workers),
            *(program for addition in additions for program in addition.programs),
        ]
        preparation.close_connections()
        become_parent(Plan(programs=children, socket=server_socket.fileno(), welcome=welcome))

    def _prepare(self, host: str, port: int) -> str:
        """Prepare the database, and return the line that welcomes people."""
        with preparation.hold_start_lock():
            preparation.prepare_database()
            for companion in self.companions:
                companion.prepare()
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

    @cached_property
    def companions(self) -> list[Companion]:
        """What apps have to do with this command."""
        paths = [each.companion for each in get_extensions() if each.companion]
        return [import_string(path)() for path in paths]

    def _print_line(self, line: str) -> None:
        if line:
            self.stdout.write(line)
            self.stdout.flush()
