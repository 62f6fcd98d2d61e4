"""Health checks for supervisors and load balancers: the process runs, and it can serve."""

import functools
from collections.abc import Callable

from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.module_loading import import_string

from chatcore.base import paused_deletion
from chatcore.context.compactor import get_compactor
from chatcore.extension import get_extensions
from chatcore.turns import capacity
from models_registry.models import Provider

LONG_WAIT_SECONDS = 300.0  # which no run waits for while workers keep up


class Probes:
    """Middleware that answers probes before all else.

    They come over plain HTTP to an address, and know neither the public name nor a way to sign in.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        report = load_probes().get(request.path_info.removesuffix("/"))
        if report is None:
            return self.get_response(request)
        return report(request)


def report_liveness(request: HttpRequest) -> JsonResponse:
    """Answer 200: the process runs."""
    return JsonResponse({"status": "ok"})


def report_readiness(request: HttpRequest) -> JsonResponse:
    """Answer 200 if all that requests need is available; otherwise 503 with the missing names.

    A process that was asked to stop is not ready either, so that proxies send nobody to it.

    Says how many workers live and how long the oldest compaction waits. A web process serves
    without workers and without Redis, so what is wrong there is a warning.

    Names the providers whose stored key cannot be decrypted. If none can, this process has another
    encryption key than the one that stored them, and is not ready.
    """
    if not capacity.is_admitting():
        return JsonResponse({"status": "stopping", "missing": []}, status=503)
    missing_names = [name for name, check in DEPENDENCY_CHECKS.items() if not _passes_check(check)]
    report: dict[str, object] = {
        "status": "unavailable" if missing_names else "ok",
        "missing": missing_names,
    }
    unreadable_names = [] if "database" in missing_names else _list_unreadable_keys()
    if unreadable_names:
        report["unreadable_keys"] = unreadable_names
    if not missing_names:
        work, warnings = _describe_work()
        if not _passes_check(_check_cache):
            warnings.append("cache: it is away, and each process goes on with its own memory")
        report |= {**work, "warnings": [*warnings, *paused_deletion.list_problems()]}
    return JsonResponse(report, status=503 if missing_names else 200)


def _describe_work() -> tuple[dict[str, object], list[str]]:
    """Return how much there is to do, and what is wrong with it."""
    try:
        load = get_compactor().measure_load()
    except DatabaseError:
        return {}, []
    if load is None:
        return {}, []
    warnings = []
    if not load.workers:
        warnings.append("no worker lives")
    if load.oldest_seconds > LONG_WAIT_SECONDS:
        warnings.append(f"a compaction has waited for {load.oldest_seconds:.0f} s")
    queue = {
        "queued": load.queued,
        "running": load.running,
        "oldest_seconds": round(load.oldest_seconds, 1),
    }
    return {"workers": load.workers, "queue": queue}, warnings


def _list_unreadable_keys() -> list[str]:
    try:
        return Provider.objects.list_unreadable()
    except DatabaseError:  # its tables are not there yet
        return []


def _check_keys() -> bool:
    stored_count = Provider.objects.exclude(encrypted_api_key="").count()
    return not stored_count or len(Provider.objects.list_unreadable()) < stored_count


def _check_database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


def _check_migrations() -> bool:
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _check_cache() -> bool:
    cache.set("readyz", "ok", 10)
    # A cache in Redis goes on in memory while Redis is away (chatcore/base/caches.py).
    return cache.get("readyz") == "ok" and not getattr(cache, "is_away", False)


DEPENDENCY_CHECKS: dict[str, Callable[[], bool]] = {
    "database": _check_database,
    "migrations": _check_migrations,
    "encryption key": _check_keys,
}


def _passes_check(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:  # noqa: BLE001 - any error of a dependency means that it is not available
        return False


@functools.cache
def load_probes() -> dict[str, Callable[[HttpRequest], HttpResponse]]:
    """Return what answers each path, those of apps too."""
    paths = [item for each in get_extensions() for item in each.probes.items()]
    return {
        "/livez": report_liveness,
        "/readyz": report_readiness,
        **{path: import_string(name) for path, name in paths},
    }
