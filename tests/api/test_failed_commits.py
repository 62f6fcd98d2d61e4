"""Every commit of a request fails once: what the refusal says of what is stored is true."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest
from rest_framework.test import APIClient

from chatcore.base.rest.commits import (
    NOTHING_STORED,
    PARTLY_STORED,
    UNKNOWN_STORED,
    describe_stored_part,
)
from chatcore.models import Session
from tests.support.crash_points import build_lost_connection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]
MAX_COMMITS = 40  # more than one request makes
HISTORY = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
# A bookkeeping of requests, of which no client was told anything.
UNTOLD = {"chatcore_idempotencykey", "chatcore_installation"}
Act = Callable[[APIClient, Session], Any]

ACTS: dict[str, Act] = {
    "change a session": lambda api, session: api.patch(
        f"/api/v1/sessions/{session.pk}", {"title": "Other"}
    ),
    "import messages": lambda api, session: api.post(
        f"/api/v1/sessions/{session.pk}/messages/import", {"messages": HISTORY}
    ),
    "fork a session": lambda api, session: api.post(
        f"/api/v1/messages/{session.messages.order_by('-seq')[0].pk}/fork"
    ),
    "delete a message": lambda api, session: api.delete(
        f"/api/v1/messages/{session.messages.order_by('-seq')[0].pk}"
    ),
    "pin a message": lambda api, session: api.post(
        f"/api/v1/messages/{session.messages.order_by('seq')[0].pk}/pin"
    ),
    "create a token": lambda api, session: api.post("/api/v1/tokens", {"name": "script"}),
    "delete a session": lambda api, session: api.delete(f"/api/v1/sessions/{session.pk}"),
}


class FailingCommit:
    """Makes one commit fail: before the database has made it, or when it was made."""

    def __init__(self, number: int, *, is_made: bool) -> None:
        self.has_failed = False
        self._remaining = number
        self._is_made = is_made
        self._commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]

    def commit(self, wrapper: BaseDatabaseWrapper) -> None:
        self._remaining -= 1
        is_due = self._remaining == 0
        if self._is_made or not is_due:
            self._commit(wrapper)
        if is_due:
            self.has_failed = True
            if wrapper.vendor == "postgresql":
                wrapper.connection.close()
            with wrapper.wrap_database_errors:
                raise build_lost_connection()


def read_rows() -> dict[str, list[Any]]:
    """Return all rows of conversations and tokens."""
    rows = {}
    for label in ("chatcore", "knox"):
        for model in apps.get_app_config(label).get_models():
            table = model._meta.db_table
            if table not in UNTOLD:
                rows[table] = list(model._base_manager.order_by("pk").values_list())
    return rows


# SQLite has either made a commit or rolled it back, and says which.
@pytest.mark.parametrize("is_made", [False, True] if connection.vendor != "sqlite" else [False])
@pytest.mark.parametrize("name", list(ACTS))
def test_what_a_refusal_says_of_a_commit_that_fails_is_true(
    name: str, is_made: bool, user: User, api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, MAX_COMMITS):
        session = Session.objects.create(owner=user, title="Talk")
        api.post(f"/api/v1/sessions/{session.pk}/messages/import", {"messages": HISTORY})
        before = read_rows()
        fault = FailingCommit(number, is_made=is_made)
        with monkeypatch.context() as patch:
            patch.setattr(BaseDatabaseWrapper, "_commit", lambda self, _f=fault: _f.commit(self))
            response = ACTS[name](api, session)
        if not fault.has_failed:
            assert response.status_code < 300, response.content
            assert number > 1, "it made no commit"
            return
        is_changed = read_rows() != before
        if response.status_code < 300:  # the commit of a chore behind what was asked
            assert is_changed
            continue
        assert response.status_code == 503, response.content
        detail = response.json()["detail"]
        said = [each for each in (NOTHING_STORED, PARTLY_STORED, UNKNOWN_STORED) if each in detail]
        assert len(said) == 1, detail
        if said != [UNKNOWN_STORED]:
            assert is_changed is (said == [PARTLY_STORED]), f"commit {number}: {detail}"
    pytest.fail("The request makes more commits than this test expects.")


def test_a_request_without_a_method_counts_as_one_that_writes() -> None:
    """That of a WebSocket has none."""
    assert describe_stored_part(HttpRequest(), OSError()) == NOTHING_STORED
    assert describe_stored_part(None, OSError()) == ""
