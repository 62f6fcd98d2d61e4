"""`chatcore worker`: execute queued compaction runs until it is stopped."""

import signal
import sys

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from chatcore.base.metrics import counts, find_counts_path
from compaction.runs.worker import PATIENCE, ClusterKeeper


class Command(BaseCommand):
    help = "Run jobs until stopped (Ctrl-C, SIGTERM). Processes that die or hang are replaced."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workers",
            type=int,
            default=settings.Q_CLUSTER["workers"],
            help="Jobs at a time (default: %(default)s).",
        )
        parser.add_argument(
            "--patience",
            type=float,
            default=PATIENCE,
            help=(
                "Seconds that a run may wait while a worker is free, until the cluster counts as "
                "hung (default: %(default)s)."
            ),
        )
        if not find_counts_path():
            return
        parser.add_argument(
            "--metrics",
            default="",
            metavar="HOST:PORT",
            help=(
                "Serve this machine's counts for Prometheus, where no web process does, for example"
                " at 0.0.0.0:9464."
            ),
        )

    def handle(
        self, *, workers: int, patience: float, metrics: str = "", **options: object
    ) -> None:
        """Run the worker, and exit with 1 when no cluster of it works."""
        if workers < 1:
            raise CommandError(f"--workers is {workers}; it must be at least 1.", returncode=2)
        if patience <= 0:
            raise CommandError(f"--patience is {patience}; it must be above 0.", returncode=2)
        if metrics:
            serve_metrics(metrics)
        disable_connection_pools()
        keeper = ClusterKeeper(workers=workers, patience=patience)
        for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signal_number, keeper.request_stop)
        sys.exit(keeper.run())


def disable_connection_pools() -> None:
    """Replace pools of connections by ordinary ones, because a pool does not survive a fork."""
    for connection in connections.all():
        connection.close()
        options = connection.settings_dict.get("OPTIONS", {})
        if "pool" in options:
            connection.close_pool()  # type: ignore[attr-defined]
            del options["pool"]
            connection.settings_dict["CONN_MAX_AGE"] = 600
        connection.settings_dict["CONN_HEALTH_CHECKS"] = True


def serve_metrics(address: str) -> None:
    """Serve metrics at `host:port`. Raises CommandError, with one sentence, if that cannot be."""
    host, _, port = address.rpartition(":")
    try:
        counts.serve(host.strip("[]"), int(port))
    except (OSError, ValueError, OverflowError) as error:
        raise CommandError(f"--metrics is {address}: {error}.", returncode=2) from None
