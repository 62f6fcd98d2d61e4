"""Know whether a request that fails has stored something before."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.http import HttpRequest

from chatcore.base.databases.outages import DATABASE_AWAY, find_outage
from chatcore.base.databases.statement_watchers import watch_statements

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Statements that change a conversation. What the framework writes besides, as the counters of the
# cache and the keys of requests, is nothing that a client asked for.
CHANGE = re.compile(
    r'\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+"?'
    r"(?:chatcore_(?!cache\b|idempotencykey\b)|compaction_|knox_)"
)
NOTHING_STORED = "Nothing was stored."
PARTLY_STORED = "A part of it was stored: look before you send it again."
UNKNOWN_STORED = "It is not known whether it was stored: look before you send it again."


class CommitWatch:
    """An execute wrapper (Django's) that notes when a change of a conversation is committed.

    `pending` counts the changes whose commit was not confirmed; those of a rollback stay. `failure`
    is the error of the last statement that failed. An error that came from no statement while
    changes were pending may have come from their commit.
    """

    def __init__(self) -> None:
        self.has_committed = False
        self.pending = 0
        self.failure: Exception | None = None

    def __call__(
        self,
        execute: Callable[..., object],
        sql: str,
        params: object,
        many: bool,
        context: dict[str, Any],
    ) -> object:
        try:
            result = execute(sql, params, many, context)
        except Exception as error:
            self.failure = error
            raise
        if not sql.startswith("SELECT") and CHANGE.search(sql):
            self.pending += 1
            # At once outside of a transaction; a rollback drops it together with the change.
            transaction.on_commit(self._note_commit, using=context["connection"].alias)
        return result

    def _note_commit(self) -> None:
        self.has_committed = True
        self.pending -= 1


@contextlib.contextmanager
def watch_commits(request: HttpRequest) -> Iterator[None]:
    """Watch what this thread stores for a request that may change something."""
    if request.method in SAFE_METHODS:
        yield
        return
    watch = CommitWatch()
    request.commit_watch = watch  # type: ignore[attr-defined]
    with watch_statements(connections[DEFAULT_DB_ALIAS], watch):
        yield


@contextlib.contextmanager
def all_or_nothing(request: object) -> Iterator[None]:
    """Count what fails inside as not stored.

    For work of several transactions whose parts stay hidden until the last one is committed.
    """
    with contextlib.ExitStack() as undo:
        if watch := getattr(request, "commit_watch", None):
            undo.callback(setattr, watch, "has_committed", False)
        yield
        undo.pop_all()


def describe_stored_part(request: object, error: BaseException) -> str:
    """Return a sentence about what a failed request has stored; empty if it could store nothing."""
    if request is None or getattr(request, "method", None) in SAFE_METHODS:
        return ""
    watch = getattr(request, "commit_watch", None)
    if watch is None:
        return NOTHING_STORED
    if _may_have_failed_in_commit(watch, error):
        return UNKNOWN_STORED
    return PARTLY_STORED if watch.has_committed else NOTHING_STORED


def _may_have_failed_in_commit(watch: CommitWatch, error: BaseException) -> bool:
    """Return True if nobody knows whether the COMMIT came through. SQLite has rolled back."""
    is_away = connection.vendor != "sqlite" and find_outage(error) is DATABASE_AWAY
    return is_away and watch.pending > 0 and watch.failure not in _list_causes(error)


def _list_causes(error: BaseException | None) -> list[BaseException]:
    """Return an error and those that led to it."""
    causes = []
    while error is not None:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes
