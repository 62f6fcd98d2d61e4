"""Write a session that nobody sees before it is complete."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.short_transactions import ShortTransactions, weigh_row
from chatcore.context.revisions import MessageEdit
from chatcore.files import output_store
from chatcore.models import Attachment, ContextEdit, Message, Session
from chatcore.sessions.deletion import purge_session

# After this time without a transaction the writer of a draft counts as dead, and it is deleted.
DRAFT_LEASE = timedelta(minutes=10)
CLEANING_SECONDS = 1.0

BATCH_SIZE = 500  # rows of one INSERT
FIRST_VERSION = 1  # of a draft's context


class DraftLost(Exception):
    """The draft was deleted, because its writer was silent for longer than DRAFT_LEASE."""


class SessionDraft:
    """A hidden session, written in short transactions; leaving with an error deletes it.

    A process that dies leaves rows that nobody sees; purge_due_sessions deletes them.
    """

    def __init__(self, **columns: object) -> None:
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

    def show(self, **columns: object) -> None:
        """Write these columns and let everyone see the session. Raises DraftLost."""
        self._update(discard_at=None, **columns)
        self.session.refresh_from_db()

    def remove_empty(self) -> None:
        """Delete the session itself, whose rows belong to another one now."""
        Session.all_objects.filter(pk=self.session.pk).delete()

    def _update(self, **columns: object) -> None:
        # The condition is the fence: what is due may be half deleted already.
        draft = Session.all_objects.filter(pk=self.session.pk, discard_at__gt=read_clock())
        if not draft.update(**columns):
            raise DraftLost("Writing was interrupted for too long. Nothing was stored; try again.")


def weigh_message(row: Message) -> int:
    """Return the weight of an unsaved message."""
    return weigh_row(len(row.content) + len(row.reasoning))


def store_messages(draft: SessionDraft, rows: Sequence[Message]) -> None:
    """Store numbered messages, earlier versions before those that replace them."""
    for part in draft.transactions.split(rows, weigh_message):
        with draft.open_transaction(sum(map(weigh_message, part))):
            for group in _split_versions(part):
                for row in group:
                    row.session = draft.session
                Message.objects.bulk_create(group, batch_size=BATCH_SIZE)


def store_files(
    draft: SessionDraft, attachments: Sequence[tuple[int, Attachment]], rows: Sequence[Message]
) -> None:
    """Attach files to stored messages; each comes with the index of its message.

    Raises output_store.StoreFull where there is no room for the whole output of a tool, and
    StorageAway.
    """
    for index, attachment in attachments:
        attachment.message = rows[index]
        attachment.session = draft.session
        stored_object = output_store.put_data_away(attachment)
        if attachment.kind == Attachment.Kind.OUTPUT and output_store.has_store():
            stored_object = output_store.save_text(draft.session.owner_id, attachment.text)
            attachment.text = ""
        with draft.open_transaction(weigh_row(attachment.size)):
            attachment.save(force_insert=True)
            if stored_object:
                stored_object.attach(attachment)


def store_edits(draft: SessionDraft, edits: Iterable[MessageEdit]) -> None:
    """Store edits that are in force from the first version of the context on."""
    for part in draft.transactions.split(edits, _weigh_edit):
        seqs = [edit.message_seq for edit in part]
        messages = Message.objects.filter(session=draft.session, seq__in=seqs)
        ids = dict(messages.values_list("seq", "id"))
        with draft.open_transaction(sum(map(_weigh_edit, part))):
            ContextEdit.objects.bulk_create(
                ContextEdit(
                    session=draft.session,
                    message_id=ids[edit.message_seq],
                    kind=edit.kind,
                    replacement=edit.replacement,
                    from_version=FIRST_VERSION,
                )
                for edit in part
            )


def _weigh_edit(edit: MessageEdit) -> int:
    return weigh_row(len(edit.replacement))


def _split_versions(rows: Iterable[Message]) -> Iterator[list[Message]]:
    """Yield the rows in groups; no row of a group replaces another one, which has no id yet."""
    group: list[Message] = []
    for row in rows:
        if row.replaces is not None and row.replaces._state.adding:
            yield group
            group = []
        group.append(row)
    yield group
