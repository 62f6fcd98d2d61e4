"""Try the database again and again where giving up would lose what people have seen."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from django.db import Error as DatabaseProblem

from chatcore.databases.outages import find_outage
from chatcore.threads import STORING

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


async def run_until_stored(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run short `work` of a turn in a thread that nothing else can take, until it is done.

    `work` is one transaction, or changes nothing, and waits for nobody but the database.
    """
    return await keep_trying(lambda: STORING.run(work, *args, **kwargs))


async def keep_trying(attempt: Callable[[], Awaitable[T]]) -> T:
    """Make an attempt; while the database is away, locked or full, make another one.

    There is no last attempt: what a turn holds in memory is in no other place. The end of the
    process cancels the task. Any other error of the database is raised: another attempt would fail
    as well.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await attempt()
        except DatabaseProblem as error:
            if find_outage(error) is None:
                raise
            logger.warning("the database did not answer a turn; it is asked again: %s", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
