"""Each setting is an environment variable; an empty one means the same as none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract import facts

pytestmark = pytest.mark.program
ROOT = Path(__file__).resolve().parents[2]
PRINT_SETTINGS = """
import chatcore.settings as settings
for name in sorted(vars(settings)):
    if name.isupper():
        print(name, "=", repr(getattr(settings, name)))
"""


def print_settings(folder: Path, **variables: str) -> list[str]:
    """Return the settings of a process that has only these variables of Chatcore's."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    process = subprocess.run(
        [sys.executable, "-c", PRINT_SETTINGS],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    # Parts that are objects have addresses.
    return [line for line in process.stdout.splitlines() if " at 0x" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("nothing", ["", "  "])
def test_an_empty_variable_is_one_that_is_not_set(tmp_path: Path, nothing: str) -> None:
    names = [line.split()[0] for line in facts.list_environment_variables()]
    assert len(names) > 50
    without = print_settings(tmp_path)
    assert len(without) > 50
    assert print_settings(tmp_path, **dict.fromkeys(names, nothing)) == without
