"""Each part of the contract is what its file says."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from django.db import connection

from tests.contract import facts

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).parent / "expected"
WRITES = os.environ.get("CHATCORE_CONTRACT") == "write"


def compare(name: str, lines: Iterable[str]) -> None:
    path = EXPECTED / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if WRITES:
        path.write_text(text)
    assert text.splitlines() == path.read_text().splitlines()


@pytest.mark.all_rows
@pytest.mark.parametrize(
    ("name", "list_lines"),
    [
        ("environment", facts.list_environment_variables),
        ("events", facts.list_events),
        ("commands", facts.list_commands),
        ("admin", facts.list_admin_pages),
    ],
)
def test_a_public_list_is_what_its_file_says(
    name: str, list_lines: Callable[[], Iterable[str]]
) -> None:
    compare(name, list_lines())


def test_the_settings_page_tells_of_every_variable() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    names = [line.split()[0] for line in facts.list_environment_variables()]
    assert [name for name in names if name.startswith("CHATCORE_") and name not in page] == []


@pytest.mark.slow
@pytest.mark.django_db
def test_a_stranger_gets_what_the_file_says() -> None:
    compare("strangers", facts.list_answers_to_strangers())


@pytest.mark.django_db
def test_the_database_has_the_columns_of_the_file() -> None:
    compare(f"columns-{connection.vendor}", facts.list_columns())
