"""Load facts about a chatcore session, and sums over its messages."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Exists, OuterRef, QuerySet, Sum
from django.db.models.functions import Length

from chatcore.context import live_messages, summary_block
from chatcore.files.rendering import MAX_IMAGES
from chatcore.models import Attachment, ContextEdit, ContextRevision, Message, Session, Turn
from chatcore.providers.base import Tool
from chatcore.tools import registry as tool_registry
from chatcore.turns import client_tools
from compaction.backends.base import SessionFacts
from compaction.backends.chatcore import queries
from compaction.backends.chatcore.translation import estimate_stored_tokens, serialize_tools
from compaction.core.estimate import LastUsage

_REWIND_SOURCES = (ContextRevision.Source.REWIND, ContextRevision.Source.RESET)


class ChatcoreSessionFacts:
    """Facts and sums about chatcore's sessions; no message's text is loaded."""

    def load_session_facts(self, session_id: UUID) -> SessionFacts | None:
        """Return the session's facts, or None if it is deleted.

        This takes one query, and one more if the context has a revision.
        """
        row = queries.load_session_row(session_id)
        if row is None:
            return None
        version = row["context_version"]
        revision = (queries.load_revision_row(session_id, version) if version else None) or {}
        kept_seqs = tuple(revision.get("kept_seqs", ()))
        early_tokens, early_images = _sum_early_attachments(session_id, kept_seqs)
        image_count = min((row["attached_images"] or 0) + early_images, MAX_IMAGES)
        model_name = _join_model_name(row["provider_name"], row["model_name"])
        summary_model_name = _join_model_name(
            row["summary_provider_name"], row["summary_model_name"]
        )
        return SessionFacts(
            session_id=session_id,
            policy=row["policy"],
            compact_threshold=row["compact_threshold"],
            is_automatic=row["auto_compact"],
            max_tokens=row["params"].get("max_tokens"),
            model=model_name,
            family=row["family"] or "",
            window=row["context_window_size"],
            output_reserve=row["output_reserve"],
            model_policy=row["model_policy"] or "",
            summary_model=summary_model_name or model_name,
            version=version,
            is_rewound=revision.get("source") in _REWIND_SOURCES,
            summary=row["compacted_summary"],
            boundary_seq=row["compact_boundary_seq"],
            kept_seqs=kept_seqs,
            system_chars=row["system_chars"],
            tool_chars=len(serialize_tools(_list_tools(row))),
            reference_chars=summary_block.count_wrapping_chars(
                row["compacted_summary"],
                revision.get("background", ""),
                revision.get("placement", {}),
            ),
            attached_tokens=(row["attached_tokens"] or 0) + early_tokens,
            attached_images=image_count if row["supports_images"] else 0,
            message_count=row["message_count"],
            last_seq=row["last_seq"],
        )

    def load_last_usage(self, facts: SessionFacts) -> LastUsage | None:
        """Return the token counts of the newest answer whose request was exactly this context."""
        row = queries.load_last_usage_row(facts)
        if row is None:
            return None
        input_tokens = row["token_count_input"]
        output_tokens = row["token_count_output"] or 0
        return LastUsage(
            tokens=input_tokens + output_tokens, input=input_tokens, after_seq=row["seq"]
        )

    def sum_message_tokens(
        self, facts: SessionFacts, *, after_seq: int = 0, before_seq: int | None = None
    ) -> int:
        """Return the stored token estimates of the live messages in a range, both ends excluded.

        This takes one aggregate over indexed ranges, and one more for messages that are shown in
        another form. Right after an answer it takes none, because the answer is then the newest
        message.
        """
        if after_seq >= facts.last_seq > 0:
            return 0
        messages = self._select_live_messages(facts).filter(seq__gt=after_seq)
        if before_seq:
            messages = messages.filter(seq__lt=before_seq)
        message_tokens = messages.aggregate(tokens=Sum("token_estimate"))["tokens"] or 0
        if not facts.version:
            return message_tokens
        edits = ContextEdit.objects.filter(
            session=facts.session_id,
            until_version=None,
            message__in=messages.order_by().values("pk"),
        )
        edit_sums = edits.aggregate(
            original_tokens=Sum("message__token_estimate"),
            replacement_chars=Sum(Length("replacement")),
        )
        original_tokens = edit_sums["original_tokens"] or 0
        replacement_tokens = estimate_stored_tokens(edit_sums["replacement_chars"] or 0)
        return max(0, message_tokens - original_tokens + replacement_tokens)

    def count_live_messages(self, facts: SessionFacts) -> int:
        """Return the number of messages that the next request would send."""
        if not facts.boundary_seq:
            return facts.message_count
        return queries.count_messages_around_boundary(facts)

    def load_newest_prompt_tokens(self, facts: SessionFacts) -> int:
        """Return the stored token estimate of the newest user message; 0 if there is none."""
        row = queries.load_newest_prompt_row(facts)
        return row["token_estimate"] if row else 0

    def load_last_model(self, facts: SessionFacts) -> str:
        """Return the model that gave the newest answer; empty before the first."""
        answers = Message.objects.filter(
            session_id=facts.session_id, role=Message.Role.ASSISTANT
        ).exclude(model="")
        return answers.order_by("-seq").values_list("model", flat=True).first() or ""

    def count_tool_rounds(self, facts: SessionFacts) -> tuple[int, int]:
        """Return the rounds of tool calls since the user's last message, and the calls.

        Messages that were compacted meanwhile count too.
        """
        messages = (
            Message.objects.filter(session_id=facts.session_id)
            .exclude_superseded()
            .order_by("-seq")
        )
        prompts = messages.filter(role=Message.Role.USER)
        prompt_seq = prompts.values_list("seq", flat=True).first() or 0
        answers = messages.filter(seq__gt=prompt_seq, role=Message.Role.ASSISTANT)
        call_lists = answers.values_list("tool_calls", flat=True)
        call_counts = [len(calls) for calls in call_lists if calls]
        return len(call_counts), sum(call_counts)

    def is_answering(self, facts: SessionFacts) -> bool:
        """Return True while a turn of the session runs and nobody has canceled it."""
        return Turn.objects.filter(
            session_id=facts.session_id, status=Turn.Status.RUNNING, cancel_requested=False
        ).exists()

    def list_session_ids(self, owner: AbstractBaseUser | AnonymousUser) -> QuerySet[Session, UUID]:
        """Return the ids of a user's sessions, as a subquery."""
        return Session.objects.owned_by(owner).values_list("id", flat=True)

    def _select_live_messages(self, facts: SessionFacts) -> QuerySet[Message]:
        return live_messages.query_live_messages(
            facts.session_id, facts.boundary_seq, facts.kept_seqs
        )


def _list_tools(row: dict[str, Any]) -> Sequence[Tool]:
    """Return the tools of the next request: chatcore's and those of the turn's client."""
    if not row["supports_tools"]:
        return ()
    built_in_tools = tool_registry.build_definitions(
        row["tools"], has_outputs=bool(row["has_outputs"])
    )
    return client_tools.merge_tools(built_in_tools, row["turn_tools"] or ())


def _sum_early_attachments(session_id: UUID, kept_seqs: Sequence[int]) -> tuple[int, int]:
    """Return text tokens and images attached to unpinned messages before the boundary."""
    if not kept_seqs:
        return 0, 0
    active_edits = ContextEdit.objects.filter(message=OuterRef("message"), until_version=None)
    attachments = Attachment.objects.filter(
        ~Exists(active_edits),
        session=session_id,
        kind=Attachment.Kind.FILE,
        message__seq__in=kept_seqs,
        message__pinned=False,
        message__branch=None,
    ).order_by()
    text_tokens = 0
    image_count = 0
    for media_type, token_estimate in attachments.values_list("media_type", "token_estimate"):
        if media_type.startswith("image/"):
            image_count += 1
        else:
            text_tokens += token_estimate
    return text_tokens, image_count


def _join_model_name(provider_name: str | None, model_name: str | None) -> str:
    """Return a model's name in the form that messages store; empty if there is no model."""
    return f"{provider_name}/{model_name}" if model_name else ""
