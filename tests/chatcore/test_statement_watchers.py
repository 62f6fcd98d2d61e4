"""Functions around each statement come and go, while connections are made anew in between."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections
from django.db.backends.signals import connection_created
from rest_framework.test import APIClient

from chatcore.base.databases.statement_watchers import add_watcher, watch_statements
from chatcore.base.metrics import counts
from chatcore.models import Session

PACKAGES = ("chatcore", "compaction", "models_registry", "textkit")
OWNER = "chatcore/base/databases/statement_watchers.py"


def run_in_new_thread(work: Callable[[], None]) -> None:
    """Run work with a connection object of its own, and raise what it raises."""
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(work).result()
        finally:
            thread.submit(connections.close_all).result()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("method", ["patch", "post", "get"])
def test_requests_leave_nothing_on_the_connection_of_their_thread(
    api: APIClient, session: Session, method: str
) -> None:
    """A pool opens a connection in each request, after the request has begun to watch."""
    url = f"/api/v1/sessions/{session.pk}" + ("/messages/import" if method == "post" else "")
    body = {"messages": [{"role": "user", "content": "Hello"}]} if method == "post" else {}
    counts.watch_statements()  # as each process of a deployment does

    def send_requests() -> None:
        for _ in range(5):
            connection.close()
            response = getattr(api, method)(url, body, format="json")
            assert response.status_code in (200, 201)
        assert len(connection.execute_wrappers) <= 1, "the metrics' own and no other"

    run_in_new_thread(send_requests)


@pytest.mark.django_db(transaction=True)
def test_a_watcher_ends_with_its_block_whatever_was_added_inside() -> None:
    seen: list[str] = []

    def note(name: str) -> Any:
        def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            seen.append(name)
            return execute(sql, params, many, context)

        return watch

    lasting, passing = note("lasting"), note("passing")

    def use_connection() -> None:
        def add_lasting(*, connection: Any, **_: object) -> None:
            add_watcher(connection, lasting)

        connection_created.connect(add_lasting)
        try:
            connection.close()
            with watch_statements(connection, passing):
                connection.cursor().execute("SELECT 1")
            seen.append("after")
            connection.cursor().execute("SELECT 1")
            connection.close()
            connection.cursor().execute("SELECT 1")
        finally:
            connection_created.disconnect(add_lasting)

    run_in_new_thread(use_connection)
    begun = seen.index("passing")
    assert seen[begun - 1] == "lasting", "what lasts stands outside"
    assert set(seen[seen.index("after") :]) == {"after", "lasting"}
    assert seen[seen.index("after") :].count("lasting") >= 2


def test_one_module_touches_the_list_of_wrappers() -> None:
    paths = (path for name in PACKAGES for path in Path(settings.BASE_DIR, name).rglob("*.py"))
    users = {
        str(path.relative_to(settings.BASE_DIR))
        for path in paths
        if "execute_wrapper" in path.read_text()
    }
    assert users == {OWNER}
