"""The walls of the house: who may import whom, and what no file may grow into."""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("chatcore", "models_registry", "compaction")
MAX_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_FOLDER_MODULES = 25  # a folder with more has become a drawer


class Wall(NamedTuple):
    """What one part of the tree never imports, except from some places and except some modules."""

    importer: str  # a folder; "" is the whole tree
    forbidden: list[str]
    exempt_paths: list[str] = []
    allowed_modules: list[str] = []


WALLS = [
    Wall("chatcore", ["compaction"]),
    Wall("models_registry", ["chatcore", "compaction"]),
    Wall(
        "compaction",
        ["chatcore", "models_registry"],
        exempt_paths=["compaction/backends/chatcore/", "compaction/api/"],
    ),
    Wall("compaction/api", ["chatcore", "models_registry"], allowed_modules=["chatcore.rest"]),
    # A leaf: of the conversation it knows only how to clean text, and how a database is away.
    Wall(
        "chatcore/rest",
        ["chatcore", "models_registry"],
        allowed_modules=[
            "chatcore.rest",
            "chatcore.sessions.truncation",
            "chatcore.databases.outages",
        ],
    ),
    Wall("", ["openai", "anthropic"], exempt_paths=["chatcore/providers/"]),
    Wall("", ["mcp"], exempt_paths=["chatcore/tools/mcp/", "chatcore/faces/mcp/"]),
    Wall("", ["django_q"], exempt_paths=["compaction/worker/"]),
    Wall(
        "",
        ["rest_framework", "drf_spectacular"],
        exempt_paths=["chatcore/rest/", "chatcore/api/", "chatcore/faces/", "compaction/api/"],
    ),
    Wall("", ["django.db.models.signals"]),
]


def sources(under: str = "") -> Iterator[Path]:
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts and path.relative_to(ROOT).as_posix().startswith(
                under
            ):
                yield path


@cache
def walk(path: Path) -> list[ast.AST]:
    """Every node of a file: its module first."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imported(path: Path) -> list[str]:
    """Every module a file names, in whatever scope."""
    names: list[str] = []
    for node in walk(path):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return names


def is_within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: f"{wall.importer}: {wall.forbidden}")
def test_nobody_imports_through_a_wall(wall: Wall) -> None:
    violations = []
    for path in sources(f"{wall.importer}/" if wall.importer else ""):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(tuple(wall.exempt_paths)):
            continue
        violations += [
            f"{name} imports {module}"
            for module in imported(path)
            if is_within(module, wall.forbidden) and not is_within(module, wall.allowed_modules)
        ]
    assert not violations


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


def test_no_function_is_longer_than_sixty_lines() -> None:
    assert not [
        f"{path.name}:{node.lineno} {node.name}"
        for path in sources()
        for node in walk(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES
    ]


def test_no_folder_is_a_drawer_of_modules() -> None:
    counts = Counter(path.parent for path in sources() if path.name != "__init__.py")
    assert not [folder.name for folder, count in counts.items() if count > MAX_FOLDER_MODULES]


def test_no_conditional_expression_stands_inside_another() -> None:
    """Ruff has no rule for it, and such a line is read twice."""
    assert not [
        f"{path.name}:{node.lineno}"
        for path in sources()
        for node in walk(path)
        if isinstance(node, ast.IfExp)
        and any(isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse))
    ]


def test_there_is_no_room_for_odds_and_ends() -> None:
    assert not [
        path for path in sources() if path.stem in {"services", "utils", "helpers", "exceptions"}
    ]


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if isinstance(module := walk(path)[0], ast.Module)
        and module.body
        and not ast.get_docstring(module)
    ]
    assert not silent
