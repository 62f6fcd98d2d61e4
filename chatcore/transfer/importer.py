"""Import messages of another system into a session, or a whole exported session."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from chatcore.accounts.rights import find_default_model, select_models
from chatcore.base.actors import Person
from chatcore.base.databases.short_transactions import weigh_row
from chatcore.base.truncation import clean_json
from chatcore.context import revisions
from chatcore.models import Attachment, ContextRevision, Message, OutputFile, Session, Turn
from chatcore.models.session import MAX_THRESHOLD_TOKENS, MIN_THRESHOLD_TOKENS
from chatcore.providers import params as provider_params
from chatcore.sessions.archive import archive_surplus_sessions
from chatcore.sessions.changes import record_session_change
from chatcore.sessions.drafts import (
    BATCH_SIZE,
    FIRST_VERSION,
    SessionDraft,
    store_edits,
    store_files,
    store_messages,
    weigh_message,
)
from chatcore.sessions.sections import SessionSection, load_sections
from chatcore.tools.output import ToolOutput, build_tool_output
from chatcore.transfer import context, links
from chatcore.transfer.exporter import FORMAT, IGNORED_FIELDS, RECORD_FIELDS, SETTING_FIELDS
from chatcore.transfer.reader import (
    InvalidImport,
    is_number,
    read_column_values,
    read_messages,
    read_section,
)
from chatcore.transfer.times import parse_time
from chatcore.turns.leases import query_dead_turns
from models_registry.models import AiModel

# Characters, roughly. Less than that is stored in one transaction.
MAX_DIRECT_WEIGHT = 100_000

# The fields that lead from one message to others and to files; `links.py` reads them.
LINK_FIELDS = ("seq", "branch", "branch_after", "replaces", "attachments")


class SessionBusy(Exception):
    """The session is generating an answer; a message would come between question and answer."""

    def __init__(self, turn_id: UUID) -> None:
        super().__init__("The session is still answering.")
        self.turn_id = turn_id


class SessionChanged(Exception):
    """The session has other messages than the caller believed."""


def import_messages(
    session: Session,
    messages: object,
    *,
    after_seq: int | None = None,
    on_stored: Callable[[list[Message]], object] = lambda rows: None,
) -> list[Message]:
    """Append messages given as parsed JSON, all or none, and return them as stored.

    No model is called. Raises InvalidImport, which names the field, and SessionBusy. With
    `after_seq`, raises SessionChanged if the session's last message has another number. `on_stored`
    is called in the transaction that stores the last of them.
    """
    rows = read_messages(messages, load_call_ids=lambda: _load_call_ids(session))
    return append_messages(session, rows, after_seq=after_seq, on_stored=on_stored)


def append_messages(
    session: Session,
    rows: list[Message],
    *,
    after_seq: int | None = None,
    on_stored: Callable[[list[Message]], object] = lambda rows: None,
) -> list[Message]:
    """Append unsaved messages, as `import_messages` does once it has read them."""
    with cut_results(session, rows) as outputs:
        if sum(map(weigh_message, rows)) > MAX_DIRECT_WEIGHT:
            return _append_many_messages(session, rows, outputs, after_seq, on_stored)
        with transaction.atomic():
            locked_session = _lock_idle_session(session.pk, after_seq)
            _number_messages(rows, locked_session)
            for row in rows:
                row.session = locked_session
            for row, output in outputs:
                output.write_note(row)
            stored_rows = Message.objects.bulk_create(rows, batch_size=BATCH_SIZE)
            for row, output in outputs:
                output.store_full_text(row)
            _record_new_messages(locked_session, rows)
            on_stored(stored_rows)
            return stored_rows


def import_session(
    owner: Any,
    export_data: object,
    *,
    parent: Session | None = None,
    on_stored: Callable[[Session], object] = lambda session: None,
) -> Session:
    """Create a session of the user `owner` from what `export_session` returned, with its summary.

    The session above it has another id here than in the file, so it is there only as `parent`.
    `on_stored` is called in the transaction that shows it.

    Raises InvalidImport, which names the field; then nothing is stored.
    """
    if not isinstance(export_data, Mapping) or export_data.get("format") != FORMAT:
        raise InvalidImport(
            "format", f"The file is not a session as this program exports it ({FORMAT})."
        )
    settings = read_section(export_data, "session", dict)
    messages = read_section(export_data, "messages", list)
    section_items = [
        (section, read_section(export_data, section.name, list)) for section in load_sections()
    ]
    model = find_model(owner, settings.get("model"))
    setting_values = _parse_settings(settings, model)
    times = _parse_times(settings)
    rows = read_messages([_strip_links(item) for item in messages], extra_fields=RECORD_FIELDS)
    last_seq = max(links.assign_seqs(messages, rows), _parse_last_seq(settings))
    # Files are inspected before the transaction begins, because that may take long.
    attachments = links.read_files(messages, owner_id=owner.pk)
    links.restore_links(messages, rows)
    context_data = read_section(export_data, "context", dict)
    imported_context = context.read_context(context_data, rows, last_seq)
    # A message of an export says how long its result was before it was cut.
    uncut_rows = [
        row for item, row in zip(messages, rows, strict=True) if "original_chars" not in item
    ]
    with (
        SessionDraft(owner=owner, model=model, **setting_values) as draft,
        cut_results(draft.session, uncut_rows) as outputs,
    ):
        store_with_outputs(draft, rows, outputs)
        store_files(draft, attachments, rows)
        if imported_context:
            store_edits(draft, imported_context.edits)
        with draft.open_transaction(weigh_row(0)):
            draft.show(
                message_count=sum(row.branch is None for row in rows),
                last_seq=last_seq,
                parent=parent,
                **times,
            )
            if imported_context:
                _install_context(draft.session, imported_context)
            for section, items in section_items:
                _import_section(section, draft.session, items)
            on_stored(draft.session)
    # Like every new session this one may exceed the number that is listed; the oldest are archived.
    archive_surplus_sessions(draft.session)
    draft.session.refresh_from_db()
    return draft.session


def _install_context(session: Session, imported_context: context.ImportedContext) -> None:
    revisions.install_revision(
        session.pk,
        base_version=FIRST_VERSION - 1,
        source=ContextRevision.Source.EDIT,
        **imported_context.revision_fields,
    )


def _import_section(section: SessionSection, session: Session, items: Sequence[object]) -> None:
    try:
        section.import_items(session, clean_json(items))
    except ValidationError as error:
        [(path, details)] = error.message_dict.items()
        raise InvalidImport(f"{section.name}{path}", details[0]) from None


def store_with_outputs(
    draft: SessionDraft, rows: list[Message], outputs: list[tuple[Message, ToolOutput]]
) -> None:
    """Store numbered messages, and whole outputs of tools that belong to some of them."""
    for row, output in outputs:
        output.write_note(row)
    store_messages(draft, rows)
    for row, output in outputs:
        with draft.open_transaction(weigh_row(len(output.full_text or ""))):
            output.store_full_text(row)


def _append_many_messages(
    session: Session,
    rows: list[Message],
    outputs: list[tuple[Message, ToolOutput]],
    after_seq: int | None,
    on_stored: Callable[[list[Message]], object],
) -> list[Message]:
    """Store the rows in a draft, and hand them to the session when all are there."""
    with transaction.atomic():
        # Nothing is stored for a session that could not take it, and most often the numbers are
        # right at once.
        _number_messages(rows, _lock_idle_session(session.pk, after_seq))
    # With the policy of the session, which decides how much of a tool's output is stored.
    policy = {"model": session.model, "policy": session.policy}
    with SessionDraft(owner_id=session.owner_id, **policy) as draft:
        store_with_outputs(draft, rows, outputs)
        with draft.open_transaction(weigh_row(0)):
            locked_session = _lock_idle_session(session.pk, after_seq)
            # Other messages may have come meanwhile; these follow them.
            shift = locked_session.last_seq + 1 - rows[0].seq
            Message.objects.filter(session=draft.session).update(
                session=locked_session, seq=F("seq") + shift
            )
            for files in (Attachment.objects, OutputFile.objects):
                files.filter(session=draft.session).update(session=locked_session)
            for row in rows:
                row.session = locked_session
                row.seq += shift
            if shift:
                for row, output in outputs:
                    output.write_note(row)
                    row.save(update_fields=["content"])
            _record_new_messages(locked_session, rows)
            on_stored(rows)
            draft.remove_empty()
    return rows


def _lock_idle_session(session_id: UUID, after_seq: int | None) -> Session:
    """Return the session with its row locked. Raises SessionBusy and SessionChanged."""
    session = Session.objects.lock(session_id)
    if after_seq is not None and session.last_seq != after_seq:
        raise SessionChanged(f"The last message is {session.last_seq}, not {after_seq}.")
    # A running turn whose lease has ended belongs to a dead process, and does not count.
    open_turns = session.turns.filter(status__in=Turn.OPEN_STATUSES)
    open_turn = open_turns.exclude(pk__in=query_dead_turns().values("pk")).first()
    if open_turn:
        raise SessionBusy(open_turn.pk)
    return session


def _number_messages(rows: list[Message], session: Session) -> None:
    """Number the rows after the session's last message."""
    for seq, row in enumerate(rows, start=session.last_seq + 1):
        row.seq = seq


def _record_new_messages(session: Session, rows: list[Message]) -> None:
    """Count the stored messages; the session's row must be locked."""
    last_seq = rows[-1].seq if rows else session.last_seq
    record_session_change(
        session.pk,
        {"last_seq": last_seq, "message_count": F("message_count") + len(rows)},
        fields=["message_count"],
    )


def _load_call_ids(session: Session) -> set[str]:
    calls = (
        session.messages.filter(role=Message.Role.ASSISTANT)
        .exclude(tool_calls=[])
        .values_list("tool_calls", flat=True)
    )
    return {call["id"] for message_calls in calls for call in message_calls}


def find_model(owner: Person, name: object) -> AiModel | None:
    """Return the model of this name, or the default model where the name is unknown."""
    models = select_models(owner.pk)
    model = models.find_by_name(name) if isinstance(name, str) else None
    return model or find_default_model(owner.pk)


def _strip_links(item: object) -> object:
    if not isinstance(item, Mapping):
        return item
    return {
        name: value
        for name, value in item.items()
        if name not in LINK_FIELDS and name not in IGNORED_FIELDS
    }


def _parse_settings(data: Mapping[str, object], model: AiModel | None) -> dict[str, object]:
    """Return the session's own columns. Raises InvalidImport."""
    values = read_column_values(Session, data, SETTING_FIELDS, "session")
    tools = values.get("tools")
    if tools is not None and not _is_name_list(tools):
        raise InvalidImport("session.tools", "It must be a list of names, or null.")
    if "params" in values:
        values["params"] = _check_params(values["params"], data.get("model"), model)
    threshold = values.get("compact_threshold") or 0
    if not (0 <= threshold <= 1 or MIN_THRESHOLD_TOKENS <= threshold <= MAX_THRESHOLD_TOKENS):
        raise InvalidImport(
            "session.compact_threshold",
            "It must be a number from 0 to 1, a number of tokens, or null.",
        )
    return values


def _parse_times(data: Mapping[str, object]) -> dict[str, datetime]:
    """Return when the session was begun and last used; without that in the file, now.

    Without a place in the order of time, chats of years would all be of today.
    """
    now = timezone.now()
    times = {name: parse_time(data.get(name)) or now for name in ("created_at", "updated_at")}
    return {name: min(time, now) for name, time in times.items()}


def _check_params(params: object, model_name: object, model: AiModel | None) -> dict[str, object]:
    """Return the parameters without nulls. Raises InvalidImport.

    Where the default model takes the place of one that is not here, those of its protocol may stay
    in the session: they are not sent.
    """
    if not isinstance(params, dict):
        raise InvalidImport("session.params", "It must be an object.")
    params = {name: value for name, value in params.items() if value is not None}
    is_same_model = model is not None and model_name in (model.name, str(model))
    provider = model.provider if model and is_same_model else None
    errors = provider_params.find_bad_values(params)
    errors |= provider_params.find_unknown_names(params, provider)
    if model and is_same_model and not errors:
        errors = provider_params.find_missing_room(params, model)
    for name, detail in errors.items():
        raise InvalidImport(f"session.params.{name}", detail)
    return params


def _is_name_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _parse_last_seq(settings: Mapping[str, object]) -> int:
    """Return the highest number ever given to a message, which may have been deleted."""
    last_seq = settings.get("last_seq", 0)
    if not is_number(last_seq) or not 0 <= last_seq <= links.MAX_SEQ:
        raise InvalidImport("session.last_seq", "It must be a whole number, not negative.")
    return int(last_seq)


@contextlib.contextmanager
def cut_results(
    session: Session, rows: Iterable[Message]
) -> Iterator[list[tuple[Message, ToolOutput]]]:
    """Cut the tool results among unsaved rows, and yield those that are kept whole.

    Each needs its note once it is numbered, and its full text attached once it is stored. Files
    that no stored row refers to at the end are deleted.
    """
    outputs = []
    try:
        for row in rows:
            if row.role != Message.Role.TOOL:
                continue
            output = build_tool_output(session, row.tool_name, row.content)
            for name, value in output.message_fields.items():
                setattr(row, name, value)
            if output.full_text is None:
                continue
            # Inside a transaction nobody may wait for a store: there the text stays in its row.
            if not connection.in_atomic_block:
                output = output.put_away(session)
            outputs.append((row, output))
        yield outputs
    finally:
        for _, output in outputs:
            output.discard_unused()
