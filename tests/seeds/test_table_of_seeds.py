"""docs/seeds.md names files and tests that exist, for each thing that the documents ask for."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/seeds.md"
SYSTEMS = ("OneClaw", "NeuroLink", "Lota", "Wolffish", "BaseAgent")
NAME = re.compile(r"`([^`]+)`")


def read_rows() -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row."""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| What "):
            yield tuple(cell.strip() for cell in line.strip("|").split(" | "))


@pytest.fixture(scope="module")
def test_names() -> set[str]:
    texts = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return {
        name for text in texts for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.M)
    }


def test_every_row_names_a_file_a_way_and_a_test_that_exist(test_names: set[str]) -> None:
    rows = list(read_rows())
    assert len(rows) > 100
    for row in rows:
        assert len(row) == 4, row
        asked, where, reached, held = row
        assert asked, row
        assert reached, row
        assert [path for path in NAME.findall(where) if (ROOT / path).is_file()], row
        missing = set(NAME.findall(held)) - test_names
        assert not missing, row
        assert NAME.findall(held), row


def test_every_document_has_its_table() -> None:
    headings = re.findall(r"^## (\w+)", PAGE.read_text(), re.M)
    assert tuple(headings) == SYSTEMS
