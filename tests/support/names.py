"""The names of the source code, and the words that are not allowed in them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("chatcore", "models_registry", "compaction")

# Past participles and other words that do not say what a thing is. As a whole name they are
# refused; beside a noun they may be what the field says (`protected_tail`, `cached_tokens`).
BARE_WORDS = frozenset(
    """
    added among apart asked beside brought chosen counted done drawn dropped fitted found
    gained given gone grown held joined kept known laid listed lost made measured meant moved
    named nowhere offered own paired placed planned put read refused reached said sent shown
    signed so_far spent spoken standing stored stood stretch taken told touched tried used
    wanted waited went whole wished wishes worked written
    """.split()  # noqa: SIM905
)
# Words that were names of modules, classes and functions here and are in no glossary.
PRIVATE_WORDS = frozenset(
    """
    stretch hands keeper situation readings nowhere endings asking
    """.split()  # noqa: SIM905
)
# Functions whose one word is no verb, or a verb that does not say what it does.
BARE_FUNCTIONS = BARE_WORDS | frozenset(
    ["among", "block", "current", "of", "place", "reading", "state"]
)
# Participles that the outside knows: statuses, columns, fields of REST and kinds of context edits.
PUBLIC_WORDS = frozenset(
    """
    announced applied archived cancelled compacted completed created deduplicated delivered dropped
    excerpted failed hidden imported interrupted pinned pruned queued recalled registered
    skipped superseded
    """.split()  # noqa: SIM905
)
_NO_PARTICIPLE = frozenset(
    """
    embed feed need seed shed speed
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Name:
    """A name that the code gives to something."""

    text: str
    kind: str  # module, class, function or data
    path: str
    line: int

    @property
    def words(self) -> list[str]:
        return self.text.strip("_").split("_")


def list_sources() -> Iterator[Path]:
    """List the product's Python files, without migrations."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def list_names(path: Path) -> Iterator[Name]:
    """List every module, class, function, parameter, variable and attribute that a file names."""
    place = path.relative_to(ROOT).as_posix()
    if path.stem != "__init__":
        yield Name(path.stem, "module", place, 1)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            yield Name(node.name, "class", place, node.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "data" if _is_property(node) else "function"
            yield Name(node.name, kind, place, node.lineno)
        elif isinstance(node, ast.arg):
            yield Name(node.arg, "data", place, node.lineno)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Name(node.id, "data", place, node.lineno)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Name(node.attr, "data", place, node.lineno)


def find_dialect(name: Name) -> str | None:
    """Return why a name is refused, or None for a plain one. Classes may tell a fact."""
    text = name.text.strip("_").lower()
    if any(word.lower() in PRIVATE_WORDS for word in name.words):
        return "a word of our own: take one of docs/house.md"
    if name.kind == "function" and text in BARE_FUNCTIONS:
        return "no verb that says what the function does"
    if name.kind != "class" and text not in PUBLIC_WORDS and _is_participle(text):
        return "a participle without its noun"
    return None


def begins_with_participle(name: Name) -> bool:
    """Return whether the first of a name's words is a past participle."""
    return _is_participle(name.words[0].lower())


def _is_participle(text: str) -> bool:
    if text in BARE_WORDS:
        return True
    return bool(re.fullmatch(r"[a-z]{3,}ed", text)) and text not in _NO_PARTICIPLE


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return bool(decorators & {"property", "cached_property", "functools.cached_property"})
