"""The wheel: it holds all that the packages hold, and serves where there is no checkout."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from chatcore.contrib.local_model.server import find_free_port
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("chatcore", "compaction", "models_registry", "textkit")
PAGES = "templates"  # in the wheel a folder of chatcore
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
NO_SOURCES = shutil.ignore_patterns("__pycache__", "*.pyc", ".DS_Store")
LINK = re.compile(r"http://127\.0\.0\.1:\d+(/login/once/[^/\s]+/)")
STATIC_FILE = re.compile(r'(?:href|src)="(/static/[^"#?]+)')


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from an archive of the sources, as a package index keeps it.

    It is made in a copy, because building leaves files beside the sources.
    """
    copy = tmp_path_factory.mktemp("sources")
    for name in (*PACKAGES, PAGES):
        shutil.copytree(ROOT / name, copy / name, ignore=NO_SOURCES)
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    build = "from setuptools import build_meta; build_meta.build_sdist('.')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    (archive,) = copy.glob("*.tar.gz")
    run_pip(
        Path(sys.executable),
        *("wheel", str(archive), "--no-deps", "--no-build-isolation", "--wheel-dir", str(copy)),
    )
    (path,) = copy.glob("*.whl")
    return path


def run_pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert result.returncode == 0, result.stderr


def list_sources(folder: Path) -> set[str]:
    paths = {
        path.relative_to(folder).as_posix()
        for name in (*PACKAGES, PAGES)
        for path in (folder / name).rglob("*")
        if path.is_file()
    }
    return {f"chatcore/{path}" if path.startswith(f"{PAGES}/") else path for path in paths}


def test_the_image_is_built_from_what_the_wheel_is_built_from() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert {*PACKAGES, PAGES, *FILES} <= {line[1:] for line in lines if line.startswith("!")}


@pytest.mark.slow
def test_it_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == list_sources(wheel.parent)
    assert {
        "chatcore/templates/chatcore/login.html",
        "chatcore/static/chatcore/js/chat.js",
        "chatcore/web/locale/de/LC_MESSAGES/django.mo",
        "models_registry/catalog.json",
    } <= names


@contextmanager
def serve(program: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Run an installed `chatcore serve`; yield its address and the file of what it prints."""
    port = find_free_port()
    url = f"http://127.0.0.1:{port}"
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CHATCORE_", "DJANGO_", "PYTHON"))
    }
    printed = folder / "output"
    with printed.open("w") as output:
        process = subprocess.Popen(
            [program, "serve", "--no-local-model", "--port", str(port), "--workers", "1"],
            cwd=folder,
            env={**ours, "CHATCORE_DATA_DIR": str(folder / "var")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        has_ended = lambda: process.poll() is not None  # noqa: E731
        wait_until(lambda: LINK.search(printed.read_text()) or has_ended(), seconds=180)
        assert not has_ended(), printed.read_text()
        wait_until(lambda: is_live(url), seconds=60)
        yield url, printed
    finally:
        process.terminate()
        process.wait(60)


def is_live(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/livez", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


@pytest.mark.slow
def test_installed_in_an_environment_of_its_own_it_serves_its_pages(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    run_pip(programs / "python", "install", "--requirement", str(ROOT / "requirements.lock"))
    run_pip(programs / "python", "install", "--no-deps", str(wheel))
    with (
        serve(programs / "chatcore", tmp_path) as (url, printed),
        httpx2.Client(base_url=url, timeout=60) as browser,
    ):
        login = browser.get("/login/")
        assert login.status_code == 200
        german = browser.get("/login/", headers={"Accept-Language": "de"}).text
        assert '<html lang="de"' in german
        assert "Passwort" in german
        match = LINK.search(printed.read_text())
        assert match
        by_hand = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
        chat = browser.get(match.group(1), headers=by_hand, follow_redirects=True)
        assert chat.status_code == 200
        files = set(STATIC_FILE.findall(login.text + chat.text))
        assert len(files) > 5
        statuses = {path: browser.get(path).status_code for path in files}
        assert set(statuses.values()) == {200}, statuses
        for page in ("/settings/", "/admin/", "/api/docs/", "/api/v1/sessions", "/api/v1/models"):
            assert browser.get(page).status_code == 200, page
        assert "Chatcore" in browser.get("/admin/").text
        assert "claude" in browser.get("/admin/models_registry/aimodel/").text
    assert "Traceback" not in printed.read_text()
