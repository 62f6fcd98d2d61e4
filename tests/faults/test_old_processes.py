"""`chatcore prepare` beside a web process of another version, which is asked to stop or killed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.web_commands import Deployment

pytestmark = [pytest.mark.slow, pytest.mark.lasting]


def test_prepare_waits_for_the_end_of_a_web_process_of_another_version(
    tmp_path: Path, scripted: ScriptedModel
) -> None:
    # With an app less it knows other migrations, as a process of an older version does.
    old = Deployment.create(tmp_path, CHATCORE_WITHOUT="webhooks")
    old.prepare(scripted.base_url)
    new = Deployment.create(tmp_path)
    for signal_name in ("stop", "kill"):
        with old.run_web() as web:
            new.run("migrate", "compaction", "0001_squashed_0029")  # one migration back
            refusal = new.run("prepare", is_checked=False)
            assert refusal.returncode == 1
            assert f":{web.process.pid} (version " in refusal.stderr
            assert "Stop them and try again" in refusal.stderr
            if signal_name == "stop":
                web.ask_to_stop()
            else:
                web.process.kill()
            web.process.wait(PATIENCE_SECONDS)
        assert count_signs(tmp_path) == (0 if signal_name == "stop" else 1)
        assert new.run("prepare").stdout.strip() == "The database is ready."


def count_signs(folder: Path) -> int:
    with closing(open_database(folder)) as database:
        (count,) = database.execute("SELECT count(*) FROM chatcore_servingprocess").fetchone()
        return int(count)


def open_database(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(next(folder.glob("*.sqlite3")))
