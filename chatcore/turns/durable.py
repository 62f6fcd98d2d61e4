"""Try the database again and again where giving up would lose what people have seen."""

import asyncio
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError

from chatcore.databases.outages import find_outage
from chatcore.threads import run_in_thread

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


async def run_until_stored(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread; while the database is away, locked or full, run it again.

    There is no last attempt: what a turn holds in memory is in no other place. The end of the
    process cancels the task. `work` is one transaction, or changes nothing. Any other error of the
    database is raised: another attempt would fail as well.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await run_in_thread(work, *args, **kwargs)
        except (OperationalError, InterfaceError) as error:
            if find_outage(error) is None:
                raise
            logger.warning("the database did not answer a turn; it is asked again: %s", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
