"""Facts to plant in a talk, the questions for them, and whether a text still holds them."""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from measure.fidelity.answers import make_answer
from measure.fidelity.wording import Domain, Subject

NEAR_CHARS = 240  # a value counts only where a word of its subject stands so near
MIN_SUBJECT_CHARS = 3
STEM_CHARS = 5

_CORE = re.compile(r"\[\[(.*?)\]\]")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that somebody says once.

    `kind` is that of the wording, or `rule` or `negation`. `answer` is what a text must hold: an
    exact value, a few words, or the core of a rule.
    """

    kind: str
    language: str
    sentence: str
    answer: str
    subject: Subject | None = None
    questions: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Return True for what is to be kept letter for letter: values and negations."""
        return self.kind not in ("word", "rule")


def make_facts(
    domains: Iterable[Domain], rng: random.Random, *, kinds: str = "values"
) -> Iterator[Fact]:
    """Yield facts of the domains in random order, each subject and kind at most once.

    `kinds` is `values`, `words`, `negations`, `rules`, or several of them with a blank between.
    """
    makers = {
        "values": _make_values,
        "words": _make_words,
        "negations": _make_negations,
        "rules": _make_rules,
    }
    facts = [
        fact for kind in kinds.split() for domain in domains for fact in makers[kind](domain, rng)
    ]
    rng.shuffle(facts)
    yield from facts


def holds_fact(text: str, fact: Fact) -> bool:
    """Return whether a text has the fact's answer, word for word, beside what it belongs to."""
    return TextIndex(text).holds_fact(fact)


class TextIndex:
    """A text in which many facts are looked for."""

    def __init__(self, text: str) -> None:
        self.text = normalize_text(text)

    def holds_fact(self, fact: Fact) -> bool:
        answer = normalize_text(fact.answer)
        start = self.text.find(answer)
        while start >= 0:
            if self._is_whole(start, len(answer)) and self._is_beside_subject(start, fact):
                return True
            start = self.text.find(answer, start + 1)
        return False

    def share_held(self, facts: Iterable[Fact]) -> float:
        """Return the share of facts that the text holds, from 0 to 1."""
        results = [self.holds_fact(fact) for fact in facts]
        return sum(results) / len(results)

    def _is_whole(self, start: int, length: int) -> bool:
        around = self.text[start - 1 : start] + self.text[start + length : start + length + 1]
        return not any(char.isalnum() for char in around)

    def _is_beside_subject(self, start: int, fact: Fact) -> bool:
        if fact.subject is None:
            return True
        window = self.text[max(0, start - NEAR_CHARS) : start + len(fact.answer) + NEAR_CHARS]
        return any(stem in window for stem in _list_stems(fact.subject))


def normalize_text(text: str) -> str:
    """Return a text in lower case with single blanks."""
    return _SPACES.sub(" ", text).lower()


def _list_stems(subject: Subject) -> list[str]:
    words = re.findall(r"\w+", normalize_text(f"{subject.name} {subject.other_name}"))
    return [word[:STEM_CHARS] for word in words if len(word) > MIN_SUBJECT_CHARS]


def _make_values(domain: Domain, rng: random.Random) -> Iterator[Fact]:
    return _make_stated(domain, rng, is_word=False)


def _make_words(domain: Domain, rng: random.Random) -> Iterator[Fact]:
    return _make_stated(domain, rng, is_word=True)


def _make_stated(domain: Domain, rng: random.Random, *, is_word: bool) -> Iterator[Fact]:
    for wording in domain.facts:
        if (wording.kind == "word") != is_word:
            continue
        for subject in domain.subjects:
            answer = (
                rng.choice(wording.answers)
                if is_word
                else make_answer(wording.kind, rng, domain.language, wording.units)
            )
            statement = rng.choice(wording.statements)
            name_asked = rng.choice((subject.name, subject.other_name, subject.other_name))
            yield Fact(
                kind=wording.kind,
                language=domain.language,
                sentence=end_sentence(statement.format(x=subject.name, v=answer)),
                answer=answer,
                subject=subject,
                questions=tuple(q.format(x=name_asked) for q in wording.questions),
            )


def _make_negations(domain: Domain, rng: random.Random) -> Iterator[Fact]:
    for text in domain.negations:
        yield _make_core_fact("negation", domain, rng, text)


def _make_rules(domain: Domain, rng: random.Random) -> Iterator[Fact]:
    for text in domain.rules:
        yield _make_core_fact("rule", domain, rng, text)


def _make_core_fact(kind: str, domain: Domain, rng: random.Random, text: str) -> Fact:
    text = text.replace("{x}", rng.choice(domain.subjects).name)
    core = _CORE.search(text)
    assert core, text
    return Fact(
        kind=kind,
        language=domain.language,
        sentence=end_sentence(_CORE.sub(r"\1", text)),
        answer=core[1],
    )


def end_sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a period at its end."""
    return text[0].upper() + text[1:] + "."
