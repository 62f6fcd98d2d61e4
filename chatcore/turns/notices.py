"""What a turn tells its person besides the answer, and that nothing is told at each answer."""

from collections.abc import Iterable

from chatcore.models import Turn


def add_notices(turn: Turn, notices: Iterable[str]) -> None:
    """Store notices with a turn that has not got them yet."""
    new_notices = [notice for notice in notices if notice not in turn.notices]
    if new_notices:
        turn.notices = [*turn.notices, *new_notices]
        turn.save(update_fields=["notices"])


def list_new_notices(turn: Turn) -> list[str]:
    """Return the notices of a turn that the turn before it has not told already.

    While requests are trimmed, each turn has the notice in its record, and the first one tells it.
    """
    if not turn.notices:
        return []
    earlier_turns = Turn.objects.filter(session=turn.session_id, started_at__lt=turn.started_at)
    known = earlier_turns.order_by("-started_at").values_list("notices", flat=True).first() or []
    return [notice for notice in turn.notices if notice not in known]
