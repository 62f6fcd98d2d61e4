"""Decide how much a turn brings back from before the boundary, by the policy of its session."""

from chatcore.models import Session
from compaction import policies
from compaction.core.groups.recall import RecallKnobs
from compaction.sessions.facts import list_policy_names


def choose_recall(session: Session) -> RecallKnobs | None:
    """Return the knobs of the session's policy for recall; None if it brings nothing back.

    A preset takes no query.
    """
    policy_names = list_policy_names(session)
    _, policy = policies.choose_policy(*policy_names)
    return policy.recall if policy.recall.tokens else None
