"""Health checks for supervisors and load balancers: the process runs, and it can serve."""

from collections.abc import Callable

from django.core.cache import cache
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def report_liveness(request: HttpRequest) -> JsonResponse:
    """Answer 200: the process runs."""
    return JsonResponse({"status": "ok"})


def report_readiness(request: HttpRequest) -> JsonResponse:
    """Answer 200 if all that requests need is available; otherwise 503 with the missing names."""
    missing_names = [name for name, check in DEPENDENCY_CHECKS.items() if not _passes_check(check)]
    return JsonResponse(
        {"status": "unavailable" if missing_names else "ok", "missing": missing_names},
        status=503 if missing_names else 200,
    )


def _check_database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


def _check_migrations() -> bool:
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _check_cache() -> bool:
    cache.set("readyz", "ok", 10)
    return cache.get("readyz") == "ok"


DEPENDENCY_CHECKS: dict[str, Callable[[], bool]] = {
    "database": _check_database,
    "migrations": _check_migrations,
    "cache": _check_cache,
}


def _passes_check(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:  # noqa: BLE001 - any error of a dependency means that it is not available
        return False
