"""The walls of the house: who may import whom, and what no file may grow into."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("chatcore", "models_registry", "compaction")
MAX_LINES = 530

# (who, never imports, except in)
WALLS = [
    ("chatcore", ["compaction"], []),
    ("models_registry", ["chatcore", "compaction"], []),
    ("compaction", ["chatcore", "models_registry"], ["compaction/backends/chatcore/"]),
    ("", ["openai", "anthropic"], ["chatcore/providers/"]),
    ("", ["django_q"], ["compaction/worker/"]),
    (
        "",
        ["rest_framework", "drf_spectacular"],
        ["chatcore/rest/", "chatcore/api/", "chatcore/faces/", "compaction/api/"],
    ),
    ("", ["django.db.models.signals"], []),
]


def sources(under: str = "") -> Iterator[Path]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts and path.relative_to(ROOT).as_posix().startswith(
                under
            ):
                yield path


def imported(path: Path) -> Iterator[str]:
    """Every module a file names, in whatever scope."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("who", "never", "unless"), WALLS, ids=lambda value: str(value))
def test_nobody_imports_through_a_wall(who: str, never: list[str], unless: list[str]) -> None:
    through = [
        f"{name} imports {module}"
        for path in sources(f"{who}/" if who else "")
        if not (name := path.relative_to(ROOT).as_posix()).startswith(tuple(unless) or ("\0",))
        for module in imported(path)
        if any(module == wall or module.startswith(f"{wall}.") for wall in never)
    ]
    assert not through


def test_the_core_imports_the_standard_library_only() -> None:
    foreign = {
        f"{path.name}: {module}"
        for path in sources("compaction/core/")
        for module in imported(path)
        if module.split(".")[0] not in sys.stdlib_module_names
        and not module.startswith("compaction.core")
    }
    assert not foreign


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    assert not [
        f"{path.name}: {lines}"
        for path in sources()
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    ]


def test_there_is_no_room_for_odds_and_ends() -> None:
    assert not [
        path for path in sources() if path.stem in {"services", "utils", "helpers", "exceptions"}
    ]


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent
