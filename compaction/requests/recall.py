"""Decide how much a turn brings back from before the boundary, by the policy of its session."""

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.backends.base import HostSession
from compaction.core.groups.recall import RecallKnobs


def choose_recall(session: HostSession) -> RecallKnobs | None:
    """Return the knobs of the session's policy for recall; None if it brings nothing back.

    A preset takes no query.
    """
    policy_names = backend_registry.get_backend().list_policy_names(session)
    _, policy = policies.choose_policy(*policy_names)
    return policy.recall if policy.recall.tokens else None
