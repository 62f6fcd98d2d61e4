"""Who may import whom."""

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from chatcore.extension import OPTIONAL_APPS

ROOT = Path(__file__).resolve().parents[2]
APPS = ("chatcore", "models_registry", "compaction")


class Wall(NamedTuple):
    """What one part of the tree never imports, except from some places and except some modules."""

    importer: str  # a folder; "" is the whole tree
    forbidden: list[str]
    exempt_paths: list[str] = []
    allowed_modules: list[str] = []


WALLS = [
    Wall("chatcore", ["compaction"]),
    Wall("", ["chatcore.contrib"], exempt_paths=["chatcore/contrib/"]),
    Wall("models_registry", ["chatcore", "compaction"]),
    # A leaf: of the conversation it knows only how to clean text, and how a database is away.
    Wall(
        "chatcore/rest",
        ["chatcore", "models_registry"],
        allowed_modules=[
            "chatcore.rest",
            "chatcore.extension",
            "chatcore.sessions.truncation",
            "chatcore.databases.outages",
            "chatcore.slots",
            "chatcore.threads",
        ],
    ),
    Wall("", ["openai", "anthropic"], exempt_paths=["chatcore/providers/"]),
    Wall("", ["mcp"], exempt_paths=["chatcore/tools/mcp/", "chatcore/contrib/mcp_server/"]),
    Wall("", ["django_q"], exempt_paths=["compaction/worker/", "chatcore/admin/queue.py"]),
    Wall(
        "",
        ["rest_framework", "drf_spectacular"],
        exempt_paths=[
            "chatcore/rest/",
            "chatcore/api/",
            "chatcore/faces/",
            "chatcore/contrib/",
            "compaction/api/",
        ],
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
def imported(path: Path) -> list[str]:
    """Every module a file names, in whatever scope."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
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


@pytest.mark.parametrize("name", [app.name for app in OPTIONAL_APPS])
def test_an_app_that_can_be_absent_imports_no_other(name: str) -> None:
    others = [app.path for app in OPTIONAL_APPS if app.name != name]
    assert not [
        f"{path.name}: {module}"
        for path in sources(f"chatcore/contrib/{name}/")
        for module in imported(path)
        if is_within(module, others)
    ]


def test_the_core_imports_the_standard_library_only() -> None:
    foreign = {
        f"{path.name}: {module}"
        for path in sources("compaction/core/")
        for module in imported(path)
        if module.split(".")[0] not in sys.stdlib_module_names
        and not module.startswith("compaction.core")
    }
    assert not foreign
