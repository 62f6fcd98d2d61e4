"""A small installation: without the packages of the extras all starts, and what lacks says so."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chatcore.base.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
MAX_PACKAGES = 60
MAX_BYTES = 120_000_000


def read_project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def find_small_installation() -> dict[str, Distribution]:
    """Return what `pip install chatcore` brings, by the names of the packages."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(line) for line in read_project()["dependencies"]]
    done: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in done or not is_wanted(requirement, {""}):
            continue
        done.add(str(requirement))
        package = found[canonicalize_name(requirement.name)] = distribution(requirement.name)
        for line in package.requires or []:
            needed = Requirement(line)
            if is_wanted(needed, {"", *requirement.extras}):
                needed.marker = None
                waiting.append(needed)
    return found


def is_wanted(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


SMALL = find_small_installation()
OTHERS = sorted(
    module
    for module, packages in packages_distributions().items()
    if not {canonicalize_name(package) for package in packages} & {*SMALL, "chatcore"}
)
BLOCK = f"""
import os, sys
for package in {OTHERS!r}:
    sys.modules[package] = None
"""
SET_UP = """
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
"""
USE = """
from django.conf import settings
from django.core.management import call_command
from django.urls import get_resolver

call_command("check")
get_resolver().url_patterns
import chatcore.asgi
from chatcore.files import office, pdf, photographs
from chatcore.models import McpServer
from chatcore.providers.base import Image
from chatcore.providers.sent_images import _fit_image
from chatcore.tools.base import ToolError
from chatcore.tools.mcp import connection
from models_registry.prices import look_up_prices

for app in ("contrib.mcp_server", "contrib.metrics", "accounts.openid"):
    assert f"chatcore.{app}" not in settings.INSTALLED_APPS
assert "chatcore.contrib.compat" in settings.INSTALLED_APPS
assert look_up_prices("openai", "gpt-5") == {}
for read in (office.extract_text, pdf.extract_text, photographs.make_fit):
    try:
        read(b"PK")
    except Exception as error:
        print(error)
try:
    connection.list_tools(McpServer(name="files", url="https://example.org"))
except ToolError as error:
    print(error)
image = Image(media_type="image/tiff", data=b"x")
assert _fit_image(image, 100, frozenset({"image/png"})) is image
"""


def run_blocked(code: str) -> "subprocess.CompletedProcess[str]":
    return run(SET_UP + code, {})


def run_command(
    arguments: list[str], folder: Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run `chatcore` as its console script does."""
    code = f"sys.argv = {['chatcore', *arguments]!r}\nfrom chatcore.__main__ import main\nmain()"
    return run(code, {"CHATCORE_DATA_DIR": str(folder)} | variables)


def run(code: str, variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        cwd=ROOT,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "chatcore.settings"}
        | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_small() -> None:
    assert len(SMALL) < MAX_PACKAGES, sorted(SMALL)
    files = [
        package.locate_file(file) for package in SMALL.values() for file in package.files or ()
    ]
    paths = [Path(str(file)) for file in files if Path(str(file)).suffix != ".pyc"]
    assert sum(path.stat().st_size for path in paths if path.exists()) < MAX_BYTES


@pytest.mark.parametrize("name", EXTRAS)
def test_a_package_of_an_extra_comes_with_the_extra(name: str) -> None:
    assert set(EXTRAS[name]) <= set(OTHERS)


def test_what_lacks_is_said_and_the_rest_starts() -> None:
    process = run_blocked(USE)
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.count("pip install 'chatcore[documents]'") == 3
    assert process.stdout.count("pip install 'chatcore[mcp]'") == 1
    said = process.stdout + process.stderr
    assert "left out" not in said
    assert said.count("pip install 'chatcore[prices]'") == 1


@pytest.mark.slow
def test_preparing_says_once_which_apps_are_left_out(tmp_path: Path) -> None:
    process = run_command(["prepare"], tmp_path)
    assert process.returncode == 0, process.stderr[-2000:]
    said = process.stdout + process.stderr
    lines = [line for line in said.splitlines() if "left out" in line]
    assert len(lines) == 1
    assert "mcp_server, metrics, terminal (chatcore[mcp,metrics,terminal])" in lines[0]


@pytest.mark.parametrize(
    ("extra", "variables"),
    [
        ("postgres", {"CHATCORE_DATABASE_URL": "postgres://me:hidden@db.example.org/chat"}),
        ("redis", {"CHATCORE_REDIS_URL": "redis://me:hidden@cache.example.org"}),
        (
            "sign-on",
            {
                "CHATCORE_OIDC_ISSUER": "https://id.example.org",
                "CHATCORE_OIDC_CLIENT_ID": "chat",
                "CHATCORE_OIDC_CLIENT_SECRET": "hidden",
            },
        ),
    ],
)
def test_a_setting_that_needs_an_extra_is_refused_by_its_name(
    extra: str, variables: dict[str, str], tmp_path: Path
) -> None:
    process = run_command(["prepare"], tmp_path, **variables)
    assert process.returncode == 2
    [said] = process.stderr.splitlines()
    assert next(iter(variables)) in said
    assert f"pip install 'chatcore[{extra}]'" in said
    assert "Traceback" not in process.stderr
    assert "hidden" not in process.stderr


@pytest.mark.parametrize("arguments", [["chat"], ["chat", "--url", "http://127.0.0.1:9", "Hello"]])
def test_a_conversation_in_a_terminal_names_its_extra(arguments: list[str], tmp_path: Path) -> None:
    process = run_command(arguments, tmp_path)
    assert process.returncode == 1
    assert process.stderr.count("\n") == 1
    assert "pip install 'chatcore[terminal]'" in process.stderr


SIGN_IN_AND_LOOK = """
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

call_command("migrate", verbosity=0)
user = get_user_model().objects.create_superuser("alice", "", "a password of some length")
client = Client(headers={'host': 'localhost'})
assert client.get("/login/").status_code == 200
client.force_login(user)
documentation = client.get("/api/docs/")
assert (documentation.status_code, documentation["Location"]) == (302, "/api/schema/")
for path in ("/settings/", "/admin/", "/api/schema/", "/account/sign-on/"):
    print(path, client.get(path).status_code)
for path in ("/metrics", "/mcp"):
    print(path, client.get(path).status_code)
"""


@pytest.mark.slow
def test_pages_are_there_and_what_lacks_is_not_found() -> None:
    process = run_blocked(SIGN_IN_AND_LOOK)
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stderr.count("pip install 'chatcore[api-docs]'") == 1
    assert dict(line.split() for line in process.stdout.splitlines()) == {
        "/settings/": "200",
        "/admin/": "200",
        "/api/schema/": "200",
        "/account/sign-on/": "200",
        "/metrics": "404",
        "/mcp": "404",
    }


def read_extras() -> dict[str, list[str]]:
    extras: dict[str, list[str]] = read_project()["optional-dependencies"]
    return extras


@pytest.mark.parametrize("name", EXTRAS)
def test_each_extra_stands_in_the_project_and_in_all(name: str) -> None:
    extras = read_extras()
    assert extras[name]
    assert re.search(rf"[\[,]{name}[\],]", extras["all"][0])


def test_the_lock_of_the_start_command_has_all_of_them() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    extras = read_extras()
    for requirement in [each for name in EXTRAS for each in extras[name]]:
        package = re.split(r"[\[<>=; ]", requirement)[0]
        assert f"\n{package}==" in lock
