"""Which result of a tool belongs to which call, and what stands in the place of a missing one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

RESULT_COMPACTED = "[Tool result unavailable - conversation was compacted]"
CALL_COMPACTED = "[Tool call for {tool} - conversation was compacted]"


def match_results(messages: Iterable[tuple[Sequence[str], str | None]]) -> Iterator[int | None]:
    """Yield for each message the index of the one whose call it answers; None for all others.

    A message is given by the ids of its calls, and by the id that it answers: None if it is not a
    result. A result belongs to the newest earlier call with its id, because some models use the
    same ids again in each answer. Two calls of one answer may share an id too, and have two results
    then; a further result has no call.
    """
    callers: dict[str, int] = {}
    open_calls: dict[str, int] = {}
    for index, (call_ids, answered_id) in enumerate(messages):
        if answered_id is None:
            if call_ids:
                callers |= dict.fromkeys(call_ids, index)
                open_calls |= Counter(call_ids)
            yield None
        elif open_calls.get(answered_id):
            open_calls[answered_id] -= 1
            yield callers[answered_id]
        else:
            yield None
