"""The vendored libraries of the pages are the reviewed ones."""

import hashlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "chatcore/static/chatcore/vendor"
FOLDERS = [VENDOR, ROOT / "tools/prettier"]
ENTRIES = json.loads((VENDOR / "VENDORED.json").read_text())
each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def load_hashes(folder: Path) -> dict[str, str]:
    """Return the hash of each file that VENDORED.json lists."""
    hashes: dict[str, str] = {}
    for entry in json.loads((folder / "VENDORED.json").read_text()):
        hashes |= entry.get("files") or {entry["file"]: entry["sha256"]}
    return hashes


@each_folder
def test_every_file_is_what_its_line_says(folder: Path) -> None:
    for file, expected in load_hashes(folder).items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == expected, file


def test_every_line_has_name_version_and_license() -> None:
    assert all(line["name"] and line["version"] and line["license"] for line in ENTRIES)


@each_folder
def test_nothing_is_there_that_no_line_names(folder: Path) -> None:
    paths = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert paths == load_hashes(folder).keys() | {"VENDORED.json"}


def test_the_sanitizer_is_not_older_than_its_last_known_hole() -> None:
    version = next(line["version"] for line in ENTRIES if line["name"] == "dompurify")
    assert tuple(map(int, version.split("."))) >= (3, 4, 18)
