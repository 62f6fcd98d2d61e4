"""Rank sentences by rules: decisions, exact values, rare words, what is new and what is spoken of.

The rank of a sentence depends on nothing but the texts, so the same segments compose the same text.
Words come in sets, whose order differs between processes: `fsum` gives the same sum in any order.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from textkit.sentences import split_sentences

PART_CHARS = 400  # a longer sentence is divided between words

RULE_WEIGHT = 1.5
VALUE_WEIGHT = 1.0
NAME_WEIGHT = 0.3
RARITY_WEIGHT = 1.0
RECENCY_WEIGHT = 1.0
TOPIC_WEIGHT = 2.0
MAX_VALUES = 3  # more exact values in a sentence count no further
COST_OFFSET = 40  # characters; so that a very short sentence does not outrank every other

_RULE_WORD = re.compile(
    r"\b(?:never|always|must(?:n't)?|cannot|can't|don't|do not|not|no longer|only|instead"
    r"|require[sd]?"
    r"|decided|decision|agreed|prefers?|wants?|promised|deadline|rejected|chosen|chose|forbidden"
    r"|nie|niemals|immer|muss|müssen|darf|dürfen|nicht|keine?[nmrs]?|statt|entschied(?:en)?"
    r"|beschlossen|vereinbart|bevorzugt|möchte|frist|verboten|abgelehnt|gewählt)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"https?://\S+|(?<![\w./@-])(?=[\w./@-]*\d)[\w.,:/@%€$£-]+|(?:/[\w.-]+){2,}|`[^`\n]{1,80}`"
)
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]+")
_WORD = re.compile(r"[^\W_]+")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class SegmentSentence:
    """A sentence of a segment, word for word, or a part of a very long one.

    `heading` is the line that it stands under. `gap` stands before it: a line break, a space, or
    nothing, as in Chinese. The mark of a list belongs to the sentence that it begins.
    """

    text: str
    heading: str = ""
    gap: str = " "


def split_segment(text: str) -> list[SegmentSentence]:
    """Return the sentences of a segment in order. A heading without sentences is left out.

    Where a sentence ends is what the checks of summaries say, too.
    """
    sentences: list[SegmentSentence] = []
    heading = ""
    end = 0
    for sentence in split_sentences(text):
        gap = text[end : sentence.start]
        end = sentence.end
        if sentence.is_heading:
            heading = sentence.text
            continue
        if sentence.is_code:
            sentences.append(SegmentSentence(sentence.text, heading, "\n"))
            continue
        begins_line = not sentences or "\n" in gap
        mark = gap.rpartition("\n")[2] if begins_line else ""
        is_spaced = text[sentence.start : sentence.end][:1].isspace()
        first_gap = "\n" if begins_line else " " * is_spaced
        sentences += [
            SegmentSentence(part, heading, " " if index else first_gap)
            for index, part in enumerate(_split_long(f"{mark}{sentence.text}"))
        ]
    return sentences


def join_sentences(sentences: Sequence[SegmentSentence]) -> str:
    """Return the text of sentences, each on its line and under its heading.

    An empty line ends what stands under a heading, where no other heading follows.
    """
    parts: list[str] = []
    heading = ""
    for sentence in sentences:
        gap = sentence.gap if parts else ""
        if sentence.heading != heading:
            heading = sentence.heading
            gap = "\n"
            parts.append(f"\n{heading}")
        parts.append(f"{gap}{sentence.text}")
    return "".join(parts).strip("\n")


def _split_long(text: str) -> Iterator[str]:
    while len(text) > PART_CHARS:
        end = text.rfind(" ", PART_CHARS // 2, PART_CHARS)
        end = end if end > 0 else PART_CHARS
        yield text[:end]
        text = text[end:].lstrip()
    if text:
        yield text


def extract_terms(text: str) -> set[str]:
    """Return the words of a text in lower case; pairs of characters where words have no spaces."""
    terms: set[str] = set()
    for word in _WORD.findall(text.lower()):
        if not word.isascii() and _IDEOGRAPH.search(word):
            terms.update(word[index : index + 2] for index in range(max(1, len(word) - 1)))
        elif len(word) > 2 or word.isdigit():
            terms.add(word)
    return terms


class Ranking:
    """How rare each word is among these texts, and what the newest messages speak of."""

    def __init__(self, texts: Iterable[str], newest_text: str = "") -> None:
        text_count = 0
        counts: Counter[str] = Counter()
        for text in texts:
            text_count += 1
            counts.update(extract_terms(text))
        # 1 for a word that one text alone has, and 0 for a word that all have.
        divisor = math.log(text_count) if text_count > 1 else math.inf
        self._rarity = {term: 1 - math.log(count) / divisor for term, count in counts.items()}
        self.newest_terms = extract_terms(newest_text) & counts.keys()
        self._newest_weight = self._weigh_terms(self.newest_terms)

    def score_sentence(self, text: str, *, recency: float) -> float:
        """Return the rank of a sentence; `recency` is from 0 (oldest) to 1."""
        terms = extract_terms(text)
        weight = self._weigh_terms(terms)
        score = RECENCY_WEIGHT * recency
        if weight:
            score += RARITY_WEIGHT * weight / len(terms)
            score += TOPIC_WEIGHT * self._weigh_terms(terms & self.newest_terms) / weight
        score += VALUE_WEIGHT * math.sqrt(min(MAX_VALUES, len(_VALUE.findall(text))))
        score += NAME_WEIGHT * min(MAX_VALUES, len(_NAME.findall(text)))
        return score + RULE_WEIGHT * bool(_RULE_WORD.search(text))

    def measure_touch(self, text: str) -> float:
        """Return how much of what the newest messages say stands in a text; 0 to 1."""
        if not self._newest_weight:
            return 0.0
        return self._weigh_terms(extract_terms(text) & self.newest_terms) / self._newest_weight

    def _weigh_terms(self, terms: Iterable[str]) -> float:
        return math.fsum(self._rarity.get(term, 1.0) for term in terms)


def weigh_by_length(score: float, text: str) -> float:
    """Return the rank for its length, so that many short facts come before one long sentence."""
    return score / math.sqrt(len(text) + COST_OFFSET)


def rank_sentences(texts: Sequence[str], ranking: Ranking, *, recency: float) -> list[float]:
    """Return the rank of each sentence for its length."""
    return [weigh_by_length(ranking.score_sentence(text, recency=recency), text) for text in texts]
