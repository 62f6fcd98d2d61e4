"""docs/embedding.md: its programs run as they stand."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chatcore.models import Session
from tests.support.compaction_sessions import fill_session, summarize_or_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

ROOT = Path(__file__).resolve().parents[2]
# Without the files of a project, which begin with their names.
PROGRAMS = re.findall(
    r"```python\n(?!# \w+/)(.*?)```", (ROOT / "docs" / "embedding.md").read_text(), re.DOTALL
)
LINE = "And on the day after that the same thing happened once more. " * 30
WITHOUT_DJANGO = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
sys.modules["django"] = None
"""


def run_program(number: int, *, lines: str = "", **environment: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_DJANGO + PROGRAMS[number]],
        input=lines,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def is_summary(body: dict[str, Any]) -> bool:
    return body["messages"][0]["content"].startswith("Summarize this talk.")


@pytest.mark.slow
def test_the_talk_over_the_sdk_stays_inside_its_window(scripted: ScriptedModel) -> None:
    scripted.default = lambda body: Reply(text="They met." if is_summary(body) else "I see.")
    run_program(
        0,
        lines=f"{LINE}\n" * 40 + "\n",
        OPENAI_API_KEY="a key of tests",
        OPENAI_BASE_URL=scripted.base_url,
    )
    talks = [
        request.json["messages"] for request in scripted.requests if not is_summary(request.json)
    ]
    assert len(talks) == 40
    assert max(len(json.dumps(messages)) for messages in talks) < 8_192 * 4
    assert talks[-1][0]["content"] == "Said before: They met."


def test_the_check_needs_nothing_installed() -> None:
    first, second = run_program(1).splitlines()
    assert re.fullmatch(r"\d{5} of \d{4} tokens", first)
    assert second.startswith("True ")


@pytest.mark.django_db(transaction=True)
def test_the_one_over_sessions_runs(
    session: Session, scripted: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session, messages=14, tokens=520)
    exec(PROGRAMS[2], {"session": session})
    printed_lines = capsys.readouterr().out.splitlines()
    assert printed_lines[0].endswith("of 8192 tokens")
    assert printed_lines[1].startswith("True ('summarize',)")
