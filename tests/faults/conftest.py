"""Fixtures for tests that kill, starve or stop what they started."""

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def hide_the_browsers_loop() -> Iterator[None]:
    """Let a test run an event loop where a browser test ran before.

    Playwright's own loop stays marked as the running one of this thread, also between its tests.
    """
    browsers_loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(browsers_loop)
