"""Run the statements over chatcore's tables that every measurement needs, written by hand.

The ORM takes ten times longer to compile the first of them than the database takes to run it. Each
stands beside the query of the ORM that it replaces, in a comment; tests/compaction/test_queries.py
compares both.
"""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from chatcore.statements import to_time, to_uuid
from compaction.sizing.queries import adapt_uuid, fetch_row

# How far back the last usage and the newest prompt are looked for. Without a limit, a model that
# never counts would have the whole history read after each answer. What is further away says
# little: the estimate of everything after it would be larger than the count itself.
NEWEST_SEQS = 500

# The current messages of `session` from its boundary on, as far as they are looked through.
_NEWEST_MESSAGES = f"""
    FROM chatcore_message message
    WHERE message.session_id = session.id AND message.branch IS NULL
        AND message.seq >= COALESCE(session.compact_boundary_seq, 0)
        AND message.seq > session.last_seq - {NEWEST_SEQS}
"""
# Session.objects.filter(pk=session_id).values(...), with the revision in force, whether there are
# attachments, the open turn, and the newest messages as subqueries:
# messages = session.messages.filter(seq__gte=boundary_seq, seq__gt=last_seq - NEWEST_SEQS)
#     .exclude_superseded().order_by("-seq")
# answer = messages.filter(context_version=version, model=model, token_count_input__gt=0).first()
# prompt = messages.filter(role="user").first()
# A running turn may be answered by another model than the session's. What is no join is a subquery,
# because PostgreSQL takes longer to plan many joins than to run them.
_SESSION_SQL = f"""
    SELECT
        session.owner_id AS owner_id,
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
        session.project_id AS project_id,
        session.overhead_since AS overhead_since,
        EXISTS (SELECT 1 FROM chatcore_attachment file WHERE file.session_id = session.id)
            AS has_attachments,
        EXISTS (SELECT 1 FROM chatcore_attachment file
            WHERE file.session_id = session.id AND file.kind = 'output') AS has_outputs,
        EXISTS (SELECT 1 FROM chatcore_grouprights rights WHERE rights.limits_tools)
            AS has_tool_limits,
        (SELECT turn.tools FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status IN ('running', 'waiting')
            LIMIT 1) AS turn_tools,
        (SELECT turn.recalled FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status IN ('running', 'waiting')
            LIMIT 1) AS recalled,
        model.name AS model_name,
        provider.name AS provider_name,
        provider.family AS family,
        provider.options AS provider_options,
        model.policy AS model_policy,
        model.context_window_size AS context_window_size,
        model.max_input_tokens AS max_input_tokens,
        model.output_reserve AS output_reserve,
        model.supports_tools AS supports_tools,
        model.supports_images AS supports_images,
        (SELECT summary_provider.name || '/' || summary_model.name
            FROM models_registry_aimodel summary_model
            JOIN models_registry_provider summary_provider
                ON summary_provider.id = summary_model.provider_id
            WHERE summary_model.id = model.summary_model_id) AS summary_model_name,
        revision.source AS revision_source,
        revision.kept_seqs AS kept_seqs,
        revision.background AS background,
        revision.placement AS placement,
        answer.seq AS usage_seq,
        answer.token_count_input AS usage_input,
        answer.token_count_output AS usage_output,
        answer.created_at AS usage_at,
        (SELECT message.token_estimate {_NEWEST_MESSAGES} AND message.role = 'user'
            ORDER BY message.seq DESC LIMIT 1) AS newest_prompt_tokens
    FROM chatcore_session session
    LEFT JOIN models_registry_aimodel model ON model.id = COALESCE(
        (SELECT turn.model_id FROM chatcore_turn turn
            WHERE turn.session_id = session.id AND turn.status = 'running'),
        session.model_id)
    LEFT JOIN models_registry_provider provider ON provider.id = model.provider_id
    LEFT JOIN chatcore_contextrevision revision
        ON revision.session_id = session.id AND revision.version = session.context_version
    LEFT JOIN chatcore_message answer ON answer.id = (
        SELECT message.id {_NEWEST_MESSAGES}
            AND message.context_version = session.context_version
            AND message.model = provider.name || '/' || model.name
            AND message.token_count_input > 0
        ORDER BY message.seq DESC LIMIT 1)
    WHERE session.id = %s AND session.discard_at IS NULL
"""  # noqa: S608
_SESSION_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "project_id": to_uuid,
    "overhead_since": to_time,
    "usage_at": to_time,
    "auto_compact": bool,
    "has_attachments": bool,
    "has_outputs": bool,
    "has_tool_limits": bool,
    "supports_tools": bool,
    "supports_images": bool,
    "params": json.loads,
    "provider_options": json.loads,
    "tools": json.loads,
    "turn_tools": json.loads,
    "recalled": json.loads,
    "kept_seqs": json.loads,
    "placement": json.loads,
}


def load_session_row(session_id: UUID) -> dict[str, Any] | None:
    """Return columns of a session, its models, its open turn, its revision and newest messages.

    None if the session is deleted.
    """
    return fetch_row(_SESSION_SQL, [adapt_uuid(session_id)], _SESSION_CONVERTERS)
