"""Every regular expression of the house, and how it is applied: found in the sources."""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("chatcore", "compaction", "models_registry", "textkit")
ANCHORED = {"match", "fullmatch"}
APPLIED = ANCHORED | {"search", "sub", "subn", "split", "findall", "finditer"}


@dataclass(frozen=True)
class HousePattern:
    """A pattern with the place where it stands; `is_anchored` if it is only tried at a start."""

    place: str
    pattern: re.Pattern[Any]
    is_anchored: bool


def list_patterns() -> list[HousePattern]:
    """Return the patterns of all modules: those that names hold, and those inside of calls."""
    found: dict[tuple[object, int], HousePattern] = {}
    for path in sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py")):
        if "migrations" in path.parts:
            continue
        for item in _list_patterns_of(path):
            key = (item.pattern.pattern, item.pattern.flags)
            known = found.get(key)
            if known is None or (known.is_anchored and not item.is_anchored):
                found[key] = item
    return list(found.values())


def _list_patterns_of(path: Path) -> Iterator[HousePattern]:
    source = path.read_text()
    if "import re\n" not in source:
        return
    tree = ast.parse(source)
    uses: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses.setdefault(node.value.id, set()).add(node.attr)
    place = str(path.relative_to(ROOT))
    module = importlib.import_module(place.removesuffix(".py").replace("/", "."))
    for name, value in vars(module).items():
        for pattern in _find_in(value):
            methods = uses.get(name, set()) & APPLIED
            is_anchored = bool(methods) and methods <= ANCHORED
            yield HousePattern(f"{place}:{name}", pattern, is_anchored)
    for node in ast.walk(tree):
        inline_pattern = _read_call(node, module) if isinstance(node, ast.Call) else None
        if inline_pattern is not None and isinstance(node, ast.Call):
            is_anchored = getattr(node.func, "attr", "") in ANCHORED
            yield HousePattern(f"{place}:{node.lineno}", inline_pattern, is_anchored)


def _find_in(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 3 and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _find_in(item, depth + 1)
    elif depth < 3 and isinstance(value, dict):
        for item in (*value.keys(), *value.values()):
            yield from _find_in(item, depth + 1)
    elif depth < 3 and type(value).__module__.startswith(PACKAGES) and hasattr(value, "__dict__"):
        for item in vars(value).values():
            yield from _find_in(item, depth + 1)


def _read_call(node: ast.Call, module: Any) -> re.Pattern[Any] | None:
    """Return the pattern of a call such as `re.sub("a+", …)` inside a function."""
    function = node.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return None
    if function.value.id != "re" or function.attr not in APPLIED or not node.args:
        return None
    if isinstance(node.args[0], ast.Name):
        return None  # a pattern that has a name, or one that is made of a text
    try:  # the source is the house's own
        flags = [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
        text = eval(ast.unparse(node.args[0]), vars(module))
        flag = eval(ast.unparse(flags[0]), vars(module)) if flags else 0
        return text if isinstance(text, re.Pattern) else re.compile(text, flag)
    except NameError:
        return None
