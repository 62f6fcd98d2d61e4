"""The names of the code: words of the field, verbs for functions, nouns for data."""

from pathlib import Path

import pytest

from tests.support.names import ROOT, Name, find_dialect, list_names, list_sources


@pytest.mark.parametrize(
    "path", list(list_sources()), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_file_speaks_plainly(path: Path) -> None:
    complaints = [
        f"{name.path}:{name.line} {name.text}: {why}"
        for name in list_names(path)
        if (why := find_dialect(name))
    ]
    assert not complaints


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("told", "data"),
        ("_kept", "data"),
        ("measured", "data"),
        ("beside", "data"),
        ("whole", "function"),
        ("of", "function"),
        ("read", "function"),
        ("keeper", "module"),
        ("stretch_size", "data"),
    ],
)
def test_the_dialect_is_refused(text: str, kind: str) -> None:
    assert find_dialect(Name(text, kind, "somewhere.py", 1))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("build_request", "function"),
        ("cancel", "function"),
        ("protected_tail", "data"),
        ("payload", "data"),
        ("pinned", "data"),
        ("FileRejected", "class"),
        ("lifecycle", "module"),
    ],
)
def test_words_of_the_field_are_not(text: str, kind: str) -> None:
    assert find_dialect(Name(text, kind, "somewhere.py", 1)) is None
