"""docs/embedding.md: a project of Django with users of its own has Chatcore in it and works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests.support.old_databases import create_database

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.program, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n# ((?:people|host)/\w+\.py)\n(.*?)```", re.DOTALL)
TALK = ROOT / "tests" / "support" / "embedded_talk.py"


def run(folder: Path, database: str, *arguments: str) -> str:
    """Return what a process of the project prints."""
    variables = {
        "CHATCORE_DATA_DIR": str(folder),
        "CHATCORE_DATABASE_URL": database,
        "CHATCORE_SECRET_KEY": "that of the host, which is long enough to be one",
        "DJANGO_SETTINGS_MODULE": "host.settings",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
    }
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout


def write_project(folder: Path) -> None:
    """Write the project as the page has it."""
    blocks = BLOCK.findall((ROOT / "docs" / "embedding.md").read_text())
    assert {name for name, _ in blocks} == {"people/models.py", "host/settings.py", "host/urls.py"}
    for name, text in blocks:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.with_name("__init__.py").touch()
        path.write_text(text)


def test_people_with_uuids_talk_search_compact_and_are_erased(
    transactional_db: None, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    write_project(folder)
    with create_database(tmp_path) as name:
        server = connection.settings_dict
        database = (
            f"sqlite:///{name}"
            if connection.vendor == "sqlite"
            else f"postgres://{server['USER']}@{server['HOST']}:{server['PORT'] or 5432}/{name}"
        )
        run(folder, database, "-m", "django", "makemigrations", "people")
        assert "ready" in run(folder, database, "-m", "django", "prepare")
        run(folder, database, "-m", "django", "makemigrations", "--check", "--dry-run")
        assert run(folder, database, str(TALK)).splitlines()[-1] == "Nothing is left of ann."
