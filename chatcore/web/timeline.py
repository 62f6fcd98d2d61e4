"""The messages of a chat as the page shows them: with tool results, files, versions and errors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Min, Prefetch, prefetch_related_objects

from chatcore.context import recalled
from chatcore.context.recalled import RecalledPassage
from chatcore.models import Attachment, Message, Session, Turn
from chatcore.sessions import wrapping
from chatcore.sessions.wrapping import Piece
from chatcore.tools import search_web
from chatcore.tools.search_web import Source
from chatcore.turns import versions

MAX_SOURCES = 8  # that an answer shows


@dataclass(kw_only=True)
class TimelineCall:
    """A tool call and its result, if there is one yet."""

    id: str
    name: str
    arguments: str
    result: Message | None = None


@dataclass(kw_only=True)
class TimelineEntry:
    """A message as the page shows it.

    `versions` are the ids of all versions of the message, oldest first; empty if it has only one.
    `failed_turn` is set on the last message of a turn that failed, and `recalled` on the first
    answer of a turn that brought passages back from before the boundary. `sources` are the pages
    that searches of the web found in the turn of an answer. `is_other_model` tells an answer that
    another model wrote than the one before it. `pieces` are of a user's message that a program
    wrapped; `is_example` tells a message of an example that a program sent along.
    """

    message: Message
    calls: list[TimelineCall] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    compacted: bool = False
    is_other_model: bool = False
    is_example: bool = False
    pieces: list[Piece] = field(default_factory=list)
    failed_turn: Turn | None = None
    recalled: list[RecalledPassage] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    @property
    def files(self) -> list[Attachment]:
        """The files that the user attached to the message."""
        return [
            attachment
            for attachment in self.message.attachments.all()
            if attachment.kind == Attachment.Kind.FILE
        ]

    @property
    def has_words(self) -> bool:
        """Whether a person wrote something of the message."""
        return not self.pieces or any(piece.kind == "words" for piece in self.pieces)

    @property
    def version_number(self) -> int:
        """The number of this version, from 1."""
        return self.versions.index(self.message.pk) + 1

    @property
    def older_version(self) -> int | None:
        """The id of the version before this one."""
        if self.version_number == 1:
            return None
        return self.versions[self.version_number - 2]

    @property
    def newer_version(self) -> int | None:
        """The id of the version after this one."""
        if self.version_number == len(self.versions):
            return None
        return self.versions[self.version_number]


def prefetch_files(messages: Iterable[Message]) -> list[Message]:
    """Load the attachments of messages in one query, without their contents."""
    rows = list(messages)
    attachments = Attachment.objects.defer("data", "text").order_by("created_at", "id")
    prefetch_related_objects(rows, Prefetch("attachments", attachments))
    return rows


def build_entries(session: Session, messages: Iterable[Message]) -> list[TimelineEntry]:
    """Build the entries of messages, and put each tool result into its call.

    Providers may use an id again, so a result belongs to the newest open call with its id. A result
    whose call is not among the messages is an entry of its own.
    """
    rows = prefetch_files(messages)
    versions_by_message = versions.map_message_versions(session.pk)
    timeline_entries: list[TimelineEntry] = []
    open_calls: dict[str, TimelineCall] = {}
    last_model = ""
    for message in rows:
        if message.role == Message.Role.TOOL and message.tool_call_id in open_calls:
            open_calls.pop(message.tool_call_id).result = message
            continue
        calls = [TimelineCall(**call_data) for call_data in message.tool_calls]
        open_calls |= {call.id: call for call in calls}
        entry = TimelineEntry(
            message=message,
            calls=calls,
            versions=versions_by_message.get(message.pk, []),
            compacted=message.seq < (session.compact_boundary_seq or 0),
            is_other_model=bool(message.model and last_model not in ("", message.model)),
        )
        last_model = message.model or last_model
        timeline_entries.append(entry)
    _mark_wrappings(session, timeline_entries)
    _mark_failed_turns(timeline_entries)
    _add_recalled_passages(timeline_entries)
    _add_sources(session, timeline_entries)
    return timeline_entries


def _mark_wrappings(session: Session, timeline_entries: Sequence[TimelineEntry]) -> None:
    """Tell what programs put around words. What a person wrote on the page is never folded."""
    messages = [entry.message for entry in timeline_entries]
    for entry in timeline_entries[: wrapping.count_example_messages(messages)]:
        entry.is_example = True
    for entry in timeline_entries:
        message = entry.message
        is_of_program = session.external_id is not None or bool(message.turn and message.turn.tools)
        if message.role != Message.Role.USER or not is_of_program:
            continue
        pieces = wrapping.split_text(message.content)
        if entry.is_example:
            entry.pieces = [wrapping.Piece(message.content, "wrapping")]
        elif any(piece.kind != "words" for piece in pieces):
            entry.pieces = pieces


def _add_recalled_passages(timeline_entries: list[TimelineEntry]) -> None:
    """Set `recalled` on the first answers of the turns that have passages."""
    recalls = {
        entry.message.turn_id: entry.message.turn.recalled
        for entry in timeline_entries
        if entry.message.turn and entry.message.turn.recalled
    }
    if not recalls:
        return
    answers = Message.objects.filter(turn__in=recalls, role=Message.Role.ASSISTANT).order_by()
    first_answers = answers.values_list("turn").annotate(first=Min("pk"))
    turns_by_answer = {first_pk: turn_id for turn_id, first_pk in first_answers}
    for entry in timeline_entries:
        if entry.message.pk in turns_by_answer:
            stored_recall = recalls[turns_by_answer[entry.message.pk]]
            entry.recalled = recalled.list_passages(stored_recall)


def _add_sources(session: Session, timeline_entries: list[TimelineEntry]) -> None:
    """Set `sources` on the answers that end turns with a search of the web."""
    name = search_web.TOOL.name
    called = {call.name for entry in timeline_entries for call in entry.calls}
    if name not in {*called, *(session.tools or ())}:
        return
    answers = {
        entry.message.turn_id: entry
        for entry in timeline_entries
        if entry.message.role == Message.Role.ASSISTANT and not entry.calls
    }
    results = Message.objects.filter(turn__in=answers, tool_name=name, is_error=False)
    for turn_id, text in results.order_by("seq").values_list("turn", "content"):
        known = {source.url for source in answers[turn_id].sources}
        found = [each for each in search_web.list_sources(text) if each.url not in known]
        answers[turn_id].sources += found[: MAX_SOURCES - len(known)]


def _mark_failed_turns(timeline_entries: list[TimelineEntry]) -> None:
    """Set `failed_turn` on the last entry of each failed turn."""
    next_entries = [*timeline_entries[1:], None]
    for entry, next_entry in zip(timeline_entries, next_entries, strict=False):
        turn = entry.message.turn
        is_end_of_turn = next_entry is None or next_entry.message.role == Message.Role.USER
        if is_end_of_turn and turn and turn.error:
            entry.failed_turn = turn
    if timeline_entries and timeline_entries[-1].message.role == Message.Role.USER:
        _mark_failed_retry(timeline_entries[-1])


def _mark_failed_retry(question_entry: TimelineEntry) -> None:
    """Set `failed_turn` on a question without an answer to the newest retry, if that failed.

    A retry is a turn of the same question to which the question itself does not belong.
    """
    question = question_entry.message
    retries = Turn.objects.filter(question=question).exclude(messages=question)
    newest_retry = retries.order_by("-started_at").first()
    if newest_retry and newest_retry.error:
        question_entry.failed_turn = newest_retry
