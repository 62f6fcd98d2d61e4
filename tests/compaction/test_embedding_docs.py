"""docs/embedding.md: its programs run as they stand."""

import os
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
FILES = {"mysite/settings.py": 1, "talks/models.py": 2, "talks/backend.py": 3}
RUN = """
import importlib, sys
sys.path[:0] = [sys.argv[1], {root!r}]
import django
from django.core.management import call_command
django.setup()
call_command("makemigrations", "talks", verbosity=0)
importlib.invalidate_caches()
call_command("migrate", verbosity=0)
call_command("check", databases=["default"])
assert "chatcore" not in sys.modules, "a project of one's own needs none of Chatcore"
exec(sys.stdin.read())
"""


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


def write_project(folder: Path) -> None:
    """Write the document's project, with the files that startproject and startapp make."""
    for name in ("mysite", "talks", "talks/migrations"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    for path, number in FILES.items():
        program = PROGRAMS[number]
        assert program.startswith(f"# {path}\n")
        (folder / path).write_text(program)


def run_project(folder: Path, scripted: ScriptedModel, program: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", RUN.format(root=str(ROOT)), str(folder)],
        input=program,
        env={
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "mysite.settings",
            "SECRET_KEY": "a secret of tests",
            "OPENAI_API_KEY": "a key of tests",
            "OPENAI_BASE_URL": scripted.base_url,
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "compaction" not in process.stderr  # no check has a word to say
    return process.stdout


@pytest.mark.program
def test_it_compacts_goes_back_and_compacts_again(tmp_path: Path, scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat()
    write_project(tmp_path)
    printed = run_project(tmp_path, scripted, PROGRAMS[4] + GO_BACK)
    first, second, *rest = printed.splitlines()
    assert re.fullmatch(r"True \d{4,} -> \d{3,} tokens", first)
    sent = re.fullmatch(r"(\d+) messages are sent, 40 are stored", second)
    assert sent
    assert 1 < int(sent.group(1)) < 40
    assert rest == ["rewound 40", "True 3"]
    assert scripted.requests[0].json["model"] == "gpt-5-mini"


GO_BACK = """
from compaction.models import CompactionRun
from compaction.runs.engine import rewind_run
run = rewind_run(CompactionRun.objects.get())
print(run.status, len(get_backend().build_messages(talk.id)))
print(compact_session(talk.id).compacted, Talk.objects.get().context_version)
"""


@pytest.mark.django_db(transaction=True)
def test_the_one_over_sessions_runs(
    session: Session, scripted: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session, messages=14, tokens=520)
    exec(PROGRAMS[5], {"session": session})
    printed_lines = capsys.readouterr().out.splitlines()
    assert printed_lines[0].endswith("of 8192 tokens")
    assert printed_lines[1].startswith("True ('summarize',)")


ADMIN_SETTINGS = """
INSTALLED_APPS += ["django.contrib.admin", "django.contrib.sessions", "django.contrib.messages"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "mysite.urls"
STATIC_URL = "/static/"
ALLOWED_HOSTS = ["*"]
PROCESSORS = ["template.context_processors.request", "contrib.auth.context_processors.auth"]
PROCESSORS += ["contrib.messages.context_processors.messages"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": [f"django.{name}" for name in PROCESSORS]},
    }
]
"""
ADMIN_URLS = """
from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
"""
OPEN_PAGES = """
from django.contrib.auth.models import User
from django.test import Client
from compaction.models import CompactionRun
from talks.models import Talk

talk = Talk.objects.create()
run = CompactionRun.objects.create(session=talk, status="applied", trigger="manual", policy="lota")
client = Client()
client.force_login(User.objects.create_superuser("root"))
for page in ("", f"{run.pk}/change/", f"sessions/{talk.pk}/"):
    print(client.get(f"/admin/compaction/compactionrun/{page}").status_code)
assert not {"chatcore", "unfold"} & set(sys.modules)
"""


@pytest.mark.program
def test_its_pages_stand_in_the_look_of_an_admin_that_is_djangos_own(
    tmp_path: Path, scripted: ScriptedModel
) -> None:
    write_project(tmp_path)
    with (tmp_path / "mysite/settings.py").open("a") as settings_file:
        settings_file.write(ADMIN_SETTINGS)
    (tmp_path / "mysite/urls.py").write_text(ADMIN_URLS)
    assert run_project(tmp_path, scripted, OPEN_PAGES).split() == ["200"] * 3
