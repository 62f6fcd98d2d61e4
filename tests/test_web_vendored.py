"""The libraries that the pages bring along are the ones that were reviewed."""

import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).parent.parent / "chatcore/static/chatcore/vendor"
LISTED = json.loads((VENDOR / "VENDORED.json").read_text())


def test_every_file_is_what_its_line_says() -> None:
    for line in LISTED:
        assert hashlib.sha256((VENDOR / line["file"]).read_bytes()).hexdigest() == line["sha256"], line["file"]


def test_every_line_has_name_version_and_license() -> None:
    assert all(line["name"] and line["version"] and line["license"] for line in LISTED)


def test_nothing_is_there_that_no_line_names() -> None:
    assert {path.name for path in VENDOR.iterdir()} == {line["file"] for line in LISTED} | {"VENDORED.json"}


def test_the_sanitizer_is_not_older_than_its_last_known_hole() -> None:
    version = next(line["version"] for line in LISTED if line["name"] == "dompurify")
    assert tuple(map(int, version.split("."))) >= (3, 4, 18)
