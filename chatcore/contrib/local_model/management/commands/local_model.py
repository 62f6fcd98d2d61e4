"""`chatcore local-model`: the embedded model alone, for a machine of its own."""

import importlib.util
import sys
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chatcore.contrib.local_model import server
from chatcore.serving.listening import bind_socket


class Command(BaseCommand):
    help = (
        "Serve the embedded language model until stopped, and register its address in the database."
        " It is offered where that address is reached: name a host other than 127.0.0.1 for others."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        options = settings.LOCAL_MODEL
        parser.add_argument("--host", default=options["HOST"], help="default: %(default)s")
        parser.add_argument("--port", type=int, default=options["PORT"] or 8090)
        parser.add_argument(
            "--url",
            default=options["URL"],
            help="the address under which other machines reach it, as http://models.internal:8090",
        )

    def handle(self, *, host: str, port: int, url: str, **options: object) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise CommandError(
                "The embedded language model is not installed: pip install 'chatcore[local-model]'."
            )
        bind_socket(host, port).close()
        if host in ("0.0.0.0", "::", "") and not url:  # noqa: S104
            raise CommandError(
                f"--host is {host!r}, which is no address that others can connect to: name one"
                " with --url.",
                returncode=2,
            )
        settings.LOCAL_MODEL.update(HOST=host, PORT=port, URL=url.rstrip("/"))
        sys.exit(server.main())
