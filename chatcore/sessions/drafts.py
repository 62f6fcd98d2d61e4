"""Write a session that nobody sees before it is complete."""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.short_transactions import ShortTransactions
from chatcore.models import Session
from chatcore.sessions.discarding import purge_session

# After this time without a transaction the writer of a draft counts as dead, and it is deleted.
DRAFT_LEASE = timedelta(minutes=10)
CLEANING_SECONDS = 1.0


class DraftLost(Exception):
    """The draft was deleted, because its writer was silent for longer than DRAFT_LEASE."""


class SessionDraft:
    """A hidden session, written in short transactions; leaving with an error deletes it.

    A process that dies leaves rows that nobody sees; purge_due_sessions deletes them.
    """

    def __init__(self, **columns: Any) -> None:
        self.session = Session(discard_at=read_clock() + DRAFT_LEASE, **columns)
        self.transactions = ShortTransactions()

    def __enter__(self) -> Self:
        self.session.save(force_insert=True)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            return
        # The error of the writing is the one to report. If the database is away, the lease ends.
        with contextlib.suppress(Exception):
            drafts = Session.all_objects.filter(pk=self.session.pk, discard_at__isnull=False)
            if drafts.update(discard_at=read_clock()):
                purge_session(self.session.pk, seconds=CLEANING_SECONDS)

    @contextlib.contextmanager
    def open_transaction(self, weight: int) -> Iterator[None]:
        """Open a transaction for work of this weight, and renew the lease. Raises DraftLost."""
        with self.transactions.open_transaction(weight):
            self._update(discard_at=read_clock() + DRAFT_LEASE)
            yield

    def show(self, **columns: Any) -> None:
        """Write these columns and let everyone see the session. Raises DraftLost."""
        self._update(discard_at=None, **columns)
        self.session.refresh_from_db()

    def remove_empty(self) -> None:
        """Delete the session itself, whose rows belong to another one now."""
        Session.all_objects.filter(pk=self.session.pk).delete()

    def _update(self, **columns: Any) -> None:
        # The condition is the fence: what is due may be half deleted already.
        draft = Session.all_objects.filter(pk=self.session.pk, discard_at__gt=read_clock())
        if not draft.update(**columns):
            raise DraftLost("Writing was interrupted for too long. Nothing was stored; try again.")
