"""The scripts in bin/: POSIX shell, executable, and clear when the machine lacks something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON_SCRIPTS = ("move_modules",)  # for those who rebuild, not for those who start
SCRIPTS = [
    *(path for path in sorted((ROOT / "bin").iterdir()) if path.name not in PYTHON_SCRIPTS),
    ROOT / ".ci/run",
]
BASHISMS = ("[[", "function ", "local ", "<<<", "&>", "pipefail", "source ", "$'", "echo -e")
script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)


@script
def test_it_is_a_posix_shell_script_that_stops_at_the_first_error(script: Path) -> None:
    text = script.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -eu\n" in text
    assert os.access(script, os.X_OK)
    assert [word for word in BASHISMS if word in text] == []


@script
@pytest.mark.parametrize("shell", ["sh", "dash"])
def test_a_shell_can_read_it(script: Path, shell: str) -> None:
    assert shutil.which(shell)
    subprocess.run([shell, "-n", script], check=True)


def test_setup_says_what_is_missing_when_no_python_suits(tmp_path: Path) -> None:
    tools, checkout = tmp_path / "tools", tmp_path / "a folder"
    tools.mkdir()
    (checkout / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "bin/setup", checkout / "bin/setup")
    for name in ("dirname", "cat", "cksum"):
        (tools / name).symlink_to(str(shutil.which(name)))
    result = subprocess.run(
        ["/bin/sh", checkout / "bin/setup"],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "Chatcore needs Python 3.11 or newer with venv" in result.stderr
    assert not (checkout / ".venv").exists()


def test_a_command_starts_without_pages_and_without_what_compacts() -> None:
    """They take two thirds of a start, and most commands have no use for them."""
    program = (
        "import django, sys; django.setup();"
        "print([name for name in sys.modules if name.startswith(("
        "'chatcore.admin.base', 'chatcore.admin.pages', 'compaction.admin.',"
        "'compaction.runs.execution', 'unfold.admin',"
        "'chatcore.web.urls', 'openai', 'anthropic', 'mcp.', 'uvicorn'))])"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "chatcore.settings"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
