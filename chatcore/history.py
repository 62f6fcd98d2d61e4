"""Whole histories in and out: messages of another system, sessions as JSON files, and a session's end."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from chatcore import context, events, formats, history_links, turns
from chatcore.history_reading import NotImportable, TooLong, column_values, read_messages
from chatcore.models import ContextEdit, ContextRevision, Message, Session, Turn
from models_registry.models import AiModel

__all__ = [
    "NotImportable",
    "StillAnswering",
    "TooLong",
    "delete_session",
    "export_as",
    "export_session",
    "import_messages",
    "import_session",
]

FORMAT = "chatcore-session-1"
SETTINGS = ("title", "system_prompt", "policy", "auto_compact", "compact_threshold", "tools", "params", "pinned", "archived")
RECORD = (
    "reasoning",
    "status",
    "model",
    "pinned",
    "token_count_input",
    "token_count_output",
    "token_count_cache_read",
    "token_count_cache_write",
    "original_chars",
    "tool_result_limit",
    "provider_data",
)
LINKS = ("seq", "branch", "branch_after", "replaces", "attachments")  # what leads from one message to others, and to files
BATCH = 500  # rows an INSERT


class StillAnswering(Exception):
    """The session is generating an answer, and nothing may be put between that and its question."""

    def __init__(self, turn_id: UUID) -> None:
        super().__init__("The session is still answering.")
        self.turn_id = turn_id


def import_messages(session: Session, messages: Any) -> list[Message]:
    """Append messages given as parsed JSON, all or none, without calling a model. Returns them as stored.

    Raises NotImportable, which names the field, and StillAnswering.
    """
    rows = read_messages(messages, known_calls=lambda: _calls_of(session))
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        answering = Q(status=Turn.Status.RUNNING, lease_until__gt=timezone.now()) | Q(status=Turn.Status.WAITING)
        running = locked.turns.filter(answering).first()
        if running:
            raise StillAnswering(running.pk)
        return _append(locked, rows)


def delete_session(session_id: UUID) -> None:
    """Delete a session and all that is in it, stopping the answer that is being given.

    Whoever writes to a session locks its turn first, then its row: in that order nobody adds to what is being deleted.
    """
    turns.cancel(session_id)
    with transaction.atomic():
        list(Turn.objects.select_for_update().filter(session_id=session_id).order_by("pk").values_list("pk"))
        if session := Session.objects.select_for_update().filter(pk=session_id).first():
            session.delete()


def export_session(session: Session) -> dict[str, Any]:
    """A session as JSON values: its settings, every message, and what the model sees of them."""
    rows = (
        session.messages.exclude(status=Message.Status.STREAMING).select_related("replaces").prefetch_related("attachments").order_by("seq")
    )
    edits = session.context_edits.filter(until_version=None).order_by("message__seq")
    return {
        "format": FORMAT,
        "session": {name: getattr(session, name) for name in SETTINGS} | {"model": str(session.model) if session.model else None},
        "messages": [_exported(message) for message in rows.iterator(chunk_size=BATCH)],
        "context": {
            "summary": session.compacted_summary,
            "boundary_seq": session.compact_boundary_seq,
            **_beside(session),
            "edits": [
                {"message_seq": seq, "kind": kind, "replacement": replacement}
                for seq, kind, replacement in edits.values_list("message__seq", "kind", "replacement")
            ],
        },
    }


def export_as(session: Session, format: formats.Format) -> dict[str, Any]:
    """`export_session`, or what is current of the session as OpenAI's or Anthropic's API takes it."""
    if format == "chatcore":
        return export_session(session)
    rows = session.messages.current().exclude(status__in=(Message.Status.STREAMING, Message.Status.FAILED)).order_by("seq")
    prompt = [{"role": "system", "content": session.system_prompt}] if session.system_prompt else []
    messages = [*prompt, *(_exported(message) for message in rows.iterator(chunk_size=BATCH))]
    return {"messages": formats.to_openai(messages)} if format == "openai" else formats.to_anthropic(messages)


def import_session(owner: Any, exported: Any) -> Session:
    """A new session of `owner`'s from what `export_session` gave, with its summary. Raises NotImportable, which names the field."""
    if not isinstance(exported, Mapping) or exported.get("format") != FORMAT:
        raise NotImportable("format", f"The file is not a session as this program exports it ({FORMAT}).")
    settings, shown, messages = (_part(exported, name, kind) for name, kind in (("session", dict), ("context", dict), ("messages", list)))
    rows = read_messages([_alone(item) for item in messages], also=RECORD)
    with transaction.atomic():
        known = column_values(Session, settings, SETTINGS, "session")
        session = Session.objects.create(owner=owner, model=_model(settings.get("model")), **known)
        _append(session, rows)
        seqs = {str(item.get("seq")): row.seq for item, row in zip(messages, rows, strict=True)}
        history_links.restore(session, messages, rows, seqs)
        _show_as_before(session, shown, seqs)
    session.refresh_from_db()
    return session


def _append(session: Session, rows: list[Message]) -> list[Message]:
    """Number and store the rows; the session's row is locked, so no other message takes their numbers."""
    for seq, row in enumerate(rows, start=session.last_seq + 1):
        row.session, row.seq = session, seq
    stored = Message.objects.bulk_create(rows, batch_size=BATCH)
    Session.objects.filter(pk=session.pk).update(
        last_seq=F("last_seq") + len(rows), message_count=F("message_count") + len(rows), updated_at=timezone.now()
    )
    events.append(session.pk, ("session.updated", {"fields": ["message_count"]}))
    return stored


def _calls_of(session: Session) -> set[str]:
    calls = session.messages.filter(role=Message.Role.ASSISTANT).exclude(tool_calls=[]).values_list("tool_calls", flat=True)
    return {call["id"] for made in calls for call in made}


def _exported(message: Message) -> dict[str, Any]:
    spoken = ("seq", "role", "content", "tool_calls", "tool_call_id", "tool_name", "is_error", *RECORD)
    said = {name: getattr(message, name) for name in spoken} | {"created_at": message.created_at.isoformat()}
    return said | history_links.of(message)


def _beside(session: Session) -> dict[str, Any]:
    """What stands beside the summary in the revision in force."""
    revision = session.revisions.filter(version=session.context_version).first() or ContextRevision()
    return {"kept_seqs": revision.kept_seqs, "background": revision.background, "placement": revision.placement}


def _part(exported: Mapping[str, Any], name: str, kind: Callable[[], Any]) -> Any:
    part = exported.get(name, kind())
    if not isinstance(part, type(kind())):
        raise NotImportable(name, "It has not the form that an export has.")
    return part


def _model(name: Any) -> AiModel | None:
    """The model of that name where it is known here; the default one elsewhere."""
    return (AiModel.objects.named(name) if isinstance(name, str) else None) or AiModel.objects.default()


def _alone(item: Any) -> Any:
    return {name: value for name, value in item.items() if name not in LINKS} if isinstance(item, Mapping) else item


def _show_as_before(session: Session, shown: Mapping[str, Any], seqs: Mapping[str, int]) -> None:
    """Install the summary, the boundary and the edits of the file; `seqs` gives the new number for an old one."""
    summary, boundary, edits = shown.get("summary"), shown.get("boundary_seq"), _part(shown, "edits", list)
    if summary is None and not edits:
        return
    if not isinstance(summary, str | None):
        raise NotImportable("context.summary", "A text.")
    if boundary is not None and str(boundary) not in seqs:
        raise NotImportable("context.boundary_seq", "There is no such message in the file.")
    context.install(
        session.pk,
        base_version=0,
        summary=summary,
        boundary_seq=None if boundary is None else seqs[str(boundary)],
        edits=[_edit(edit, f"context.edits[{index}]", seqs) for index, edit in enumerate(edits)],
        **_said_beside(shown, seqs),
        source=ContextRevision.Source.EDIT,
    )


def _said_beside(shown: Mapping[str, Any], seqs: Mapping[str, int]) -> dict[str, Any]:
    """Kept messages, background and placement, in the new numbers."""
    kept, placement = _part(shown, "kept_seqs", list), _part(shown, "placement", dict)
    if not isinstance(background := shown.get("background", ""), str):
        raise NotImportable("context.background", "A text.")
    numbers = {name: seqs.get(str(seq)) for name, seq in placement.items() if name in ("after_seq", "summarized_up_to")}
    texts = {name: text for name, text in placement.items() if name in ("place", "heading", "nudge", "marker") and isinstance(text, str)}
    kept_seqs = [seqs[str(seq)] for seq in kept if str(seq) in seqs]
    return {"kept_seqs": kept_seqs, "background": background, "placement": texts | {name: seq for name, seq in numbers.items() if seq}}


def _edit(edit: Any, path: str, seqs: Mapping[str, int]) -> context.Edit:
    if not isinstance(edit, Mapping) or str(edit.get("message_seq")) not in seqs:
        raise NotImportable(path, "There is no such message in the file.")
    form = column_values(ContextEdit, edit, ("kind", "replacement"), path)
    if "kind" not in form:
        raise NotImportable(f"{path}.kind", "It says how the message is shown.")
    return context.Edit(message_seq=seqs[str(edit["message_seq"])], **form)
