"""A small installation: without the packages of the extras all starts, and what lacks says so."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from chatcore.base.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
BLOCK = f"""
import os, sys
for package in {[package for names in EXTRAS.values() for package in names]!r}:
    sys.modules[package] = None
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

assert "chatcore.contrib.mcp_server" not in settings.INSTALLED_APPS
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
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_lacks_is_said_and_the_rest_starts() -> None:
    process = run_blocked(USE)
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.count("pip install 'chatcore[documents]'") == 3
    assert process.stdout.count("pip install 'chatcore[mcp]'") == 1
    said = process.stdout + process.stderr
    assert said.count("The app mcp_server is left out") == 1
    assert said.count("pip install 'chatcore[prices]'") == 1


@pytest.mark.parametrize("name", EXTRAS)
def test_each_extra_stands_in_the_project_and_in_all(name: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert extras[name]
    assert name in extras["all"][0]


def test_the_lock_of_the_start_command_has_all_of_them() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    packages = ("mammoth", "openpyxl", "python-pptx", "pypdf", "pillow-heif", "mcp", "genai-prices")
    for package in packages:
        assert f"\n{package}==" in lock
