"""Find the names that a sentence gives: "my sister Ada", "the project is called Bluebird"."""

import re
from collections.abc import Iterator, Set

from compaction.memory.core.ledger.languages import LANGUAGES
from compaction.memory.core.ledger.values import Value
from textkit.calendar import MONTH_NAMES, WEEKDAY_NAMES

_RELATION_WORDS = frozenset().union(*(each.relations for each in LANGUAGES))
_RELATIONS = "|".join(sorted(_RELATION_WORDS, key=len, reverse=True))
_OWN_POSSESSIVES = r"my|our|his|her|their|meine?|unsere?|seine?|ihre?"
_POSSESSIVES = "|".join(each.possessives for each in LANGUAGES)
_WORD = r"[A-ZÄÖÜÉÅØ][\w'’ßé-]{1,30}"
_NAME = rf"(?P<name>{_WORD}(?: (?:(?:von|van|de|der|da|di|bin|al) )?{_WORD}){{0,3}})"
_TITLE = r"(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr|Herrn)\.? "
_GIVEN_WORDS = frozenset(
    """
    named called name name's known namens heißt heißen codenamed codename goes
    """.split()  # noqa: SIM905
)
_LINK_WORDS = frozenset(
    """
    is was are be with ist war sind mit by von to an contact für for at bei from
    """.split()  # noqa: SIM905
)
_TITLE_WORDS = frozenset({"dr", "mr", "mrs", "ms", "prof", "frau", "herr", "herrn"})
_SELF_WORDS = frozenset({"i'm", "am", "bin", "this", "hier"})

# Patterns with the words of which one has to stand in the sentence, so that few are searched.
_PATTERNS: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (
        _RELATION_WORDS,
        re.compile(rf"\b(?i:{_POSSESSIVES}) (?:[\w-]{{2,20}} ){{0,2}}?(?i:{_RELATIONS}),? {_NAME}"),
    ),
    (
        _RELATION_WORDS,
        re.compile(
            rf"\b{_NAME}(?:,| is| ist) (?i:{_OWN_POSSESSIVES}) (?:[\w-]{{2,20}} ){{0,2}}?"
            rf"(?i:{_RELATIONS})\b"
        ),
    ),
    (
        _RELATION_WORDS,
        re.compile(
            rf"\b(?i:{_POSSESSIVES}) (?:[\w-]{{2,20}} ){{0,2}}?(?i:{_RELATIONS})"
            rf"(?: [a-zäöüß][\w-]{{1,20}}){{0,3}}(?: is| was| ist| heißt|:|,) {_NAME}"
        ),
    ),
    (
        _GIVEN_WORDS,
        re.compile(
            rf"\b(?i:named|called|name is|name's|known as|namens|heißt|heißen|codenamed?"
            rf"|code name(?: is)?|name ist|goes by)(?: jetzt| nun| now)? {_NAME}"
        ),
    ),
    (
        _LINK_WORDS,
        re.compile(
            rf"\b(?:is|was|are|be|with|ist|war|sind|mit|by|von|to|an|contact|für|for|at|bei|from)"
            rf" (?P<name>{_WORD}(?: {_WORD}){{1,3}})"
        ),
    ),
    (_TITLE_WORDS, re.compile(rf"\b(?P<name>{_TITLE}{_WORD}(?: {_WORD}){{0,2}})")),
    (_SELF_WORDS, re.compile(rf"\b(?:I'm|I am|[Ii]ch bin|This is|Hier ist) {_NAME}")),
    (
        _LINK_WORDS,
        re.compile(
            rf"\b(?i:the|our|my)(?: [a-z][\w-]{{1,20}}){{1,5}} (?:is|was) {_NAME}"
            r"(?=[.,!;]|$| now| and| but)"
        ),
    ),
)
# A capital within the sentence, or a name that it begins with: "Ada is my sister".
_CAPITAL = re.compile(
    rf"[^.!?] (?!I){_WORD}|^{_WORD}(?: {_WORD})?(?:,| is| ist) (?:{_OWN_POSSESSIVES}) "
)
_NO_NAME = frozenset(
    """
    I I'm I'd I'll I've The A An My Our Your It He She We They This That There Here What Which Who
    When Where Why How Please Thanks English German French Spanish Italian Der Die Das Ein Eine
    Mein Meine Unser Unsere Ich Du Er Sie Es Wir Ihr Bitte Danke Deutsch Englisch OK Okay Yes No
    Ja Nein And But So If Und Aber Wenn In On At To
    """.split()  # noqa: SIM905
) | {name.title() for name in (*MONTH_NAMES, *WEEKDAY_NAMES)}


def find_names(text: str, words: Set[str]) -> Iterator[Value]:
    """Yield the names that a sentence gives to a person, a project or a thing.

    `words` are the words of the sentence in lower case.
    """
    if not _CAPITAL.search(text):
        return
    taken_end = -1
    for cue_words, pattern in _PATTERNS:
        if cue_words.isdisjoint(words):
            continue
        for match in pattern.finditer(text):
            name = match.group("name")
            start = match.start("name")
            if name.split(" ", 1)[0] not in _NO_NAME and start >= taken_end:
                taken_end = start + len(name)
                yield Value(start=start, end=taken_end, text=name, form="name")
