"""What a page names in backticks is there: paths, code, settings, commands, options and tables.

Names of other products stand in backticks too. So a name that is no path and no command has only
to occur in the sources, unless it says where it belongs: `module.name`, `Class.name`, `name()`.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import get_commands, load_command_class

from chatcore.events.types import EventType
from compaction.core.presets import ONECLAW
from tests.contract.facts import ROOT

PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "measure").rglob("*.md"),
        *(ROOT / "compaction/systems").rglob("*.md"),
    ]
)
FOLDERS: tuple[str, ...] = ("bin", "chatcore", "compaction", "deploy", "measure")
FOLDERS += ("models_registry", "templates", "tests", "textkit", "tools")
SOURCES = (".py", ".js", ".mjs", ".html", ".css", ".json", ".toml", ".yaml", ".yml", ".txt", "")

# Names of other programs, which nothing of ours has; a page about those only has many more.
FOREIGN = {
    "use_responses_api create_agent use_previous_response_id track_previous_responses"  # clients
    " from_provider OpenAILike FunctionAgent ContextWindowExceededError OPENAI_API_BASE_URL"
    " extra-openai-models.yaml messages.thread() text.format bin/compliance-test.ts",
    "api.json MyActivity.html",  # files of models.dev and of Google
    "InconsistentMigrationHistory remove_stale_contenttypes AbstractUser",  # of Django
    "TimeoutStopSec pg_trgm",  # of systemd and PostgreSQL
    # Values that the reader of a recipe puts in.
    "IMAGE_MODEL SPEECH_MODEL TOOLS_FOLDER TOOLS_URL",
}
FOREIGN_NAMES = frozenset(name for line in FOREIGN for name in line.split())
PAGES_OF_OTHERS = ("docs/seeds.md", "docs/origins.md")

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FILE = re.compile(r"(?:\./)?[\w.*-]+(?:/[\w.*-]+)*\.(?:py|md|js|css|html|toml|yaml)")
FOLDER = re.compile(r"(?:\./)?[\w.-]+(?:/[\w.-]+)*/?")
CALL = re.compile(r"((?:\w+\.)*)(\w+)\([^()]*\)")
DOTTED = re.compile(r"((?:\w+\.)+)(\w+)")
WORD = re.compile(r"[a-z]\w*_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+|(?:[A-Z][a-z0-9]+){2,}")
VARIABLE = re.compile(r"CHATCORE_[A-Z0-9_]+")
SETTING = re.compile(r'(CHATCORE|COMPACTION)\["(\w+)"\]')
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
COMMAND = re.compile(r"(?:\./)?(chatcore|bin/\w+|python -m (?:measure|chatcore|tests)[\w.]*)( .*)?")


def list_spans(text: str) -> Iterator[str]:
    """Yield what stands in backticks, and each line of a shell's block."""
    for language, block in FENCE.findall(text):
        if language in ("sh", "console", "bash"):
            yield from (line.strip() for line in block.splitlines())
    yield from SPAN.findall(FENCE.sub("", text))


def list_sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            is_ours = not {"migrations", "vendor", "built", "__pycache__"} & set(path.parts)
            if is_ours and path.is_file() and path.suffix in SOURCES:
                yield path
    yield from (ROOT / "pyproject.toml", ROOT / "docs" / "openapi.json")


@functools.cache
def read_words() -> frozenset[str]:
    """Return every word of the sources."""
    words: set[str] = set()
    for path in list_sources():
        if path != Path(__file__).resolve():
            words.update(re.findall(r"\w+", path.read_text(errors="ignore")))
    return frozenset(words)


@functools.cache
def read_paths() -> frozenset[str]:
    """Return each path of the tree, from its root and from each of its folders."""
    paths: set[str] = set()
    for top in ROOT.iterdir():
        if top.name.startswith(".") and top.name != ".github":
            continue
        for path in [top, *(top.rglob("*") if top.is_dir() else ())]:
            parts = path.relative_to(ROOT).parts
            paths.update("/".join(parts[start:]) for start in range(len(parts)))
    return frozenset(paths)


@functools.cache
def find_modules() -> dict[str, set[Path]]:
    """Return the modules that a name may mean: of a module, a package, or a class in it."""
    modules: dict[str, set[Path]] = defaultdict(set)
    for path in list_sources():
        if path.suffix == ".py":
            modules[path.parent.name].add(path)
            modules[path.stem].add(path)
            for name in CLASS.findall(path.read_text()):
                modules[name].add(path)
    return modules


@functools.cache
def read_names(owner: str) -> set[str]:
    """Return what the modules, packages and classes of this name define, and the classes' bases."""
    names: set[str] = set()
    for path in find_modules().get(owner, ()):
        if path.parent.name == owner:
            names.add(path.stem)
        tree = ast.parse(path.read_text())
        if owner == (path.parent.name if path.stem == "__init__" else path.stem):
            names |= set(list_definitions(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == owner:
                names |= set(list_definitions(node))
                names |= {f"({ast.unparse(base).rpartition('.')[2]}" for base in node.bases}
    return names


def list_definitions(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


def defines(owner: str, name: str) -> bool:
    """Return True if a module or class of ours of this name, or a base of it, defines `name`."""
    models = {model.__name__: model for model in apps.get_models()}
    if owner in models:
        return hasattr(models[owner], name)
    defined = read_names(owner)
    bases = [each[1:] for each in defined if each.startswith("(")]
    return name in defined or any(
        defines(base, name) or not read_names(base) for base in bases if base != owner
    )


@functools.cache
def read_options() -> dict[str, set[str]]:
    """Return the options of each command."""
    options = {}
    for name, package in get_commands().items():
        if package.split(".")[0] in ("chatcore", "compaction", "models_registry"):
            parser = load_command_class(package, name).create_parser("chatcore", name)
            options[name] = set(parser._option_string_actions)
    return options


def find_faults(span: str, *, is_of_others: bool) -> Iterator[str]:
    """Yield what the span names and is nowhere."""
    yield from (name for name in VARIABLE.findall(span) if not is_variable(name))
    for name, key in SETTING.findall(span):
        if key not in getattr(settings, name):
            yield f'{name}["{key}"]'
    if command := COMMAND.fullmatch(span):
        yield from find_command_faults(*command.groups(default=""))
    elif is_path_of_ours(span):
        if not is_path(span):
            yield span
    elif not is_of_others and not span.startswith("CHATCORE_") and not is_code(span):
        yield span


def is_path_of_ours(span: str) -> bool:
    """Return True for what can only be a path of the tree; a part in capitals is the reader's."""
    if re.search(r"/[A-Z]+(/|$)", span):
        return False
    is_below = "/" in span and span.removeprefix("./").split("/")[0] in FOLDERS
    return bool(FILE.fullmatch(span) or (FOLDER.fullmatch(span) and (is_below or span[-1] == "/")))


def is_variable(name: str) -> bool:
    """Return True for a variable that the sources name, or read as "{PREFIX}_NAME"."""
    prefix, _, rest = name.rpartition("_")
    is_prefixed = prefix in read_words() and {rest, f"_{rest}"} & read_words()
    return name.endswith("_") or name in read_words() or bool(is_prefixed)


def is_module(name: str) -> bool:
    path = name.replace(".", "/")
    return is_path(path) or is_path(f"{path}.py")


def is_path(name: str) -> bool:
    name = name.removeprefix("./").rstrip("/")
    if "*" in name:
        return any(Path(path).match(name) for path in read_paths())
    return name in read_paths()


def find_command_faults(program: str, rest: str) -> Iterator[str]:
    words = rest.partition("#")[0].split()
    if program.startswith("bin/"):
        if not is_path(program):
            yield program
        return
    if program.startswith("python"):
        if not is_module(program.split()[-1]):
            yield program
        return
    name = words[0].replace("-", "_") if words else ""
    if not re.fullmatch(r"[a-z_]+", name):
        return
    if name not in get_commands():
        yield f"chatcore {words[0]}"
        return
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest.partition("#")[0]):
        if name in read_options() and option not in read_options()[name]:
            yield f"chatcore {name} {option}"


def is_code(span: str) -> bool:
    """Return False for a name that nothing of ours has; an owner that is not ours is not asked."""
    if WORD.fullmatch(span):
        return span in read_words()  # a name of code, a setting or a table
    match = CALL.fullmatch(span) or DOTTED.fullmatch(span)
    if not match or is_module(span):
        return True
    owners, name = match[1].rstrip("."), match[2]
    package, owner = owners.partition(".")[0], owners.rpartition(".")[2]
    if not owner or owner in FOLDERS:
        return name in read_words()
    if read_names(owner):
        return defines(owner, name) or is_other_name(owner, name)
    return package not in FOLDERS and (span[-1] != ")" or name in read_words())


def is_other_name(owner: str, name: str) -> bool:
    """Return True for a knob and its section, and for the name of an event."""
    return name in ONECLAW.to_dict().get(owner, ()) or f"{owner}.{name}" in set(EventType)


def list_faults_of(page: Path) -> Iterator[str]:
    name = str(page.relative_to(ROOT))
    for span in list_spans(page.read_text()):
        for fault in find_faults(span, is_of_others=name in PAGES_OF_OTHERS or "/systems/" in name):
            if fault.partition("(")[0] not in FOREIGN_NAMES and fault not in FOREIGN_NAMES:
                yield f"{name}: {fault}"


def test_what_pages_name_is_there() -> None:
    # One test for all pages: each process that has a page of it reads all sources for seconds.
    faults = [fault for page in PAGES for fault in list_faults_of(page)]
    assert not faults, "\n".join(faults)


@pytest.mark.all_rows
@pytest.mark.parametrize(
    "span",
    [
        "compaction/runs/worker/",
        "runs/no_such.py",
        "leases.lock_turns()",
        "Session.no_such_method()",
        "chatcore.turns.no_such.name",
        "no_such_function()",
        "CHATCORE_NO_SUCH=1",
        'CHATCORE["NO_SUCH"]',
        "chatcore no-such",
        "chatcore web --no-such 2",
        "./bin/no_such",
        "python -m measure.no_such",
        "chatcore_nosuchtable",
    ],
)
def test_a_name_that_is_nowhere_is_found(span: str) -> None:
    assert list(find_faults(span, is_of_others=False)) != []
