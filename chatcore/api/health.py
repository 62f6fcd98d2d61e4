"""Whether this process lives, and whether it can serve; for supervisors and load balancers."""

from collections.abc import Callable

from django.core.cache import cache
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def report_liveness(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


def report_readiness(request: HttpRequest) -> JsonResponse:
    """What a request needs is there; what is not is named, without its address."""
    failures = [name for name, check in DEPENDENCY_CHECKS.items() if not _passes_check(check)]
    return JsonResponse(
        {"status": "unavailable" if failures else "ok", "missing": failures},
        status=503 if failures else 200,
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
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is missing
        return False
