"""How a session of chatcore stands: its subject, in as few queries as it takes, and what is measured without reading a message."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, JSONField, OuterRef, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Length

from chatcore.context import live_messages, summary_block
from chatcore.files.rendering import IMAGES
from chatcore.models import Attachment, ContextEdit, ContextRevision, Message, Session, Turn
from chatcore.providers.base import Request
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.backends.base import Subject, without_session
from compaction.backends.chatcore.translation import stored_tokens, told_of
from compaction.core.estimate import LastUsage
from compaction.sizing.prepared import Prepared
from models_registry.models import AiModel

_BACK = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)
_MODEL = ("name", "provider__name")
_SUBJECT = (
    *(
        "policy",
        "auto_compact",
        "compact_threshold",
        "params",
        "tools",
        "message_count",
        "last_seq",
    ),
    *(
        "system_chars",
        "attached_tokens",
        "attached_images",
        "outputs_kept",
        "turn_model",
        "turn_tools",
    ),
    *("context_version", "compacted_summary", "compact_boundary_seq"),
    *("model__policy", "model__supports_tools", "model__supports_images"),
    *("model__context_window_size", "model__output_reserve", "model__provider__family"),
    *(f"model__{name}" for name in _MODEL),
    *(f"model__summary_model__{name}" for name in _MODEL),
)
# As text: they take the ORM longer to write than the database to answer, and the check after each response waits for it.
_ATTACHED = (
    "SELECT SUM({what}) FROM chatcore_attachment file JOIN chatcore_message message ON message.id = file.message_id "
    "WHERE file.session_id = chatcore_session.id AND file.kind = 'file' AND file.media_type {which} 'image/%%' "
    "AND message.branch IS NULL AND (message.pinned OR message.seq >= COALESCE(chatcore_session.compact_boundary_seq, 0)) "
    "AND NOT EXISTS (SELECT 1 FROM chatcore_contextedit edit WHERE edit.message_id = message.id AND edit.until_version IS NULL)"
)
_COUNTED = (
    "(SELECT COUNT(*) FROM chatcore_message WHERE session_id = %s AND branch IS NULL AND role <> 'system' "
    "AND status NOT IN ('streaming', 'failed') AND {which})"
)
_TURN_MODEL = "SELECT turn.model_id FROM chatcore_turn turn WHERE turn.session_id = chatcore_session.id AND turn.status = 'running'"
_TURN_TOOLS = "SELECT turn.tools FROM chatcore_turn turn WHERE turn.session_id = chatcore_session.id AND turn.status IN ('running', 'waiting')"
_OUTPUTS_KEPT = "SELECT 1 FROM chatcore_attachment file WHERE file.session_id = chatcore_session.id AND file.kind = 'output' LIMIT 1"

_ROW = Prepared(
    lambda own: Session.objects.filter(pk=own).annotate(**_measured()).order_by().values(*_SUBJECT),
    UUID,
)
_REVISION = Prepared(
    lambda own, version: (
        ContextRevision.objects.filter(session=own, version=version)
        .order_by()
        .values("source", "kept_seqs", "background", "placement")
    ),
    UUID,
    int,
)
_COUNTED_ANSWER = Prepared(
    lambda own, boundary, version, model: (
        _live(own, boundary)
        .filter(context_version=version, model=model, token_count_input__gt=0)
        .values("seq", "token_count_input", "token_count_output")
    ),
    UUID,
    int,
    int,
    str,
)
_NEWEST_PROMPT = Prepared(
    lambda own, boundary: (
        _live(own, boundary).filter(role=Message.Role.USER).values("token_estimate")
    ),
    UUID,
    int,
)


class Subjects:
    """Facts and sums; no message's text is read."""

    def subject(self, session_id: UUID) -> Subject | None:
        """One query for the session and its models; one more each for the newest revision and the running turn's own model, if any."""
        row = _ROW.first(session_id)
        if row is None:
            return None
        row |= _of_turn(row["turn_model"])
        built_in = tool_registry.definitions(row["tools"], outputs_kept=bool(row["outputs_kept"]))
        offered = (
            client_tools.beside(built_in, row["turn_tools"] or ())
            if row["model__supports_tools"]
            else ()
        )
        newest = _newest_revision(session_id, row["context_version"])
        kept_tokens, kept_images = _kept_files(session_id, newest.get("kept_seqs"))
        own = _model_of(row, "model__")
        return Subject(
            session_id=session_id,
            policy=row["policy"],
            model_policy=row["model__policy"] or "",
            model=own,
            window=row["model__context_window_size"],
            family=row["model__provider__family"] or "",
            output_reserve=row["model__output_reserve"],
            max_tokens=row["params"].get("max_tokens"),
            compact_threshold=row["compact_threshold"],
            summary_model=_model_of(row, "model__summary_model__") or own,
            automatic=row["auto_compact"],
            version=row["context_version"],
            held=newest.get("source") in _BACK,
            summary=row["compacted_summary"],
            boundary_seq=row["compact_boundary_seq"],
            kept_seqs=tuple(newest.get("kept_seqs", ())),
            beside_chars=summary_block.beside(
                row["compacted_summary"], newest.get("background", ""), newest.get("placement", {})
            ),
            system_chars=row["system_chars"],
            tool_chars=len(told_of(offered)),
            attached_tokens=(row["attached_tokens"] or 0) + kept_tokens,
            attached_images=min((row["attached_images"] or 0) + kept_images, IMAGES)
            if row["model__supports_images"]
            else 0,
            message_count=row["message_count"],
            last_seq=row["last_seq"],
        )

    def subject_of(self, model: AiModel, request: Request) -> Subject:
        """Of a registry row; no query."""
        facts = {
            "window": model.context_window_size,
            "family": model.provider.family,
            "output_reserve": model.output_reserve,
        }
        return without_session(
            model=str(model), model_policy=model.policy, max_tokens=request.max_tokens, **facts
        )

    def last_usage(self, subject: Subject) -> LastUsage | None:
        """The newest answer whose request was this context, whole, sent to this model."""
        row = _COUNTED_ANSWER.first(
            subject.session_id, subject.boundary_seq or 0, subject.version, subject.model
        )
        if row is None:
            return None
        counted = row["token_count_input"]
        return LastUsage(
            tokens=counted + (row["token_count_output"] or 0), input=counted, after_seq=row["seq"]
        )

    def weight(self, subject: Subject, *, after_seq: int = 0, before_seq: int | None = None) -> int:
        """One aggregate over indexed ranges, one for the edits in force; none right after an answer, which is then the newest message."""
        if after_seq >= subject.last_seq > 0:
            return 0
        counted = self._sent(subject).filter(
            seq__gt=after_seq, **({"seq__lt": before_seq} if before_seq else {})
        )
        stored = counted.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
        if not subject.version:
            return stored
        edits = ContextEdit.objects.filter(
            session=subject.session_id,
            until_version=None,
            message__in=counted.order_by().values("pk"),
        )
        cut = edits.aggregate(
            tokens=Sum("message__token_estimate"), chars=Sum(Length("replacement"))
        )
        return max(0, stored - (cut["tokens"] or 0) + stored_tokens(cut["chars"] or 0))

    def live_count(self, subject: Subject) -> int:
        """One statement: what follows the boundary, what is pinned before it, what is kept besides; all of them are counted already."""
        if not subject.boundary_seq:
            return subject.message_count
        places = ", ".join(["%s"] * len(subject.kept_seqs)) or "NULL"
        parts = (
            "seq >= %s",
            "seq < %s AND pinned",
            f"seq < %s AND NOT pinned AND seq IN ({places})",
        )
        own = [
            Session._meta.pk.get_db_prep_value(subject.session_id, connection),
            subject.boundary_seq,
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT " + " + ".join(_COUNTED.format(which=part) for part in parts),
                [*own, *own, *own, *subject.kept_seqs],
            )
            return int(cursor.fetchone()[0])

    def newest_prompt(self, subject: Subject) -> int:
        """The newest user message's stored estimate."""
        row = _NEWEST_PROMPT.first(subject.session_id, subject.boundary_seq or 0)
        return row["token_estimate"] if row else 0

    def last_model(self, subject: Subject) -> str:
        """From the newest answer, however old."""
        answers = Message.objects.filter(
            session_id=subject.session_id, role=Message.Role.ASSISTANT
        ).exclude(model="")
        return answers.order_by("-seq").values_list("model", flat=True).first() or ""

    def tool_rounds(self, subject: Subject) -> tuple[int, int]:
        """Two indexed queries; what was compacted meanwhile counts too."""
        said = Message.objects.filter(session_id=subject.session_id).current().order_by("-seq")
        asked = said.filter(role=Message.Role.USER).values_list("seq", flat=True).first() or 0
        made = [
            len(c)
            for c in said.filter(seq__gt=asked, role=Message.Role.ASSISTANT).values_list(
                "tool_calls", flat=True
            )
            if c
        ]
        return len(made), sum(made)

    def answering(self, subject: Subject) -> bool:
        """One query."""
        return Turn.objects.filter(
            session_id=subject.session_id, status=Turn.Status.RUNNING, cancel_requested=False
        ).exists()

    def session_ids(self, owner: Any) -> QuerySet[Session, UUID]:
        """A subquery."""
        return Session.objects.owned_by(owner).values_list("id", flat=True)

    def _sent(self, subject: Subject) -> QuerySet[Message]:
        return live_messages.sent(subject.session_id, subject.boundary_seq, subject.kept_seqs)


def _newest_revision(session_id: UUID, version: int) -> dict[str, Any]:
    if not version:
        return {}
    return _REVISION.first(session_id, version) or {}


def _kept_files(session_id: UUID, seqs: Sequence[int] | None) -> tuple[int, int]:
    """Tokens and images attached to messages that are kept before the boundary and not pinned; no query where none is kept."""
    if not seqs:
        return 0, 0
    edited = ContextEdit.objects.filter(message=OuterRef("message"), until_version=None)
    attached = Attachment.objects.filter(
        ~Exists(edited), session=session_id, kind=Attachment.Kind.FILE
    ).order_by()
    whole = attached.filter(message__seq__in=seqs, message__pinned=False, message__branch=None)
    found = list(whole.values_list("media_type", "token_estimate"))
    texts = [tokens for media_type, tokens in found if not media_type.startswith("image/")]
    return sum(texts), len(found) - len(texts)


def _model_of(row: dict[str, Any], prefix: str) -> str:
    """A model's name as messages carry it; empty where there is none."""
    name = row[f"{prefix}name"]
    return f"{row[f'{prefix}provider__name']}/{name}" if name else ""


def _of_turn(model_id: int | None) -> dict[str, Any]:
    """What the model that the running turn alone is answered by puts in place of the session's."""
    names = [name.removeprefix("model__") for name in _SUBJECT if name.startswith("model__")]
    row = AiModel.objects.filter(pk=model_id).values(*names).first() if model_id else None
    return {f"model__{name}": value for name, value in (row or {}).items()}


def _measured() -> dict[str, Any]:
    """What the session's row is read with, so that nothing more is asked for it: files of live messages, by text and by image …"""
    return {
        "system_chars": Length("system_prompt"),
        "attached_tokens": RawSQL(  # noqa: S611
            _ATTACHED.format(what="file.token_estimate", which="NOT LIKE"), ()
        ),  # noqa: RUF100, S611
        "attached_images": RawSQL(_ATTACHED.format(what="1", which="LIKE"), ()),  # noqa: S611
        "outputs_kept": RawSQL(_OUTPUTS_KEPT, ()),  # noqa: S611
        "turn_model": RawSQL(_TURN_MODEL, ()),  # noqa: S611
        "turn_tools": RawSQL(_TURN_TOOLS, (), output_field=JSONField()),  # noqa: S611
    }


def _live(own: UUID, boundary: int) -> QuerySet[Message]:
    """The newest first."""
    return Message.objects.filter(session_id=own, seq__gte=boundary).current().order_by("-seq")
