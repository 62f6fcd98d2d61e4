"""The names of people, places and things that a summary mentions."""

import re
from collections.abc import Iterator

from compaction.memory.core.verify.words import build_word_set
from textkit.calendar import MONTH_NAMES, WEEKDAY_NAMES

_CAPITAL_WORD = re.compile(r"(?<![\w@#/.\\`'’-])[A-ZÀ-ÖØ-Þ][\w'’&-]*")
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau|Familie)\.?\s+\Z")
# Given names that tell a name where a capital letter does not: at the beginning of a sentence, and
# in German, where every noun has one.
GIVEN_NAMES = build_word_set(
    """
    adam alan albert alex alexander alice amanda amy andrea andreas andrew angela anja anke anna
    anne anton antonia arthur barbara ben benjamin bernd bettina bob brian bruno carl carla
    carlos caroline charles charlotte chris christian christina christine claire clara claudia
    daniel daniela david deborah dennis diana dieter dirk dominik doris dorothea edward elena
    elisabeth elizabeth ella emil emily emma eric erik esther eva fabian felix florian frank
    franziska frieda friedrich gabriele georg george gerd gerhard gisela greta günter hanna
    hannah hannes hans harry heike heinz helen helena helga helmut henry holger ida ines inga
    ingrid irene isabel jack jacob jakob james jan jana jane janet jasmin jason jens jessica
    joachim joanna johan johann johannes john jonas jonathan josef joseph judith julia julian
    jörg jürgen karen karin karl karla katharina kathrin katja kevin klara klaus konrad kurt
    lara laura lea lena leo leon leonie linda lisa lucas lucia luis luise lukas manfred marco
    margaret maria marie marina mario marion mark markus marta martha martin martina mary
    matthew matthias max maya melanie mia michael michelle miguel miriam moritz nadine natalie
    nicole niklas nina nora norbert olga oliver olivia oscar otto patricia patrick paul paula
    peter petra philipp pia rachel rainer ralf ralph raphael rebecca renate richard robert robin
    roland rolf ruth sabine sabrina samuel sandra sara sarah sebastian silke silvia simon simone
    sofia sonja sophia sophie stefan stefanie stephan stephen steven susan susanne sven tanja
    thomas tim timo tina tobias tom torsten udo ulrich ulrike ursula ute uwe valentin vanessa
    vera victoria viktor vincent volker walter werner wilhelm william wolfgang yvonne
    """
)
# Capitalized words that name nothing in particular.
_COMMON = build_word_set(
    """
    i i'm i'll i've i'd user users assistant ai api apis url urls id ids http https json xml html
    css sql csv pdf pr prs ci cd ui ux cli ok todo faq eta kpi eu usa us uk llm am pm tbd na vs
    english german french spanish italian english-language internet web
    """
).union(MONTH_NAMES, WEEKDAY_NAMES)


def find_names(sentence: str, *, is_german: bool) -> Iterator[tuple[str, int, int]]:
    """Yield what looks like a name in a sentence, with its place.

    In German only given names, what follows a title, and two capitalized words of which the first
    is a given name, are taken for names: other capitals are nouns.
    """
    for match in _CAPITAL_WORD.finditer(sentence):
        name = re.sub(r"['’]s?\Z", "", match[0])
        folded_name = name.casefold()
        if len(name) < 2 or folded_name in _COMMON or any(map(str.isdigit, name)):
            continue
        is_given_name = folded_name in GIVEN_NAMES
        is_name = is_given_name or _TITLE.search(sentence[: match.start()]) is not None
        if not is_german:
            is_name = is_name or not _begins_sentence(sentence, match.start())
        if is_name:
            yield name, match.start(), match.start() + len(name)


def _begins_sentence(sentence: str, position: int) -> bool:
    """Return whether a word stands where any word has a capital letter."""
    before = sentence[:position].rstrip(" \"'“„«(*_[")
    return not before or before[-1] in ".!?:;–—|/"
