"""The choices of a session when a turn begins: a model if it has none, and what was lost since."""

from chatcore.accounts.rights import EVERYTHING, Kind, list_allowed, select_models
from chatcore.models import Session
from chatcore.sessions.changes import record_session_change
from chatcore.tools.mcp import catalog
from models_registry.models import AiModel


def ensure_model(session: Session) -> AiModel | None:
    """Return the locked session's model. One without a model gets the default one for good."""
    if session.model is None:
        session.model = select_models(session.owner_id).find_default()
        if session.model:
            record_session_change(session.pk, {"model": session.model}, is_user_act=False)
    return session.model


def apply_losses(session: Session) -> list[str]:
    """Take a policy that the owner may not use any more from a session, whose row is locked.

    Returns sentences for the owner, also about chosen tools; those are left out of each request. A
    session that chose no policy and no tools takes no query.
    """
    sentences = []
    if session.tools:
        sentences += _describe_lost_tools(session, session.tools)
    if session.policy and session.policy not in list_allowed(session.owner_id, Kind.POLICY):
        sentences.append(
            f"You may not use the compaction policy {session.policy} any more. The default one is"
            " used."
        )
        session.policy = ""
        session.save(update_fields=["policy"])
    return sentences


def _describe_lost_tools(session: Session, names: list[str]) -> list[str]:
    allowed_names = list_allowed(session.owner_id, Kind.TOOL)
    if allowed_names == EVERYTHING:
        return []
    built_in_names = [name for name in names if not catalog.is_tool_name(name)]
    lost_names = [name for name in built_in_names if name not in allowed_names]
    lost_names += [
        tool.definition.name
        for tool in catalog.list_chosen_tools(names, session.pk, EVERYTHING)
        if tool.name_in_rights not in allowed_names
    ]
    if not lost_names:
        return []
    return [f"You may not use these tools any more: {', '.join(sorted(lost_names))}."]
