"""How many runs by hand a user may ask for: each may be paid for."""

from math import ceil
from uuid import UUID

from compaction.backends import registry as backend_registry


class TooManyRuns(Exception):
    """The user has asked for too many runs; `retry_after` is the number of seconds to wait."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"Too many compactions by hand. Try again in {ceil(retry_after)} seconds.")
        self.retry_after = retry_after


class BudgetSpent(Exception):
    """A budget of the session's owner is spent; `retry_after` is the number of seconds to wait."""

    def __init__(self, text: str, *, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


def use_allowance(session_id: UUID, *, user_pk: object = None) -> None:
    """Count a run by hand, of this user or else of the session's owner.

    Raises TooManyRuns, and BudgetSpent if the owner may spend nothing more; then none is counted.
    """
    if refusal := backend_registry.get_backend().find_spent_budget(session_id):
        raise BudgetSpent(refusal.text, retry_after=refusal.retry_after)
    wait_seconds = backend_registry.get_backend().count_manual_run(session_id, user_pk=user_pk)
    if wait_seconds is not None:
        raise TooManyRuns(wait_seconds)
