"""Cut a message down to the sentences that bear on a question."""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.utils import timezone

from chatcore.search.matching import Matcher
from chatcore.search.question import read_question
from textkit.stop_words import FEEDBACK_WORDS, STOP_WORDS

# It begins with the marks and not with what precedes them, which is ten times faster.
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++\s++|[。！？]|\n+")


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A part of a message, the sentence in it that matches best, and how well that one does."""

    text: str
    best_sentence: str
    rating: float


class QuestionWords:
    """The words of a question, weighted by how few of the sentences that were found have them.

    `is_empty` is True if it has only such words as stand in every text, as "And what about that?",
    or speak of an answer and not of a subject, as "Shorter, please".
    """

    def __init__(self, question: str, texts: Sequence[str]) -> None:
        terms = read_question(question, timezone.now()).terms
        self.is_empty = all(term.text in STOP_WORDS | FEEDBACK_WORDS for term in terms)
        self._matcher = Matcher(terms, [1.0] * len(terms))
        self._terms_by_sentence: dict[str, Collection[int]] = {}
        sentences = [sentence for text in texts for sentence in split_sentences(text)]
        counts = Counter(index for sentence in sentences for index in self._find_terms(sentence))
        self._weights = {
            index: math.log(1 + len(sentences) / count) for index, count in counts.items()
        }

    def rate(self, sentence: str) -> float:
        """Return the weight of the words of the question that a sentence has; 0 without any."""
        return sum(self._weights.get(index, 0.0) for index in self._find_terms(sentence))

    def _find_terms(self, sentence: str) -> Collection[int]:
        if sentence not in self._terms_by_sentence:
            self._terms_by_sentence[sentence] = self._matcher.match_text(sentence).strengths
        return self._terms_by_sentence[sentence]


def split_sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, without the space around them."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    starts = [0, *ends]
    parts = [text[start:end].strip() for start, end in zip(starts, [*ends, None], strict=True)]
    return [part for part in parts if part]


def cut_excerpt(sentences: Sequence[str], words: QuestionWords, max_chars: int) -> Excerpt:
    """Return the best sentence with those after and before it, as many as find room.

    A long sentence may take twice the room, because half of one says little.
    """
    ratings = [words.rate(sentence) for sentence in sentences]
    best = first = last = ratings.index(max(ratings))
    chars = len(sentences[best])
    has_space = True
    while has_space:
        has_space = False
        # What follows explains a word more often than what comes before it.
        if last + 1 < len(sentences) and chars + len(sentences[last + 1]) < max_chars:
            last += 1
            chars += len(sentences[last]) + 1
            has_space = True
        if first > 0 and chars + len(sentences[first - 1]) < max_chars:
            first -= 1
            chars += len(sentences[first]) + 1
            has_space = True
    text = " ".join(sentences[first : last + 1])[: 2 * max_chars]
    return Excerpt(text=text, best_sentence=sentences[best], rating=ratings[best])
