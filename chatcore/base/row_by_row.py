"""Treat many rows one by one, so that one which is broken stops none of the others."""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from chatcore.base.databases.outages import DATABASE_LOCKED, find_outage

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_known_failures: set[tuple[str, Hashable]] = set()


def try_each(keys: Iterable[K], treat: Callable[[K], T], *, what: str) -> list[T]:
    """Return what `treat` returns for each key, without those for which it fails.

    A failure is logged once in the life of the process, because chores meet the same row every few
    seconds. Raises what says that the database is away or full: then all others would fail as well.
    """
    results: list[T] = []
    for key in keys:
        failure = (what, key)
        try:
            results.append(treat(key))
        except Exception as error:
            outage = find_outage(error)
            if outage and outage != DATABASE_LOCKED:
                raise
            if failure not in _known_failures:
                _known_failures.add(failure)
                logger.exception("could not %s %s; the others go on", what, key)
        else:
            _known_failures.discard(failure)
    return results
