"""How many runs by hand a user may ask for: each may be paid for."""

from math import ceil
from uuid import UUID

from chatcore.accounts.spending import check_call
from chatcore.models import Session


class TooManyRuns(Exception):
    """The user has asked for too many runs; `retry_after` is the number of seconds to wait."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"Too many compactions by hand. Try again in {ceil(retry_after)} seconds.")
        self.retry_after = retry_after


def use_allowance(session_id: UUID, *, user_pk: object = None) -> None:
    """Count a run by hand, of this user or else of the session's owner.

    Raises TooManyRuns, and CallRefused if the owner may spend nothing more; then none is counted.
    """
    owners = Session.objects.filter(pk=session_id).values_list("owner_id", flat=True)
    owner_pk = owners.first()
    check_call(owner_pk)
    # Imported here: a worker counts none, and need not load what REST needs.
    from chatcore.base.rest.turn_rate import count_compaction

    counted_pk = user_pk or owner_pk
    wait_seconds = None if counted_pk is None else count_compaction(counted_pk)
    if wait_seconds is not None:
        raise TooManyRuns(wait_seconds)
