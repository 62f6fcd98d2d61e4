"""The libraries that the pages bring along are the ones that were reviewed."""

import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "chatcore/static/chatcore/vendor"
LISTED = json.loads((VENDOR / "VENDORED.json").read_text())
HASHES = {
    file: hash
    for line in LISTED
    for file, hash in (line.get("files") or {line["file"]: line["sha256"]}).items()
}


def test_every_file_is_what_its_line_says() -> None:
    for file, expected in HASHES.items():
        assert hashlib.sha256((VENDOR / file).read_bytes()).hexdigest() == expected, file


def test_every_line_has_name_version_and_license() -> None:
    assert all(line["name"] and line["version"] and line["license"] for line in LISTED)


def test_nothing_is_there_that_no_line_names() -> None:
    assert {
        str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()
    } == HASHES.keys() | {"VENDORED.json"}


def test_the_sanitizer_is_not_older_than_its_last_known_hole() -> None:
    version = next(line["version"] for line in LISTED if line["name"] == "dompurify")
    assert tuple(map(int, version.split("."))) >= (3, 4, 18)
