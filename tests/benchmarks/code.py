"""Measure the code itself: sizes, density, docstrings, comments and names."""

import ast
import io
import statistics
import tokenize
from collections.abc import Iterable

from tests.support.names import ROOT, begins_with_participle, list_names, list_sources

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def measure_code() -> list[tuple[str, str]]:
    """Return the lines of the table: what is measured, and its value."""
    sources = list(list_sources())
    texts = [path.read_text() for path in sources]
    trees = [ast.parse(text) for text in texts]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    lines = [line for text in texts for line in text.splitlines()]
    code_lines = [line for line in lines if line.strip()]
    dense = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.IfExp
    dense_count = sum(isinstance(node, dense) for tree in trees for node in ast.walk(tree))
    names = [name for path in sources for name in list_names(path)]
    function_names = [name for name in names if name.kind == "function" and name.text[:2] != "__"]
    file_lengths = [len(text.splitlines()) for text in texts]
    function_lengths = [(node.end_lineno or 0) - node.lineno + 1 for node in functions]
    functions_in_file = [sum(isinstance(n, FUNCTIONS) for n in ast.walk(tree)) for tree in trees]
    comments = sum(map(_count_comments, texts))
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "vendor" not in path.parts]
    test_lines = sum(len(path.read_text().splitlines()) for path in tests)
    return [
        ("source files / lines", f"{len(sources)} / {len(lines):,}"),
        ("lines a file, median / p90 / max", _spread(file_lengths)),
        ("files over 400 lines", str(sum(length > 400 for length in file_lengths))),
        ("functions / a file, median / p90", f"{len(functions)} / {_spread(functions_in_file)}"),
        ("lines a function, median / p90 / max", _spread(function_lengths)),
        ("test lines a source line", f"{test_lines / len(lines):.2f}"),
        ("functions with a docstring", _share(bool(ast.get_docstring(f)) for f in functions)),
        ("classes with a docstring", _share(bool(ast.get_docstring(c)) for c in classes)),
        ("comments per 100 code lines", f"{100 * comments / len(code_lines):.1f}"),
        ("columns of a line, median / p90 / max", _spread([len(line) for line in code_lines])),
        ("lines over 100 columns", _share(len(line) > 100 for line in code_lines)),
        (
            "comprehensions and conditional expressions per 100 lines",
            f"{100 * dense_count / len(code_lines):.1f}",
        ),
        ("function names of one word", _share(len(name.words) == 1 for name in function_names)),
        ("names that begin with a participle", _share(map(begins_with_participle, names))),
    ]


def count_modules() -> list[tuple[str, int]]:
    """Return how many modules each folder of the product holds, without its subfolders."""
    counts: dict[str, int] = {}
    for path in list_sources():
        folder = path.parent.relative_to(ROOT).as_posix()
        counts[folder] = counts.get(folder, 0) + (path.name != "__init__.py")
    return sorted(counts.items())


def _count_comments(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def _spread(values: list[int]) -> str:
    sorted_values = sorted(values)
    p90 = sorted_values[int(0.9 * (len(sorted_values) - 1))]
    return f"{statistics.median(sorted_values):g} / {p90} / {sorted_values[-1]}"


def _share(facts: Iterable[bool]) -> str:
    values = list(facts)
    return f"{100 * sum(values) / len(values):.1f} %"


def main() -> None:
    """Print the measures and the number of modules of each folder."""
    for what, value in measure_code():
        print(f"{what:60} {value}")
    print()
    for folder, count in count_modules():
        print(f"{folder:60} {count}")


if __name__ == "__main__":
    main()
