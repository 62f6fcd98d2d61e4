"""Give a session without a language model one that its owner may use."""

from chatcore.models import Session
from chatcore.rights import select_models
from chatcore.sessions.changes import record_session_change
from models_registry.models import AiModel


def ensure_model(session: Session) -> AiModel | None:
    """Return the locked session's model. One without a model gets the default one for good."""
    if session.model is None:
        session.model = select_models(session.owner_id).find_default()
        if session.model:
            record_session_change(session.pk, {"model": session.model}, is_user_act=False)
    return session.model
