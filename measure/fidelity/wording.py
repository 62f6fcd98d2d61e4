"""Read the wordings: how people say things in passing, and how they ask for them later.

A file holds one domain in one language. Its lines begin with a mark:

    s: name | other name      a subject, as it is called and as it is asked for
    n: word, word             nouns for small talk
    f: kind [unit|unit]       a kind of fact; the lines below belong to it
    = answer | answer         answers of a fact whose kind is `word`
    + text                    a statement, with {x} for the subject and {v} for the answer
    ? text                    a question for it
    ! text                    a rule, its core between [[ and ]]
    - text                    a fact with a negation, its core between [[ and ]]
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "wordings"
LANGUAGES = ("en", "de")


@dataclass(frozen=True)
class Subject:
    """What a fact is about: its name in the talk, and another one in questions."""

    name: str
    other_name: str


@dataclass
class FactWording:
    """The statements and the questions of one kind of fact."""

    kind: str
    units: tuple[str, ...] = ()
    answers: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)


@dataclass
class Domain:
    """All wordings of one domain in one language."""

    name: str
    language: str
    subjects: list[Subject] = field(default_factory=list)
    nouns: list[str] = field(default_factory=list)
    facts: list[FactWording] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    negations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FillerWording:
    """Sentences that say nothing: of users, of assistants, and items of lists."""

    user: list[str]
    assistant: list[str]
    item: list[str]


@functools.cache
def load_domains(language: str) -> tuple[Domain, ...]:
    """Return the domains of a language, in the order of their names."""
    paths = sorted((FOLDER / language).glob("*.txt"))
    return tuple(_read_domain(path, language) for path in paths if path.stem != "filler")


@functools.cache
def load_filler(language: str) -> FillerWording:
    """Return the small talk of a language."""
    groups: dict[str, list[str]] = {}
    for line in _list_lines(FOLDER / language / "filler.txt"):
        if line in ("user", "assistant", "item"):
            groups[line] = []
        else:
            groups[list(groups)[-1]].append(line)
    return FillerWording(**groups)


def count_wordings() -> tuple[int, int]:
    """Return the number of statements and the number of questions in all files."""
    domains = [domain for language in LANGUAGES for domain in load_domains(language)]
    statements = sum(
        len(domain.rules) + len(domain.negations) + sum(len(f.statements) for f in domain.facts)
        for domain in domains
    )
    return statements, sum(len(f.questions) for domain in domains for f in domain.facts)


def _read_domain(path: Path, language: str) -> Domain:
    domain = Domain(path.stem, language)
    for line in _list_lines(path):
        mark, _, text = line.partition(" ")
        _add_line(domain, mark, text)
    return domain


def _add_line(domain: Domain, mark: str, text: str) -> None:
    if mark == "s:":
        domain.subjects.append(Subject(*text.split(" | ")))
    elif mark == "n:":
        domain.nouns += text.split(", ")
    elif mark == "f:":
        kind, _, units = text.partition(" ")
        domain.facts.append(FactWording(kind, tuple(units.split("|")) if units else ()))
    elif mark == "!":
        domain.rules.append(text)
    elif mark == "-":
        domain.negations.append(text)
    else:
        wording = domain.facts[-1]
        lists = {"=": wording.answers, "+": wording.statements, "?": wording.questions}
        lists[mark].extend(text.split(" | ") if mark == "=" else [text])


def _list_lines(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield line.strip()
