"""What a language tells about rules, preferences, decisions, commitments and values."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from compaction.memory.core.ledger.lines import Kind

START = "<start>"
Cues = Mapping[str, Sequence[str]]

_PART = re.compile(r"<([a-z ]+)>")


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """A language's table. Words are lower-case; patterns see lower-case text without quotations.

    `cues` has, for each kind, patterns by a word that stands in every text they match: only
    sentences with that word are searched, which keeps recognition fast. In a pattern, `<start>`
    at its beginning is the beginning of a sentence or clause, or the place behind a starter.
    """

    code: str
    starters: frozenset[str]  # words before an order: "please", "and"
    cues: Mapping[Kind, Cues]
    requests: str  # how a question asks for something: "could you"
    reports: str  # someone else's words: "he said"
    list_titles: str  # what a list of rules is called: "ground rules:"
    foreign_titles: str  # what stands above the text of someone else: "Anna wrote:"
    abbreviations: frozenset[str]  # without their last full stop
    weekdays: str  # an alternation; relative days too
    units: str  # an alternation of words and signs
    relations: frozenset[str]  # "sister", "boss", whose names follow
    events: frozenset[str]  # "deadline", "meeting", whose weekday is a value
    possessives: str  # an alternation: "my", "our"
    glue_words: frozenset[str]  # within a noun phrase: articles and prepositions
    break_words: frozenset[str]  # no part of a noun phrase: pronouns, verbs, adverbs
    marker_words: frozenset[str]  # say that something is a rule, and not what it is about
    negations: frozenset[str]
    feelings: str  # a negation of no consequence: "I don't know", "not bad"
    topics: Mapping[str, str]  # what a rule is about by its pattern: language, length, address


def parse_parts(table: str) -> dict[str, str]:
    """Return the parts of patterns in a table, by their names; one may have those above it."""
    parts = {"start": START}
    for name, texts in _parse_rows(table):
        parts[name] = _fill("".join(texts), parts)
    return parts


def parse_cues(table: str, parts: Mapping[str, str]) -> Cues:
    """Return the patterns in a table by the words that they are looked for by.

    In a pattern, `<word>` is each of the words of its row, and any other `<name>` a part. A row
    without patterns has words that say enough by themselves.
    """
    cues: dict[str, list[str]] = defaultdict(list)
    for words, patterns in _parse_rows(table):
        for word in words.split():
            known_parts = {**parts, "word": word}
            cues[word] += [_fill(text, known_parts) for text in patterns or [r"\b<word>\b"]]
    return cues


def _parse_rows(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what stands before the colon of each row, and the patterns behind and below it.

    Patterns below are indented by four. A line that is indented by eight goes on with the one above
    it. `#` begins a comment.
    """
    for row in re.split(r"\n(?! )", re.sub(r"\n {8}", "", table.strip())):
        if not row.startswith("#"):
            names, _, patterns = row.partition(":")
            yield names, [line.strip() for line in patterns.splitlines() if line.strip()]


def _fill(text: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda match: parts[match[1]], text)


@dataclass(frozen=True, kw_only=True, slots=True)
class CuePattern:
    """A pattern, and whether it has to match where a clause begins.

    It is compiled when it is first needed: a thousand of them take a third of a second, which each
    start of a process would wait for.
    """

    source: str
    at_start: bool

    def search(self, words: str, starts: Iterable[int]) -> re.Match[str] | None:
        """Return its first match in the words of a sentence, whose clauses begin at `starts`."""
        pattern = _compile_once(self.source)
        if not self.at_start:
            return pattern.search(words)
        matches = (pattern.match(words, start) for start in starts)
        return next((match for match in matches if match), None)


Patterns = dict[Kind, dict[str, list[CuePattern]]]


def index_cues(languages: Iterable[Language]) -> Patterns:
    """Return the patterns of all languages by kind and the word that has to stand in a sentence."""
    patterns: Patterns = {}
    for language in languages:
        for kind, cues in language.cues.items():
            patterns_by_word = patterns.setdefault(kind, {})
            for word, sources in cues.items():
                patterns_by_word.setdefault(word, []).extend(map(_read_cue, sources))
    return patterns


def _read_cue(source: str) -> CuePattern:
    return CuePattern(source=source.removeprefix(START), at_start=source.startswith(START))


@cache
def _compile_once(source: str) -> re.Pattern[str]:
    return re.compile(source)
