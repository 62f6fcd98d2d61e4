"""Why deletion waits in this process: a clock that is wrong, a store that belongs to others.

`/readyz` and the admin say so.
"""

import logging

logger = logging.getLogger(__name__)

_problems: dict[str, str] = {}


def list_problems() -> list[str]:
    """Return why deletion waits in this process, in sentences."""
    return list(_problems.values())


def note_problem(kind: str, sentence: str) -> None:
    """Note why a kind of deletion waits; an empty sentence says that it goes on."""
    if sentence and _problems.get(kind) != sentence:
        logger.error("%s", sentence)
    if sentence:
        _problems[kind] = sentence
    else:
        _problems.pop(kind, None)
