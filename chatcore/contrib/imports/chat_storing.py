"""Store a chat of another product as a session, with its versions, files, dates and order.

Nothing in a chat is a reason to refuse it: a message that is too long is split, and what cannot be
kept is said in the chat and to its owner.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from chatcore.base.databases.short_transactions import weigh_row
from chatcore.base.truncation import clean_text
from chatcore.base.visible_text import is_visible
from chatcore.contrib.imports.conversation import (
    ChatFile,
    ChatMessage,
    Conversation,
    ForeignProject,
)
from chatcore.contrib.imports.json_items import join_words
from chatcore.contrib.imports.models import Import
from chatcore.contrib.imports.trees import PlacedMessage, arrange
from chatcore.files import intake, output_store
from chatcore.files.intake import FileRejected
from chatcore.models import MAX_CALL_ID, MAX_TOOL_NAME, Attachment, Message, Project, Session
from chatcore.projects import changes
from chatcore.sessions.drafts import SessionDraft, store_files
from chatcore.transfer import importer
from chatcore.transfer.importer import cut_results
from chatcore.transfer.reader import MAX_MESSAGE_BYTES
from models_registry.models import AiModel

MAX_MESSAGES = 100_000
MAX_FILE_BYTES = 200_000_000  # of the files of a chat, which are in memory together
TITLE_CHARS = 200
QUESTION_CHARS = 80  # of a first question that becomes the title
MODEL_CHARS = 200
NAMED_FILES = 5  # in a sentence

MORE_FILES = "more documents.md"


@dataclass(kw_only=True)
class DraftChat:
    """A chat as rows that are not stored yet, and what is to be said of it."""

    rows: list[Message] = field(default_factory=list)
    files: list[tuple[int, Attachment]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)  # of the messages that were shown
    starts: list[int] = field(default_factory=list)  # the index of the first row of each of them
    other_digest: str = ""

    @property
    def last_seq(self) -> int:
        """Return the number of the last message."""
        return self.rows[-1].seq if self.rows else 0


def build_chat(conversation: Conversation, *, owner_id: object) -> DraftChat:
    """Return the rows of a chat, with its files inspected."""
    return _ChatBuilder(conversation, owner_id).build()


def store_chat(
    owner: User,
    conversation: Conversation,
    chat: DraftChat,
    *,
    model: AiModel | None,
    on_stored: Callable[[Session], object],
) -> Session:
    """Create a session. `on_stored` is called in the transaction that shows it."""
    times = _find_times(conversation, chat.rows)
    prompt = conversation.system_prompt.encode()[:MAX_MESSAGE_BYTES].decode(errors="ignore")
    with (
        SessionDraft(
            owner=owner,
            model=model,
            title=choose_title(conversation),
            system_prompt=clean_text(prompt),
            pinned=conversation.is_pinned,
            archived=conversation.is_archived,
        ) as draft,
        cut_results(draft.session, chat.rows) as outputs,
    ):
        importer.store_with_outputs(draft, chat.rows, outputs)
        store_files(draft, chat.files, chat.rows)
        with draft.open_transaction(weigh_row(0)):
            draft.show(
                message_count=sum(row.branch is None for row in chat.rows),
                last_seq=chat.last_seq,
                **times,
            )
            on_stored(draft.session)
    return draft.session


def append_tail(
    session: Session,
    conversation: Conversation,
    chat: DraftChat,
    *,
    known_messages: int,
    on_stored: Callable[[Session], object],
) -> None:
    """Add the messages that a chat has got since it came in.

    Raises importer.SessionBusy and SessionChanged.
    """
    start = chat.starts[known_messages]
    rows_by_index = {
        index: row for index, row in enumerate(chat.rows) if index >= start and row.branch is None
    }
    rows = list(rows_by_index.values())
    if len(rows) < len(chat.rows) - start:
        chat.notes.append("Of its new messages only the versions that were shown came in.")
    for row in rows:
        row.replaces = None

    def settle(_: list[Message]) -> None:
        for index, attachment in chat.files:
            if index in rows_by_index:
                attachment.message = rows_by_index[index]
                attachment.session = session
                attachment.save(force_insert=True)
        session.refresh_from_db(fields=["last_seq"])
        on_stored(session)

    importer.append_messages(session, rows, after_seq=session.last_seq, on_stored=settle)
    times = _find_times(conversation, chat.rows)
    with transaction.atomic():
        Session.objects.filter(pk=session.pk).update(updated_at=times["updated_at"])


def choose_title(conversation: Conversation) -> str:
    """Return the title of a chat, or the beginning of its first question."""
    title = " ".join(clean_text(conversation.title).split())
    if not is_visible(title):
        texts = (node.message.text for node in conversation.nodes if node.message)
        first = next((text for text in texts if text.strip()), "")
        words = " ".join(clean_text(first[: 20 * QUESTION_CHARS]).split())
        title = words if len(words) <= QUESTION_CHARS else words[: QUESTION_CHARS - 1] + "…"
    return title[:TITLE_CHARS]


class _ChatBuilder:
    def __init__(self, conversation: Conversation, owner_id: object) -> None:
        self.conversation = conversation
        self.owner_id = owner_id
        self.chat = DraftChat(notes=list(conversation.notes))
        self.missing: list[str] = []
        self.rejected: list[str] = []
        self.file_bytes = 0
        self.split_count = 0
        self.call_ids: set[str] = set()
        self.time = conversation.created_at

    def build(self) -> DraftChat:
        placed = arrange(self.conversation.nodes, self.conversation.leaf)
        if len(placed) > MAX_MESSAGES:
            self.chat.notes.append(
                f"It has {len(placed):,} messages, of which the first {MAX_MESSAGES:,} came in."
            )
            placed = placed[:MAX_MESSAGES]
        branches: dict[int, UUID] = {}
        last_rows: list[Message] = []  # of each placed message
        digest = hashlib.sha256()
        for place in placed:
            start = len(self.chat.rows)
            rows = list(self._build_rows(place.message))
            for row in rows:
                row.seq = len(self.chat.rows) + 1
                if place.branch is not None:
                    row.branch = branches.setdefault(place.branch, uuid4())
                    row.branch_after = 0 if place.after is None else last_rows[place.after].seq
                self.chat.rows.append(row)
            if place.replaces is not None:
                rows[-1].replaces = last_rows[place.replaces]
            last_rows.append(rows[-1])
            name = _digest(place)
            digest.update(name.encode())
            if place.branch is None:
                self.chat.digests.append(name)
                self.chat.starts.append(start)
        self.chat.other_digest = digest.hexdigest()
        self._write_notes()
        return self.chat

    def _build_rows(self, message: ChatMessage) -> Iterator[Message]:
        self.time = message.created_at or self.time or timezone.now()
        files, marks = self._inspect_files(message.files)
        text = clean_text(message.text)
        if not text.strip() and not message.lead.strip() and not files:
            text = join_words(*marks)  # else nothing would tell that something was there
        rows: list[Message] = []
        if message.calls:
            rows.append(self._build_row("assistant", clean_text(message.lead)))
            rows += self._add_calls(rows[0], message)
            if text.strip() or files:
                rows.append(self._build_row("assistant", text))
        else:
            parts = split_text(join_words(clean_text(message.lead), text))
            self.split_count += len(parts) > 1
            rows += [self._build_row(message.role, part) for part in parts]
        if message.role == "assistant":
            for row in rows:
                row.model = clean_text(message.model)[:MODEL_CHARS] if row.role != "tool" else ""
            rows[0].reasoning = message.reasoning
            if message.is_interrupted:
                rows[-1].status = Message.Status.INTERRUPTED
        self.chat.files += [
            (len(self.chat.rows) + len(rows) - 1, attachment) for attachment in files
        ]
        yield from rows

    def _build_row(self, role: str, text: str) -> Message:
        return Message(role=role, content=text, created_at=self.time or timezone.now())

    def _add_calls(self, row: Message, message: ChatMessage) -> Iterator[Message]:
        """Write the calls into the answer that made them, and yield their results."""
        results = []
        for call in message.calls:
            call_id = clean_text(call.id)[:MAX_CALL_ID]
            while not call_id or call_id in self.call_ids:
                call_id = f"call_{len(self.call_ids) + 1}_{uuid4().hex[:6]}"
            self.call_ids.add(call_id)
            name = clean_text(call.name)[:MAX_TOOL_NAME] or "tool"
            arguments = clean_text(call.arguments) or "{}"
            row.tool_calls.append({"id": call_id, "name": name, "arguments": arguments})
            result = self._build_row("tool", clean_text(call.result or ""))
            result.tool_call_id, result.tool_name = call_id, name
            result.is_error = call.is_error
            results.append(result)
        yield from results

    def _inspect_files(self, files: Sequence[ChatFile]) -> tuple[list[Attachment], list[str]]:
        """Return the files that can be kept, and a line for each of the others."""
        attachments: list[Attachment] = []
        marks = []
        assert self.time
        for number, file in enumerate(files):
            name = " ".join(clean_text(file.name).split())[:200] or "file"
            problem = ""
            data = file.load() if number < intake.MAX_FILES else b""
            if number >= intake.MAX_FILES:
                problem = f"a message has at most {intake.MAX_FILES} files"
            elif data is None:
                self.missing.append(name)
                marks.append(f"[{name}: not in the export]")
                continue
            elif self.file_bytes + len(data) > MAX_FILE_BYTES:
                problem = f"the files of a chat have at most {MAX_FILE_BYTES // 1_000_000} MB"
            else:
                try:
                    attachment = intake.inspect_file(name=name, data=data, owner_id=self.owner_id)
                except intake.FileRejected as error:
                    problem = str(error)
                else:
                    # They are shown in the order of this column.
                    attachment.created_at = self.time + timedelta(microseconds=number)
                    self.file_bytes += len(data)
                    attachments.append(attachment)
                    continue
            self.rejected.append(f"{name} is left out: {problem.rstrip('.')}.")
            marks.append(f"[{name}: left out]")
        return attachments, marks

    def _write_notes(self) -> None:
        notes = self.chat.notes
        if len(self.missing) == 1:
            notes.append(f"The file {self.missing[0]} is not in the export.")
        elif self.missing:
            names = ", ".join(self.missing[:NAMED_FILES])
            dots = " …" if len(self.missing) > NAMED_FILES else ""
            notes.append(f"{len(self.missing)} files are not in the export: {names}{dots}")
        notes += self.rejected[:NAMED_FILES]
        if len(self.rejected) > NAMED_FILES:
            notes.append(f"{len(self.rejected) - NAMED_FILES} more files are left out.")


def split_text(text: str) -> list[str]:
    """Return a text in parts that each fit into a message, cut between lines where it can be."""
    parts = []
    while len(text.encode(errors="replace")) > MAX_MESSAGE_BYTES:
        # So many characters fit surely; no code point takes more than 4 bytes.
        chars = MAX_MESSAGE_BYTES // 4 if not text.isascii() else MAX_MESSAGE_BYTES
        end = text.rfind("\n", chars // 2, chars) + 1 or text.rfind(" ", chars // 2, chars) + 1
        end = end or chars
        parts.append(text[:end])
        text = text[end:]
    return [*parts, text]


def output_errors() -> tuple[type[Exception], ...]:
    """Return what storing may raise for one chat, while the others still can be stored."""
    return (output_store.StoreFull, importer.InvalidImport, ValueError)


def _find_times(conversation: Conversation, rows: Sequence[Message]) -> dict[str, datetime]:
    now = timezone.now()
    times = [row.created_at for row in rows]
    created_at = conversation.created_at or min(times, default=now)
    updated_at = conversation.updated_at or max(times, default=created_at)
    return {"created_at": min(created_at, now), "updated_at": min(updated_at, now)}


def _digest(place: PlacedMessage) -> str:
    message = place.message
    words = "\0".join((message.role, message.lead, message.text, *(f.name for f in message.files)))
    return hashlib.sha256(words.encode(errors="replace")).hexdigest()[:16]


def store_project(owner: User, foreign: ForeignProject, *, product: str) -> list[str]:
    """Store what is new of a project; return what of it does not come, in words.

    The project of the same name and date is the same. Raises TooManyProjects.
    """
    name = " ".join(clean_text(foreign.name).split())[:200] or "Project"
    dates = {"created_at": foreign.created_at} if foreign.created_at else {}
    project = Project.objects.filter(owner=owner, name=name, **dates).first()
    if project is None:
        project = changes.create_project(owner, {"name": name, **dates})
    if not project.instructions and not project.rules:
        words = clean_text(foreign.instructions).encode()[:MAX_MESSAGE_BYTES]
        rules = [" ".join(rule.split())[: changes.RULE_CHARS] for rule in foreign.rules]
        values = {
            "instructions": words.decode(errors="ignore"),
            "rules": [rule for rule in rules if rule][: changes.MAX_RULES],
        }
        if any(values.values()):
            project = changes.edit_project(project.pk, values)
    notes = _add_files(project, foreign.files)
    chats = Session.objects.filter(
        owner=owner,
        project=None,
        imported_as__owner=owner,
        imported_as__product=product,
        imported_as__foreign_id__in=foreign.chats,
    )
    chats.update(project=project, overhead_since=timezone.now())
    return notes


def count_projects(row: Import) -> int:
    """Return how many projects an import has brought, or brought something new of."""
    ended_at = row.finished_at or timezone.now()
    return Project.objects.filter(
        owner=row.owner_id, edited_at__gte=row.created_at, edited_at__lte=ended_at
    ).count()


def _add_files(project: Project, files: list[ChatFile]) -> list[str]:
    notes = []
    known_names = set(project.files.values_list("name", flat=True))
    for file in _join_surplus(files):
        if file.name in known_names:
            continue
        data = file.load()
        if data is None:
            notes.append(f"{file.name} is not in the export.")
            continue
        try:
            changes.add_file(project, name=file.name, data=data)
        except (FileRejected, changes.TooManyFiles) as error:
            notes.append(f"{file.name}: {error}")
    return notes


def _join_surplus(files: list[ChatFile]) -> list[ChatFile]:
    """Return as many files as a project may have; texts that are too many stand in the last."""
    if len(files) <= changes.MAX_FILES:
        return files
    kept, rest = files[: changes.MAX_FILES - 1], files[changes.MAX_FILES - 1 :]
    texts = [(file.name, (file.load() or b"").decode(errors="replace")) for file in rest]
    words = "\n\n".join(f"# {name}\n\n{text}" for name, text in texts)
    return [*kept, ChatFile.from_text(MORE_FILES, words)]
