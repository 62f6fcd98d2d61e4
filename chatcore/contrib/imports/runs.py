"""Run an import: chat after chat, each stored with the count of it, so that it can go on later."""

import hashlib
import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from chatcore.base.databases.batches import delete_in_batches
from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.outages import StorageAway
from chatcore.base.threads import repeat_beside
from chatcore.base.truncation import clean_text
from chatcore.contrib.imports import chat_storing
from chatcore.contrib.imports.chat_storing import store_project
from chatcore.contrib.imports.conversation import Conversation
from chatcore.contrib.imports.export_files import Export, UnreadableExport
from chatcore.contrib.imports.export_reading import FoundItem, read_export
from chatcore.contrib.imports.models import Import, ImportedChat, ImportPart, ImportProblem
from chatcore.models import Session
from chatcore.projects.changes import TooManyProjects
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.transfer import importer
from models_registry.models import AiModel

logger = logging.getLogger(__name__)

MAX_CHATS = 20_000
MAX_ORIGINAL_BYTES = 20_000_000
LEASE = timedelta(seconds=45)
RENEWAL_SECONDS = 15.0
PARTS_AT_ONCE = 20  # deleted in one transaction, each of up to 2 MB
NOTHING_SAID = "Nothing was said in it."
_GREW_APART = (
    "It has changed since it came in, and the chat here has gone on too. So it came in once more."
)
_PARENT_MISSING = "The conversation that it belonged to is not here."


class ImportLost(Exception):
    """Another process has claimed the import, or it was deleted."""


@dataclass
class ImportRun:
    """The run of a claimed import."""

    row: Import
    _models: dict[str, AiModel | None] = field(default_factory=dict)
    _last_session: Session | None = None
    _step: dict[str, object] = field(default_factory=dict)  # to be written with what comes next
    _count: int = 0
    _nameless: Counter[str] = field(default_factory=Counter)  # chats without an id, by their bytes

    def run(self, export: Export) -> Iterator[None]:
        """Import the chats of an export from the row's position on, and end the import.

        Yields after each piece of it. Raises UnreadableExport and ImportLost.
        """
        row = self.row
        self._count = row.came + row.partly + row.refused + row.known
        for item in read_export(export, skip=row.position):
            self._step = {"position": F("position") + 1, "product": item.product}
            if self._count >= MAX_CHATS:
                problem = f"An import has at most {MAX_CHATS:,} chats. The rest is left out."
                self._settle_problem(item, "", [problem])
                break
            self._import_item(item)
            if self._step:
                self._settle()
            yield
        if self._last_session:
            archive_surplus_sessions(self._last_session)
        end_import(self.row, Import.Status.DONE)

    def _import_item(self, item: FoundItem) -> None:
        if item.problem:
            self._settle_problem(item, item.title, [item.problem])
        elif item.own_session is not None:
            self._import_own(item)
        elif item.projects:
            self._import_projects(item)
        elif not item.conversations:
            self._settle_problem(item, item.title, [NOTHING_SAID])
        step = self._step
        for number, conversation in enumerate(item.conversations):
            # The last chat of a piece is stored together with the step to the next piece.
            self._step = step if number == len(item.conversations) - 1 else {}
            if not conversation.id:
                name = f"{hashlib.sha256(item.raw).hexdigest()}-{number}"
                self._nameless[name] += 1
                conversation.id = f"{name}-{self._nameless[name]}"
            self._import_conversation(item, conversation)

    def _import_projects(self, item: FoundItem) -> None:
        for project in item.projects:
            try:
                notes = store_project(self.row.owner, project, product=item.product)
            except TooManyProjects as error:
                self._settle_problem(item, project.name, [str(error)])
                continue
            if notes:
                self._add_problem(item, project.name, notes, None)

    def _import_conversation(self, item: FoundItem, conversation: Conversation) -> None:
        title = chat_storing.choose_title(conversation)
        try:
            chat = chat_storing.build_chat(conversation, owner_id=self.row.owner_id)
            if not chat.rows:
                self._settle_problem(item, title, [*chat.notes, NOTHING_SAID])
                return
            self._store(item, conversation, chat)
        except (ImportLost, DatabaseError, StorageAway):
            raise
        except chat_storing.output_errors() as error:
            self._settle_problem(item, title, [str(error)])
        except Exception:
            logger.exception("a chat of import %s could not be stored", self.row.pk)
            self._settle_problem(item, title, ["It could not be stored."])

    def _store(
        self, item: FoundItem, conversation: Conversation, chat: chat_storing.DraftChat
    ) -> None:
        known = self._find_known(item.product, conversation.id)
        if known and self._is_all_known(known, chat):
            if known.belongs_to_id != self.row.pk:
                self._settle(known=F("known") + 1)
            return
        if known and self._append(item, known, conversation, chat):
            return
        if known:
            chat.notes.append(_GREW_APART)
        values = {
            "digests": chat.digests,
            "other_digest": chat.other_digest,
            "last_seq": chat.last_seq,
        }
        self._last_session = chat_storing.store_chat(
            self.row.owner,
            conversation,
            chat,
            model=self._find_model(conversation.model),
            on_stored=lambda session: self._settle_chat(
                item, session, conversation.id, chat.notes, values
            ),
        )

    def _append(
        self,
        item: FoundItem,
        known: ImportedChat,
        conversation: Conversation,
        chat: chat_storing.DraftChat,
    ) -> bool:
        """Add what is new to a chat that nobody went on with here. False: it cannot be added."""
        count = len(known.digests)
        has_grown = len(chat.digests) > count and chat.digests[:count] == known.digests
        if not has_grown or known.session.last_seq != known.last_seq:
            return False

        def settle(session: Session) -> None:
            values = {
                "digests": chat.digests,
                "other_digest": chat.other_digest,
                "last_seq": session.last_seq,
            }
            self._settle_chat(item, session, conversation.id, chat.notes, values)

        try:
            chat_storing.append_tail(
                known.session, conversation, chat, known_messages=count, on_stored=settle
            )
        except (importer.SessionBusy, importer.SessionChanged):
            return False
        return True

    def _import_own(self, item: FoundItem) -> None:
        """Bring a session that Chatcore exported back whole."""
        digest = hashlib.sha256(item.raw).hexdigest()
        name = item.member_name.rsplit("/", 1)[-1].removesuffix(".json")
        foreign_id = name if _is_uuid(name) else digest
        known = self._find_known(item.product, foreign_id)
        is_here = known is not None and known.other_digest == digest
        if is_here or self._is_still_here(foreign_id, item.own_session):
            if known is None or known.belongs_to_id != self.row.pk:
                self._settle(known=F("known") + 1)
            return
        values = {"digests": [], "other_digest": digest}
        notes = [_GREW_APART] if known else []
        parent_id = _get_own_setting(item.own_session, "parent")
        parent = self._find_parent(item.product, parent_id)
        if parent_id and parent is None:
            notes.append(_PARENT_MISSING)
        try:
            self._last_session = importer.import_session(
                self.row.owner,
                item.own_session,
                parent=parent,
                on_stored=lambda session: self._settle_chat(
                    item, session, foreign_id, notes, values | {"last_seq": session.last_seq}
                ),
            )
        except importer.InvalidImport as error:
            self._settle_problem(item, item.title, [str(error)])

    def _is_still_here(self, name: str, own_session: object) -> bool:
        """Return True if the session itself is still there, as far as the export or farther."""
        last_seq = _get_own_setting(own_session, "last_seq")
        if not _is_uuid(name) or not isinstance(last_seq, int):
            return False
        sessions = Session.objects.filter(pk=UUID(name), owner=self.row.owner_id)
        return sessions.filter(last_seq__gte=last_seq).exists()

    def _find_parent(self, product: str, name: object) -> Session | None:
        """Return the session above one that Chatcore exported, if it is here: it came before."""
        if not isinstance(name, str) or not _is_uuid(name):
            return None
        known = self._find_known(product, name)
        if known:
            return known.session
        return Session.objects.filter(pk=UUID(name), owner=self.row.owner_id).first()

    def _find_model(self, name: str) -> AiModel | None:
        if name not in self._models:
            self._models[name] = importer.find_model(self.row.owner, name)
        return self._models[name]

    def _find_known(self, product: str, foreign_id: str) -> ImportedChat | None:
        """Return the row of a chat that is here; that of one which was deleted is forgotten."""
        rows = ImportedChat.objects.filter(
            owner=self.row.owner_id, product=product, foreign_id=clean_id(foreign_id)
        )
        row = rows.select_related("session").first()
        if row and row.session.discard_at is not None:
            with transaction.atomic():
                rows.delete()
            return None
        return row

    def _is_all_known(self, known: ImportedChat, chat: chat_storing.DraftChat) -> bool:
        is_same = known.other_digest == chat.other_digest
        is_older = chat.digests == known.digests[: len(chat.digests)]
        # An older export of the same chat, or another form of it, has nothing new.
        return (
            is_same
            or (is_older and known.belongs_to_id == self.row.pk)
            or (is_older and len(chat.digests) < len(known.digests))
        )

    def _settle_chat(
        self,
        item: FoundItem,
        session: Session,
        foreign_id: str,
        notes: Sequence[str],
        values: Mapping[str, object],
    ) -> None:
        """Note in the same transaction that a chat came, whence, and what of it did not."""
        ImportedChat.objects.update_or_create(
            owner_id=self.row.owner_id,
            product=item.product,
            foreign_id=clean_id(foreign_id),
            defaults={**values, "session": session, "belongs_to": self.row},
        )
        if notes:
            self._add_problem(item, session.title, notes, session)
            self._settle(partly=F("partly") + 1)
        else:
            self._settle(came=F("came") + 1)

    def _settle_problem(self, item: FoundItem, title: str, reasons: Sequence[str]) -> None:
        with transaction.atomic():
            self._add_problem(item, title, reasons, None)
            self._settle(refused=F("refused") + 1)

    def _add_problem(
        self, item: FoundItem, title: str, reasons: Sequence[str], session: Session | None
    ) -> None:
        is_kept = len(item.raw) <= MAX_ORIGINAL_BYTES
        ImportProblem.objects.create(
            belongs_to=self.row,
            session=session,
            title=" ".join(clean_text(title).split())[:200],
            reasons=[clean_text(reason)[:1000] for reason in dict.fromkeys(reasons)],
            original_name=item.member_name.rsplit("/", 1)[-1][-100:],
            original_size=len(item.raw) if is_kept else 0,
            original=zlib.compress(item.raw) if is_kept and item.raw else b"",
        )

    def _settle(self, **columns: object) -> None:
        """Write into the row. Raises ImportLost."""
        if not _select_claimed(self.row).update(**columns, **self._step):
            raise ImportLost
        self._step = {}
        self._count += bool(columns)


def import_export(owner: User, export: Export) -> Import:
    """Import the chats of an export at once, and return the import, which has ended.

    Raises UnreadableExport; then nothing is left of it.
    """
    row = Import.objects.create(
        owner=owner,
        status=Import.Status.RUNNING,
        attempts=1,
        lease_until=read_clock() + LEASE,
    )
    with ExitStack() as at_failure:
        at_failure.callback(end_import, row, Import.Status.FAILED, "The import broke off.")
        try:
            with keep_lease(row):
                for _ in ImportRun(row).run(export):
                    pass
        except UnreadableExport:
            at_failure.pop_all()
            row.delete()
            raise
        at_failure.pop_all()
    return row


def keep_lease(row: Import) -> AbstractContextManager[None]:
    """Renew the lease of a claimed import beside a block, however long one chat takes."""

    def renew() -> None:
        _select_claimed(row).update(lease_until=read_clock() + LEASE)

    return repeat_beside(renew, seconds=RENEWAL_SECONDS, name=f"import-{row.pk}")


def _select_claimed(row: Import) -> QuerySet[Import]:
    """Return a query for the row that matches nothing once this claim has been lost."""
    return Import.objects.filter(pk=row.pk, status=Import.Status.RUNNING, attempts=row.attempts)


def end_import(row: Import, status: str, detail: str = "") -> None:
    """Write how an import ended, and delete the uploaded bytes, unless the claim was lost."""
    with transaction.atomic():
        claimed_row = Import.objects.filter(pk=row.pk, attempts=row.attempts)
        is_claimed = claimed_row.update(
            status=status, detail=detail[:2000], finished_at=timezone.now(), lease_until=None
        )
    if not is_claimed:
        return  # the worker that holds it now still reads the bytes
    row.refresh_from_db()
    delete_parts(row)


def delete_parts(row: Import) -> None:
    """Delete the uploaded bytes of an import."""
    delete_in_batches(ImportPart.objects.filter(file__belongs_to=row), batch_rows=PARTS_AT_ONCE)


def clean_id(foreign_id: str) -> str:
    """Return the id of a foreign chat as the column holds it."""
    text = clean_text(foreign_id)
    return text if len(text) <= 255 else hashlib.sha256(text.encode()).hexdigest()


def _get_own_setting(own_session: object, name: str) -> object:
    """Return a setting of a session that Chatcore exported; None where there is none."""
    settings = own_session.get("session") if isinstance(own_session, dict) else None
    return settings.get(name) if isinstance(settings, dict) else None


def _is_uuid(name: str) -> bool:
    try:
        return bool(UUID(name))
    except ValueError:
        return False
