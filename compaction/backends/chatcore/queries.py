"""Run the statements over chatcore's tables that every measurement needs, written by hand.

The ORM takes ten times longer to compile the first of them than the database takes to run it. Each
stands beside the query of the ORM that it replaces, in a comment; tests/compaction/test_queries.py
compares both.
"""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from compaction.backends.base import SessionFacts
from compaction.sizing.queries import adapt_uuid, fetch_row

# Files of the messages that are sent from the boundary on or because they are pinned. A message
# that is shown in another form has no files.
_LIVE_FILES = """
    FROM chatcore_attachment file
    JOIN chatcore_message message ON message.id = file.message_id
    WHERE file.session_id = session.id AND file.kind = 'file'
        AND message.branch IS NULL
        AND (message.pinned OR message.seq >= COALESCE(session.compact_boundary_seq, 0))
        AND NOT EXISTS (
            SELECT 1 FROM chatcore_contextedit edit
            WHERE edit.message_id = message.id AND edit.until_version IS NULL
        )
"""

# Session.objects.filter(pk=session_id).values(...), with sums over Attachment and the open turn as
# subqueries. A running turn may be answered by another model than the session's.
_SESSION_SQL = f"""
    SELECT
        session.policy AS policy,
        session.auto_compact AS auto_compact,
        session.compact_threshold AS compact_threshold,
        session.params AS params,
        session.tools AS tools,
        session.message_count AS message_count,
        session.last_seq AS last_seq,
        session.context_version AS context_version,
        session.compacted_summary AS compacted_summary,
        session.compact_boundary_seq AS compact_boundary_seq,
        LENGTH(session.system_prompt) AS system_chars,
        (SELECT SUM(file.token_estimate) {_LIVE_FILES} AND file.media_type NOT LIKE 'image/%%')
            AS attached_tokens,
        (SELECT SUM(1) {_LIVE_FILES} AND file.media_type LIKE 'image/%%') AS attached_images,
        EXISTS (SELECT 1 FROM chatcore_attachment file
            WHERE file.session_id = session.id AND file.kind = 'output') AS has_outputs,
        (SELECT turn.tools FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status IN ('running', 'waiting'))
            AS turn_tools,
        model.name AS model_name,
        provider.name AS provider_name,
        provider.family AS family,
        model.policy AS model_policy,
        model.context_window_size AS context_window_size,
        model.output_reserve AS output_reserve,
        model.supports_tools AS supports_tools,
        model.supports_images AS supports_images,
        summary_model.name AS summary_model_name,
        summary_provider.name AS summary_provider_name
    FROM chatcore_session session
    LEFT JOIN models_registry_aimodel model ON model.id = COALESCE(
        (SELECT turn.model_id FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status = 'running'),
        session.model_id)
    LEFT JOIN models_registry_provider provider ON provider.id = model.provider_id
    LEFT JOIN models_registry_aimodel summary_model ON summary_model.id = model.summary_model_id
    LEFT JOIN models_registry_provider summary_provider
        ON summary_provider.id = summary_model.provider_id
    WHERE session.id = %s
"""  # noqa: S608
_SESSION_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "auto_compact": bool,
    "has_outputs": bool,
    "supports_tools": bool,
    "supports_images": bool,
    "params": json.loads,
    "tools": json.loads,
    "turn_tools": json.loads,
}

# ContextRevision.objects.filter(session=session_id, version=version)
_REVISION_SQL = """
    SELECT source, kept_seqs, background, placement
    FROM chatcore_contextrevision
    WHERE session_id = %s AND version = %s
"""
_REVISION_CONVERTERS = {"kept_seqs": json.loads, "placement": json.loads}

# Message.objects.filter(session=session_id, seq__gte=boundary_seq, context_version=version,
#     model=model, token_count_input__gt=0).exclude_superseded().order_by("-seq").first()
_LAST_USAGE_SQL = """
    SELECT seq, token_count_input, token_count_output
    FROM chatcore_message
    WHERE session_id = %s AND seq >= %s AND branch IS NULL
        AND context_version = %s AND model = %s AND token_count_input > 0
    ORDER BY seq DESC
    LIMIT 1
"""

# Message.objects.filter(session=session_id, seq__gte=boundary_seq, role="user")
#     .exclude_superseded().order_by("-seq").first()
_NEWEST_PROMPT_SQL = """
    SELECT token_estimate
    FROM chatcore_message
    WHERE session_id = %s AND seq >= %s AND branch IS NULL AND role = 'user'
    ORDER BY seq DESC
    LIMIT 1
"""

# live_messages.query_live_messages(session_id, boundary_seq, kept_seqs).count() Three counts that
# exclude each other: a single one with OR makes databases walk through the whole session.
_SENT_MESSAGES = """
    SELECT COUNT(*) FROM chatcore_message
    WHERE session_id = %s AND branch IS NULL AND role <> 'system'
        AND status NOT IN ('streaming', 'failed')
"""
_LIVE_COUNT_SQL = f"""
    SELECT
        ({_SENT_MESSAGES} AND seq >= %s)
        + ({_SENT_MESSAGES} AND seq < %s AND pinned)
        + ({_SENT_MESSAGES} AND seq < %s AND NOT pinned AND seq IN ({{kept_seqs}}))
        AS message_count
"""


def load_session_row(session_id: UUID) -> dict[str, Any] | None:
    """Return columns of a session, its models and its open turn; None if it is deleted."""
    return fetch_row(_SESSION_SQL, [adapt_uuid(session_id)], _SESSION_CONVERTERS)


def load_revision_row(session_id: UUID, version: int) -> dict[str, Any] | None:
    """Return source, kept_seqs, background and placement of a revision, if it exists."""
    return fetch_row(_REVISION_SQL, [adapt_uuid(session_id), version], _REVISION_CONVERTERS)


def load_last_usage_row(facts: SessionFacts) -> dict[str, Any] | None:
    """Return seq and token counts of the newest answer to exactly this context."""
    return fetch_row(
        _LAST_USAGE_SQL,
        [adapt_uuid(facts.session_id), facts.boundary_seq or 0, facts.version, facts.model],
    )


def load_newest_prompt_row(facts: SessionFacts) -> dict[str, Any] | None:
    """Return the token estimate of the newest live user message, if there is one."""
    return fetch_row(_NEWEST_PROMPT_SQL, [adapt_uuid(facts.session_id), facts.boundary_seq or 0])


def count_messages_around_boundary(facts: SessionFacts) -> int:
    """Count the messages from the boundary on, pinned before it, or listed in `kept_seqs`."""
    range_parameters = [adapt_uuid(facts.session_id), facts.boundary_seq]
    placeholders = ", ".join(["%s"] * len(facts.kept_seqs)) or "NULL"
    row = fetch_row(
        _LIVE_COUNT_SQL.format(kept_seqs=placeholders),
        [*range_parameters, *range_parameters, *range_parameters, *facts.kept_seqs],
    )
    assert row is not None
    return int(row["message_count"])
