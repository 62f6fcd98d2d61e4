"""How a session of chatcore stands: its subject, in as few queries as it takes, and what is measured without reading a message."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, JSONField, OuterRef, QuerySet, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Length

from chatcore.context import live_messages, summary_block
from chatcore.files.rendering import MAX_IMAGES
from chatcore.models import Attachment, ContextEdit, ContextRevision, Message, Session, Turn
from chatcore.providers.base import Request
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.backends.base import SessionFacts
from compaction.backends.chatcore.translation import estimate_stored_tokens, serialize_tools
from compaction.core.estimate import LastUsage
from compaction.sizing.prepared import PreparedQuery
from models_registry.models import AiModel

_REWIND_SOURCES = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)
_MODEL_NAME_COLUMNS = ("name", "provider__name")
_SESSION_COLUMNS = (
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
    *(f"model__{name}" for name in _MODEL_NAME_COLUMNS),
    *(f"model__summary_model__{name}" for name in _MODEL_NAME_COLUMNS),
)
# As text: they take the ORM longer to write than the database to answer, and the check after each response waits for it.
_ATTACHMENT_SUM_SQL = (
    "SELECT SUM({what}) FROM chatcore_attachment file JOIN chatcore_message message ON message.id = file.message_id "
    "WHERE file.session_id = chatcore_session.id AND file.kind = 'file' AND file.media_type {which} 'image/%%' "
    "AND message.branch IS NULL AND (message.pinned OR message.seq >= COALESCE(chatcore_session.compact_boundary_seq, 0)) "
    "AND NOT EXISTS (SELECT 1 FROM chatcore_contextedit edit WHERE edit.message_id = message.id AND edit.until_version IS NULL)"
)
_MESSAGE_COUNT_SQL = (
    "(SELECT COUNT(*) FROM chatcore_message WHERE session_id = %s AND branch IS NULL AND role <> 'system' "
    "AND status NOT IN ('streaming', 'failed') AND {which})"
)
_TURN_MODEL_SQL = "SELECT turn.model_id FROM chatcore_turn turn WHERE turn.session_id = chatcore_session.id AND turn.status = 'running'"
_TURN_TOOLS_SQL = "SELECT turn.tools FROM chatcore_turn turn WHERE turn.session_id = chatcore_session.id AND turn.status IN ('running', 'waiting')"
_TOOL_OUTPUT_SQL = "SELECT 1 FROM chatcore_attachment file WHERE file.session_id = chatcore_session.id AND file.kind = 'output' LIMIT 1"

_SESSION_QUERY = PreparedQuery(
    lambda own: (
        Session.objects.filter(pk=own)
        .annotate(**_build_annotations())
        .order_by()
        .values(*_SESSION_COLUMNS)
    ),
    UUID,
)
_REVISION_QUERY = PreparedQuery(
    lambda own, version: (
        ContextRevision.objects.filter(session=own, version=version)
        .order_by()
        .values("source", "kept_seqs", "background", "placement")
    ),
    UUID,
    int,
)
_LAST_USAGE_QUERY = PreparedQuery(
    lambda own, boundary, version, model: (
        _select_live_messages(own, boundary)
        .filter(context_version=version, model=model, token_count_input__gt=0)
        .values("seq", "token_count_input", "token_count_output")
    ),
    UUID,
    int,
    int,
    str,
)
_NEWEST_PROMPT_QUERY = PreparedQuery(
    lambda own, boundary: (
        _select_live_messages(own, boundary).filter(role=Message.Role.USER).values("token_estimate")
    ),
    UUID,
    int,
)


class SessionReader:
    """Facts and sums; no message's text is read."""

    def load_session_facts(self, session_id: UUID) -> SessionFacts | None:
        """One query for the session and its models; one more each for the newest revision and the running turn's own model, if any."""
        row = _SESSION_QUERY.fetch_first(session_id)
        if row is None:
            return None
        row |= _load_turn_model(row["turn_model"])
        builtin_tools = tool_registry.build_definitions(
            row["tools"], has_outputs=bool(row["outputs_kept"])
        )
        tool_definitions = (
            client_tools.merge_tools(builtin_tools, row["turn_tools"] or ())
            if row["model__supports_tools"]
            else ()
        )
        revision = _load_revision(session_id, row["context_version"])
        early_tokens, early_images = _sum_early_attachments(session_id, revision.get("kept_seqs"))
        model_name = _format_model_name(row, "model__")
        return SessionFacts(
            session_id=session_id,
            policy=row["policy"],
            model_policy=row["model__policy"] or "",
            model=model_name,
            window=row["model__context_window_size"],
            family=row["model__provider__family"] or "",
            output_reserve=row["model__output_reserve"],
            max_tokens=row["params"].get("max_tokens"),
            compact_threshold=row["compact_threshold"],
            summary_model=_format_model_name(row, "model__summary_model__") or model_name,
            is_automatic=row["auto_compact"],
            version=row["context_version"],
            is_rewound=revision.get("source") in _REWIND_SOURCES,
            summary=row["compacted_summary"],
            boundary_seq=row["compact_boundary_seq"],
            kept_seqs=tuple(revision.get("kept_seqs", ())),
            reference_chars=summary_block.count_wrapping_chars(
                row["compacted_summary"],
                revision.get("background", ""),
                revision.get("placement", {}),
            ),
            system_chars=row["system_chars"],
            tool_chars=len(serialize_tools(tool_definitions)),
            attached_tokens=(row["attached_tokens"] or 0) + early_tokens,
            attached_images=min((row["attached_images"] or 0) + early_images, MAX_IMAGES)
            if row["model__supports_images"]
            else 0,
            message_count=row["message_count"],
            last_seq=row["last_seq"],
        )

    def build_model_facts(self, model: AiModel, request: Request) -> SessionFacts:
        """Of a registry row; no query."""
        model_fields = {
            "window": model.context_window_size,
            "family": model.provider.family,
            "output_reserve": model.output_reserve,
        }
        return SessionFacts(
            model=str(model),
            model_policy=model.policy,
            max_tokens=request.max_tokens,
            **model_fields,
        )

    def load_last_usage(self, facts: SessionFacts) -> LastUsage | None:
        """The newest answer whose request was this context, whole, sent to this model."""
        row = _LAST_USAGE_QUERY.fetch_first(
            facts.session_id, facts.boundary_seq or 0, facts.version, facts.model
        )
        if row is None:
            return None
        input_tokens = row["token_count_input"]
        return LastUsage(
            tokens=input_tokens + (row["token_count_output"] or 0),
            input=input_tokens,
            after_seq=row["seq"],
        )

    def sum_message_tokens(
        self, facts: SessionFacts, *, after_seq: int = 0, before_seq: int | None = None
    ) -> int:
        """One aggregate over indexed ranges, one for the edits in force; none right after an answer, which is then the newest message."""
        if after_seq >= facts.last_seq > 0:
            return 0
        messages = self._select_request_messages(facts).filter(
            seq__gt=after_seq, **({"seq__lt": before_seq} if before_seq else {})
        )
        message_tokens = messages.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
        if not facts.version:
            return message_tokens
        edits = ContextEdit.objects.filter(
            session=facts.session_id,
            until_version=None,
            message__in=messages.order_by().values("pk"),
        )
        edit_sums = edits.aggregate(
            tokens=Sum("message__token_estimate"), chars=Sum(Length("replacement"))
        )
        return max(
            0,
            message_tokens
            - (edit_sums["tokens"] or 0)
            + estimate_stored_tokens(edit_sums["chars"] or 0),
        )

    def count_live_messages(self, facts: SessionFacts) -> int:
        """One statement: what follows the boundary, what is pinned before it, what is kept besides; all of them are counted already."""
        if not facts.boundary_seq:
            return facts.message_count
        placeholders = ", ".join(["%s"] * len(facts.kept_seqs)) or "NULL"
        conditions = (
            "seq >= %s",
            "seq < %s AND pinned",
            f"seq < %s AND NOT pinned AND seq IN ({placeholders})",
        )
        parameters = [
            Session._meta.pk.get_db_prep_value(facts.session_id, connection),
            facts.boundary_seq,
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT "
                + " + ".join(
                    _MESSAGE_COUNT_SQL.format(which=condition) for condition in conditions
                ),
                [*parameters, *parameters, *parameters, *facts.kept_seqs],
            )
            return int(cursor.fetchone()[0])

    def load_newest_prompt_tokens(self, facts: SessionFacts) -> int:
        """The newest user message's stored estimate."""
        row = _NEWEST_PROMPT_QUERY.fetch_first(facts.session_id, facts.boundary_seq or 0)
        return row["token_estimate"] if row else 0

    def load_last_model(self, facts: SessionFacts) -> str:
        """From the newest answer, however old."""
        answers = Message.objects.filter(
            session_id=facts.session_id, role=Message.Role.ASSISTANT
        ).exclude(model="")
        return answers.order_by("-seq").values_list("model", flat=True).first() or ""

    def count_tool_rounds(self, facts: SessionFacts) -> tuple[int, int]:
        """Two indexed queries; what was compacted meanwhile counts too."""
        messages = (
            Message.objects.filter(session_id=facts.session_id)
            .exclude_superseded()
            .order_by("-seq")
        )
        prompt_seq = (
            messages.filter(role=Message.Role.USER).values_list("seq", flat=True).first() or 0
        )
        call_counts = [
            len(c)
            for c in messages.filter(seq__gt=prompt_seq, role=Message.Role.ASSISTANT).values_list(
                "tool_calls", flat=True
            )
            if c
        ]
        return len(call_counts), sum(call_counts)

    def is_answering(self, facts: SessionFacts) -> bool:
        """One query."""
        return Turn.objects.filter(
            session_id=facts.session_id, status=Turn.Status.RUNNING, cancel_requested=False
        ).exists()

    def list_session_ids(self, owner: Any) -> QuerySet[Session, UUID]:
        """A subquery."""
        return Session.objects.owned_by(owner).values_list("id", flat=True)

    def _select_request_messages(self, facts: SessionFacts) -> QuerySet[Message]:
        return live_messages.query_live_messages(
            facts.session_id, facts.boundary_seq, facts.kept_seqs
        )


def _load_revision(session_id: UUID, version: int) -> dict[str, Any]:
    if not version:
        return {}
    return _REVISION_QUERY.fetch_first(session_id, version) or {}


def _sum_early_attachments(session_id: UUID, seqs: Sequence[int] | None) -> tuple[int, int]:
    """Tokens and images attached to messages that are kept before the boundary and not pinned; no query where none is kept."""
    if not seqs:
        return 0, 0
    active_edits = ContextEdit.objects.filter(message=OuterRef("message"), until_version=None)
    attachments = Attachment.objects.filter(
        ~Exists(active_edits), session=session_id, kind=Attachment.Kind.FILE
    ).order_by()
    early_attachments = attachments.filter(
        message__seq__in=seqs, message__pinned=False, message__branch=None
    )
    rows = list(early_attachments.values_list("media_type", "token_estimate"))
    text_tokens = [tokens for media_type, tokens in rows if not media_type.startswith("image/")]
    return sum(text_tokens), len(rows) - len(text_tokens)


def _format_model_name(row: dict[str, Any], prefix: str) -> str:
    """A model's name as messages carry it; empty where there is none."""
    name = row[f"{prefix}name"]
    return f"{row[f'{prefix}provider__name']}/{name}" if name else ""


def _load_turn_model(model_id: int | None) -> dict[str, Any]:
    """What the model that the running turn alone is answered by puts in place of the session's."""
    columns = [
        name.removeprefix("model__") for name in _SESSION_COLUMNS if name.startswith("model__")
    ]
    row = AiModel.objects.filter(pk=model_id).values(*columns).first() if model_id else None
    return {f"model__{name}": value for name, value in (row or {}).items()}


def _build_annotations() -> dict[str, Any]:
    """What the session's row is read with, so that nothing more is asked for it: files of live messages, by text and by image …"""
    return {
        "system_chars": Length("system_prompt"),
        "attached_tokens": RawSQL(  # noqa: S611
            _ATTACHMENT_SUM_SQL.format(what="file.token_estimate", which="NOT LIKE"), ()
        ),  # noqa: RUF100, S611
        "attached_images": RawSQL(_ATTACHMENT_SUM_SQL.format(what="1", which="LIKE"), ()),  # noqa: S611
        "outputs_kept": RawSQL(_TOOL_OUTPUT_SQL, ()),  # noqa: S611
        "turn_model": RawSQL(_TURN_MODEL_SQL, ()),  # noqa: S611
        "turn_tools": RawSQL(_TURN_TOOLS_SQL, (), output_field=JSONField()),  # noqa: S611
    }


def _select_live_messages(session_id: UUID, boundary_seq: int) -> QuerySet[Message]:
    """The newest first."""
    return (
        Message.objects.filter(session_id=session_id, seq__gte=boundary_seq)
        .exclude_superseded()
        .order_by("-seq")
    )
