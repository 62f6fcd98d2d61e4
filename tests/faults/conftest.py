"""Fixtures for tests that kill, starve or stop what they started."""

import pytest


@pytest.fixture(autouse=True)
def may_run_loops(hide_the_browsers_loop: None) -> None:
    """Let each test run an event loop of its own."""
