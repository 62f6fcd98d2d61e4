"""Whether this process lives, and whether it can serve; for supervisors and load balancers."""

from collections.abc import Callable

from django.core.cache import cache
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def live(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """What a request needs is there; what is not is named, without its address."""
    missing = [name for name, works in NEEDED.items() if not _safely(works)]
    return JsonResponse(
        {"status": "unavailable" if missing else "ok", "missing": missing},
        status=503 if missing else 200,
    )


def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


def _migrations() -> bool:
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _cache() -> bool:
    cache.set("readyz", "ok", 10)
    return cache.get("readyz") == "ok"


NEEDED: dict[str, Callable[[], bool]] = {
    "database": _database,
    "migrations": _migrations,
    "cache": _cache,
}


def _safely(works: Callable[[], bool]) -> bool:
    try:
        return works()
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is missing
        return False
