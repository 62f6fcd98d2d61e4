"""Know whether a request that fails has stored something before."""

import contextlib
import re
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest

from chatcore.databases.outages import DATABASE_AWAY, find_outage

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
    """An execute wrapper (Django's) that notes when a change of a conversation is committed."""

    def __init__(self) -> None:
        self.has_committed = False

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: str,
        params: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        result = execute(sql, params, many, context)
        if not sql.startswith("SELECT") and CHANGE.search(sql):
            if context["connection"].in_atomic_block:
                # A rollback drops this together with the change.
                transaction.on_commit(self._note_commit, using=context["connection"].alias)
            else:
                self._note_commit()
        return result

    def _note_commit(self) -> None:
        self.has_committed = True


@contextlib.contextmanager
def watch_commits(request: HttpRequest) -> Iterator[None]:
    """Watch what this thread stores for a request that may change something."""
    if request.method in SAFE_METHODS:
        yield
        return
    watch = CommitWatch()
    request.commit_watch = watch  # type: ignore[attr-defined]
    with connection.execute_wrapper(watch):
        yield


@contextlib.contextmanager
def all_or_nothing(request: Any) -> Iterator[None]:
    """Count what fails inside as not stored.

    For work of several transactions whose parts nobody sees before the last one is committed.
    """
    try:
        yield
    except Exception:
        watch = getattr(request, "commit_watch", None)
        if watch:
            watch.has_committed = False
        raise


def describe_stored_part(request: Any, error: BaseException) -> str:
    """Return a sentence about what a failed request has stored; empty if it could store nothing."""
    if request is None or request.method in SAFE_METHODS:
        return ""
    if _has_failed_in_commit(error):
        return UNKNOWN_STORED
    watch = getattr(request, "commit_watch", None)
    return PARTLY_STORED if watch and watch.has_committed else NOTHING_STORED


def _has_failed_in_commit(error: BaseException) -> bool:
    """Return True if a connection broke in COMMIT, so that nobody knows whether it came through.

    SQLite always knows: it has rolled back.
    """
    if connection.vendor == "sqlite" or find_outage(error) is not DATABASE_AWAY:
        return False
    commit_code = BaseDatabaseWrapper._commit.__code__  # type: ignore[attr-defined]
    return any(frame.f_code is commit_code for frame in _iterate_frames(error))


def _iterate_frames(error: BaseException | None) -> Iterator[FrameType]:
    """Yield the frames of the error, and of those that it was raised after.

    Django connects anew after a broken COMMIT, and raises the error of that instead.
    """
    while error:
        traceback = error.__traceback__
        while traceback:
            yield traceback.tb_frame
            traceback = traceback.tb_next
        error = error.__context__
