"""The core stands alone: standard library and stems, no Django, no clock, no log, no I/O."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORES = ("compaction.core", "compaction.memory.core")
OURS = (
    *CORES,
    "compaction.summaries.templates",
    "compaction.systems.kit",
    "compaction.systems.neurolink.budget_check",
    *(
        f"compaction.systems.neurolink.{name}"
        for name in ("dedupe_file_reads", "settings", "slide_window", "sliding")
    ),
    "compaction.systems.lota.settings",
    *(f"compaction.systems.wolffish.{name}" for name in ("excerpt", "settings", "strip_images")),
    *(
        f"compaction.systems.{name}.preset"
        for name in ("neurolink", "lota", "wolffish", "baseagent")
    ),
    "textkit.calendar",
    "textkit.code_blocks",
    "textkit.credentials",
    "textkit.durations",
    "textkit.relative_days",
    "textkit.sentences",
    "textkit.stems",
    "textkit.stop_words",
    "textkit.token_features",
    "textkit.tool_pairs",
)
FOLDERS = (*CORES, "compaction.systems.kit")
FILES = sorted(
    path
    for name in OURS
    for path in ROOT.glob(f"{name.replace('.', '/')}{'/**/*' * (name in FOLDERS)}.py")
)
# None of these reads a clock, a file, a socket, the environment or random numbers. To add another
# one is a decision.
ALLOWED = {
    "bisect",
    "calendar",
    "collections",
    "dataclasses",
    "datetime",  # its dates only: see below
    "decimal",
    "enum",
    "fractions",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "snowballstemmer",  # tables and functions in Python; what a user takes back is found by stems
    "string",
    "typing",
    "unicodedata",
    "zlib",
}
IMPURE_NAMES = {
    "open",
    "print",
    "input",
    "exec",
    "eval",
    "__import__",
    "globals",
    "setattr",
    "delattr",
}

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
sys.modules.update(dict.fromkeys(["django", "chatcore", "models_registry"]))
from compaction.core import pipeline, trimming, presets, budget, estimate, invariants
from compaction.core.summary import SummaryOutcome
from compaction.core.transcript import TranscriptEntry, Transcript
policy = presets.PRESETS["oneclaw"]
talk = Transcript(
    entries=tuple(TranscriptEntry(seq=n, role="user", content="x" * 800) for n in range(1, 41))
)
measurement = estimate.measure(talk, policy)
limits = budget.plan(policy, 8192)
outcome = pipeline.run(
    talk, policy, limits, measurement, lambda task: SummaryOutcome(text="Brief.")
)
assert outcome.is_applied and not invariants.find_violations(talk, outcome), outcome
impure_modules = {"logging", "socket", "asyncio", "sqlite3"} & set(sys.modules)
assert not impure_modules, impure_modules
print(outcome.boundary_seq)
"""


def list_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            place = node.module if not node.level else f"relative import in {path.name}"
            yield from (f"{place}.{alias.name}" for alias in node.names)


def test_there_is_a_core() -> None:
    assert len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_imports_only_itself_and_a_few_pure_modules(path: Path) -> None:
    assert [
        name
        for name in list_imports(path)
        if not name.startswith(OURS) and name.split(".")[0] not in ALLOWED
    ] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_of_datetime_it_takes_nothing_that_reads_a_clock(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    taken_names = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "datetime"
        for alias in node.names
    }
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert taken_names <= {"date", "timedelta"}
    assert "datetime" not in modules
    assert not attributes & {"today", "now"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_names_nothing_that_reads_or_writes_the_world(path: Path) -> None:
    loaded_names = (
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    names = {node.id for node in loaded_names}
    assert names & IMPURE_NAMES == set()


def test_it_runs_without_django_and_without_site_packages() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", PROGRAM, str(ROOT)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "31", "")
