"""docs/embedding.md: its programs run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chatcore.models import Session
from tests.support.compaction_sessions import fill_session, summarize_or_chat
from tests.support.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "embedding.md").read_text(), re.DOTALL
)


def test_the_first_needs_no_django_and_nothing_installed() -> None:
    nothing_else = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['django'] = None\n"
    process = subprocess.run(
        [sys.executable, "-S", "-I", "-c", nothing_else + PROGRAMS[0]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.stderr == ""
    assert "compact: True" in process.stdout
    assert "applied ('summarize',)" in process.stdout


@pytest.mark.django_db(transaction=True)
def test_the_second_runs_over_a_session(
    session: Session, scripted: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session, messages=14, tokens=520)
    exec(PROGRAMS[1], {"session": session})
    printed_lines = capsys.readouterr().out.splitlines()
    assert printed_lines[0].endswith("of 8192 tokens")
    assert printed_lines[1].startswith("True ('summarize',)")
