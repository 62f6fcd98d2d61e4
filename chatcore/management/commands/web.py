"""`chatcore web`: the web server alone, for machines or containers of its own."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatcore.serving import listening, preparation, processes, web_server
from chatcore.serving.supervisor import supervise_children

MAX_PROCESSES = 64


class Command(BaseCommand):
    help = (
        "Serve pages and APIs until stopped. After TERM or Ctrl-C no new turns are taken, and those"
        " that run have CHATCORE_DRAIN_SECONDS to end; a second signal ends them at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--processes", type=int, default=1, help="web processes, which share the port"
        )
        parser.add_argument(
            "--migrate", action="store_true", help="prepare the database first (chatcore prepare)"
        )

    def handle(
        self, *, host: str, port: int, processes: int, migrate: bool, **options: Any
    ) -> None:
        if not 1 <= processes <= MAX_PROCESSES:
            raise CommandError(
                f"--processes is {processes}; it must be from 1 to {MAX_PROCESSES}.", returncode=2
            )
        listening.check_address(host, port, is_shared=True)
        if migrate:
            preparation.prepare_database()
        preparation.require_prepared_database()
        preparation.close_connections()
        if processes == 1:
            web_server.serve_sockets([web_server.open_socket(host, port, is_shared=True)])
        else:
            self._supervise(host, port, processes)

    def _supervise(self, host: str, port: int, count: int) -> None:
        children = processes.build_web_servers(
            host, port, count, drain_seconds=settings.DRAIN_SECONDS
        )
        asyncio.run(supervise_children(children, print_line=self._print_line))

    def _print_line(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
