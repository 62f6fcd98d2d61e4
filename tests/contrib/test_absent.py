"""Chatcore without its optional apps: without all of them, and without each of them once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chatcore.extension import OPTIONAL_APPS

WALK = Path(__file__).with_name("core_alone.py")


def walk_without(names: str) -> None:
    """Run the tests of core_alone.py in a process in which these apps are absent."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(WALK)],
        env={**os.environ, "CHATCORE_WITHOUT": names},
        cwd=WALK.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout[-6000:]


@pytest.mark.slow
@pytest.mark.program
def test_the_core_is_whole_without_all_of_them() -> None:
    walk_without("all")


@pytest.mark.slow
@pytest.mark.parametrize("app", OPTIONAL_APPS, ids=lambda app: app.name)
def test_it_is_whole_without_one_of_them(app: object) -> None:
    walk_without(app.name)  # type: ignore[attr-defined]
