"""`/metrics` for Prometheus: what this machine has counted, and the state of the database."""

import contextlib
import hmac
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from prometheus_client.metrics_core import Metric

from chatcore.context.compactor import get_compactor
from chatcore.contrib.metrics.exposition import CONTENT_TYPE, build_gauge, render
from chatcore.extension import get_extensions
from chatcore.models import Turn

LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")
# A proxy on this machine comes from loopback too, and asks for somebody else.
PROXY_HEADERS = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Via")
REFUSAL = (
    "Metrics are for this machine alone; for others, set CHATCORE_METRICS_TOKEN and send it as"
    " `Authorization: Bearer TOKEN`.\n"
)


def report_metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the metrics, or 403 to whoever may not read them."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    if not _may_read(request):
        return HttpResponse(REFUSAL, status=403, content_type="text/plain; charset=utf-8")
    return HttpResponse(render(_collect_gauges()), content_type=CONTENT_TYPE)


def _may_read(request: HttpRequest) -> bool:
    token = settings.METRICS_TOKEN
    if token:
        authorization = request.headers.get("Authorization", "")
        return hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode())
    is_proxied = any(name in request.headers for name in PROXY_HEADERS)
    return request.META.get("REMOTE_ADDR") in LOOPBACK_ADDRESSES and not is_proxied


def _collect_gauges() -> Iterator[Metric]:
    """Yield the state of now. That of the database is the same on all machines: take the largest.

    Without a database, only that is said: the machine's own counts are worth reading then.
    """
    yield build_gauge("chatcore_build_info", "The version.", {_read_version(): 1}, label="version")
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(settings.DATA_DIR).free
        yield build_gauge(
            "chatcore_disk_free_bytes", "Room on the disk of this machine's data folder.", free
        )
    try:
        gauges = list(_measure_database())
    except DatabaseError:
        gauges = []
    yield build_gauge("chatcore_database_up", "1 if the database answers.", float(bool(gauges)))
    yield from gauges


def _measure_database() -> Iterator[Metric]:
    running_count = Turn.objects.filter(status=Turn.Status.RUNNING).count()
    yield build_gauge("chatcore_turns_running", "Turns that run on all machines.", running_count)
    for extension in get_extensions("list_gauges"):
        for gauge in extension.list_gauges():
            yield build_gauge(gauge.name, gauge.text, gauge.value)
    load = get_compactor().measure_load()
    if load is None:
        return
    yield build_gauge(
        "chatcore_compaction_queue_runs",
        "Compaction runs of all machines that have not ended.",
        {"queued": load.queued, "running": load.running},
        label="status",
    )
    yield build_gauge(
        "chatcore_compaction_queue_oldest_seconds",
        "How long the oldest queued compaction run has waited.",
        load.oldest_seconds,
    )
    yield build_gauge(
        "chatcore_workers", "Worker commands of all machines that live.", load.workers
    )


def _read_version() -> str:
    try:
        return version("chatcore")
    except PackageNotFoundError:
        return "unknown"
