"""`chatcore policies`: the policies side by side."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy

pytestmark = pytest.mark.django_db


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("policies", *arguments)
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    document = json.loads(told(capsys, "--json", *arguments))
    return {row["policy"]: row for row in document["policies"]} | {"window": document["window"]}


def test_the_same_model_triggers_at_each_system_s_own_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = {line.split()[0]: line for line in told(capsys).splitlines()}
    expected = {
        "oneclaw": "170,001",
        "neurolink": "108,800",
        "lota": "140,000",
        "wolffish": "150,001",
        "baseagent": "142,801",
    }
    for name, count in expected.items():
        assert count in lines[name].split()
    assert "prune_tool_outputs → dedupe_file_reads → summarize → slide_window" in lines["neurolink"]
    assert "newest 50,000 tokens" in lines["oneclaw"]


def test_another_window_may_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, "--window", "8192")
    assert found["window"] == 8_192
    assert (found["oneclaw"]["threshold_tokens"], found["oneclaw"]["triggers_at"]) == (6_963, 6_964)
    assert found["lota"]["threshold_tokens"] > 0
    assert as_json(capsys, "--window", "8,192") == found


@pytest.mark.parametrize("window", ["0", "-5", "many", ""])
def test_a_window_that_is_none_is_refused(window: str) -> None:
    with pytest.raises(CommandError, match="--window"):
        call_command("policies", f"--window={window}")


def test_stored_policies_stand_beside_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    CompactionPolicy.objects.create(name="early", overrides={"trigger": {"threshold": 0.5}})
    found = as_json(capsys)
    assert found["early"]["threshold_tokens"] == 100_000
    assert list(found)[: len(PRESETS)] == list(PRESETS)


@pytest.mark.slow
@pytest.mark.program
def test_a_terminal_gets_a_table_that_fits_it(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    environment = os.environ | {
        "CHATCORE_DATA_DIR": str(tmp_path),
        "CHATCORE_DATABASE_URL": f"sqlite:///{tmp_path}/none.sqlite3",
        "COLUMNS": "80",
    }
    done = subprocess.Popen(
        [sys.executable, "-m", "chatcore", "policies"], stdout=follower, env=environment
    )
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 65_536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    assert done.wait(timeout=60) == 0
    text = shown.decode()
    assert "170,001" in text
    assert "slide_window" in text


def test_the_reference_is_the_end_of_the_page_of_the_docs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/policies.md"
    assert page.read_text().endswith(told(capsys, "--reference"))
