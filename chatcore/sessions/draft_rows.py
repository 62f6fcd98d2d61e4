"""Store the rows of a draft: messages, files, and the messages' other forms for the model."""

from collections.abc import Iterable, Iterator, Sequence

from chatcore.base.databases.short_transactions import weigh_row
from chatcore.context.revisions import MessageEdit
from chatcore.files import output_store
from chatcore.models import Attachment, ContextEdit, Message
from chatcore.sessions.drafts import SessionDraft

BATCH_SIZE = 500  # rows of one INSERT
FIRST_VERSION = 1  # of a draft's context


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
