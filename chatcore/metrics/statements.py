"""Measure how long this process waits for statements of the database."""

import time
from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from chatcore.metrics import counts

Execute = Callable[[str, Any, bool, dict[str, Any]], Any]


def watch_statements() -> None:
    """Count the statements of all connections of this process from now on."""
    connection_created.connect(_watch_connection, dispatch_uid="chatcore.metrics")
    for connection in connections.all(initialized_only=True):
        _watch_connection(connection=connection)


def _watch_connection(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    # The object stays when its connection is closed and opened again.
    if _measure not in connection.execute_wrappers:
        connection.execute_wrappers.append(_measure)


def _measure(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    start = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    finally:
        counts.count_statement(time.perf_counter() - start)
