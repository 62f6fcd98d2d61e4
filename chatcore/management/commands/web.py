"""`chatcore web`: the web server alone, for machines or containers of its own."""

from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatcore.serving import connections, listening, preparation, programs, web_server
from chatcore.serving.parent import Plan, become_parent
from chatcore.serving.programs import MAX_WEB_PROCESSES


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
        self, *, host: str, port: int, processes: int, migrate: bool, **options: object
    ) -> None:
        if not 1 <= processes <= MAX_WEB_PROCESSES:
            raise CommandError(
                f"--processes is {processes}; it must be from 1 to {MAX_WEB_PROCESSES}.",
                returncode=2,
            )
        server_socket = listening.bind_socket(host, port)
        if migrate:
            preparation.prepare_database()
        preparation.require_prepared_database()
        if shortage := connections.find_shortage(processes):
            self.stderr.write(shortage)
        preparation.close_connections()
        if processes == 1:
            web_server.serve_socket(server_socket)
            return
        children = programs.build_web_programs(
            host,
            processes,
            drain_seconds=settings.DRAIN_SECONDS,
            static_folder=settings.STATIC_DIR,
        )
        become_parent(Plan(programs=children, socket=server_socket.fileno()))
