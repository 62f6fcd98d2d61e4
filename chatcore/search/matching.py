"""Rate how well a text answers a question: BM25 over its best passage."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from chatcore.search.question import WORD, Kind, Term
from textkit.stems import fold_case, list_stems, stem_german

PASSAGE_CHARS = 800
WHOLE_CHARS = 2_000  # up to this length a text is rated as one passage
MAX_PLACES = 2_000  # of terms in one text
MAX_KNOWN_WORDS = 50_000  # whose matches are remembered
# What a question asks for, such as a date, counts within so many characters of its words.
ANSWER_CHARS = 100
MAX_ANSWER_PLACES = 50
# The constants of BM25, and the length in characters of a usual passage.
BM25_K1 = 1.2
BM25_B = 0.6
USUAL_CHARS = 300
# A word's forms share its first characters, so only words with the same are reduced to stems.
SHARED_CHARS = 3
# How much a match counts, by its kind.
SAME_WORD = 1.0
SAME_STEM = 0.95
PART_OF_WORD = 0.75


@dataclass(frozen=True, kw_only=True)
class Match:
    """How a text matches: the rating of each term that it has, and how much of it, from 0 to 1.

    Terms are named by their index. `answer_rating` is the weight of those beside which stands what
    the question asks for, such as a date.
    """

    ratings: Mapping[int, float]
    strengths: Mapping[int, float]
    answer_rating: float = 0.0

    @property
    def rating(self) -> float:
        """How well the text matches all terms together."""
        return sum(self.ratings.values())


NO_MATCH = Match(ratings={}, strengths={})


class Matcher:
    """Matches texts with the terms of one question, each with a weight.

    The words with the indexes `parts` match inside other words, too.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        weights: Sequence[float],
        parts: Collection[int] = (),
        answer: re.Pattern[str] | None = None,
    ) -> None:
        self._weights = weights
        self._answer = answer
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._parts: list[tuple[str, int]] = []
        self._strings: list[tuple[str, int]] = []
        for index, term in enumerate(terms):
            if term.kind is Kind.WORD:
                self._words.setdefault(term.text, index)
                for stem in term.stems:
                    self._stems.setdefault(stem, index)
                if index in parts:
                    self._parts.append((stem_german(term.text), index))
            else:
                self._strings.append((term.text, index))
        self._beginnings = {word[:SHARED_CHARS] for word in self._words}
        self._matches_by_word: dict[str, tuple[int, float] | None] = {}

    def match_text(self, text: str) -> Match:
        """Return how well the best passage of a text matches."""
        folded_text = fold_case(text)
        places = self._find_places(folded_text)
        if not places:
            return NO_MATCH
        answer_rating = self._rate_answers(folded_text, places)
        if len(folded_text) > WHOLE_CHARS:
            return replace(self._rate_best_passage(places)[0], answer_rating=answer_rating)
        counts: dict[int, list[float]] = {}
        for _position, index, strength in places:
            _add_count(counts, index, strength)
        match = self._rate(counts, len(folded_text))
        return replace(match, answer_rating=answer_rating)

    def find_start(self, text: str) -> int:
        """Return the first character of the best passage of a text, counted in its folded form."""
        if len(text) <= PASSAGE_CHARS:
            return 0
        return self._rate_best_passage(self._find_places(fold_case(text)))[1]

    def find_marks(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each place that matches, in the characters of the text itself."""
        for word in WORD.finditer(text):
            if self._match_word(fold_case(word[0])):
                yield word.span()
        for string, _index in self._strings:
            for place in re.finditer(re.escape(string), text, re.IGNORECASE):
                yield place.span()

    def _match_word(self, word: str) -> tuple[int, float] | None:
        """Return the index of the term that a folded word stands for, and how much it counts."""
        try:
            return self._matches_by_word[word]
        except KeyError:
            if len(self._matches_by_word) >= MAX_KNOWN_WORDS:
                self._matches_by_word.clear()
            match = self._matches_by_word[word] = self._compare_word(word)
            return match

    def _compare_word(self, word: str) -> tuple[int, float] | None:
        index = self._words.get(word)
        if index is not None:
            return index, SAME_WORD
        if word[:SHARED_CHARS] in self._beginnings:
            for stem in list_stems(word):
                if stem in self._stems:
                    return self._stems[stem], SAME_STEM
        for part, part_index in self._parts:
            if part in word:
                return part_index, PART_OF_WORD
        return None

    def _find_places(self, folded_text: str) -> list[tuple[int, int, float]]:
        """Return position, term and strength of each match in a folded text, in its order.

        Only words that may match are looked at: to list all words of a text takes ten times longer.
        """
        places: dict[tuple[int, int], tuple[int, int, float]] = {}
        for start in self._find_word_starts(folded_text):
            word = WORD.match(folded_text, start)
            match = self._match_word(word[0]) if word else None
            if match:
                places[start, match[0]] = (start, *match)
        for string, index in self._strings:
            for start in islice(_find_all(folded_text, string), MAX_PLACES):
                places[start, index] = (start, index, SAME_WORD)
        return sorted(places.values())

    def _find_word_starts(self, folded_text: str) -> Iterator[int]:
        """Yield where words begin that may be a form of a term, or hold one."""
        for beginning in self._beginnings:
            starts = (
                start
                for start in _find_all(folded_text, beginning)
                if not start or not folded_text[start - 1].isalnum()
            )
            yield from islice(starts, MAX_PLACES)
        for part, _index in self._parts:
            for place in islice(_find_all(folded_text, part), MAX_PLACES):
                start = place
                while start and folded_text[start - 1].isalnum():
                    start -= 1
                yield start

    def _rate_answers(self, folded_text: str, places: Sequence[tuple[int, int, float]]) -> float:
        """Return the weight of the terms beside which stands what the question asks for."""
        if self._answer is None:
            return 0.0
        strengths: dict[int, float] = {}
        for position, index, strength in places[:MAX_ANSWER_PLACES]:
            start = max(0, position - ANSWER_CHARS)
            if strength > strengths.get(index, 0.0) and self._answer.search(
                folded_text, start, position + ANSWER_CHARS
            ):
                strengths[index] = strength
        return sum(self._weights[index] * strength for index, strength in strengths.items())

    def _rate_best_passage(self, places: Sequence[tuple[int, int, float]]) -> tuple[Match, int]:
        """Return the match of the best passage, and where it begins."""
        best, best_start = NO_MATCH, 0
        counts: dict[int, list[float]] = {}
        first = 0
        for position, index, strength in places:
            _add_count(counts, index, strength)
            while position - places[first][0] > PASSAGE_CHARS:
                _remove_count(counts, places[first][1])
                first += 1
            match = self._rate(counts, PASSAGE_CHARS)
            if match.rating > best.rating:
                best, best_start = match, places[first][0]
        return best, best_start

    def _rate(self, counts: Mapping[int, Sequence[float]], chars: int) -> Match:
        norm = BM25_K1 * (1 - BM25_B + BM25_B * chars / USUAL_CHARS)
        ratings = {
            index: self._weights[index] * strength * count * (BM25_K1 + 1) / (count + norm)
            for index, (strength, count) in counts.items()
        }
        strengths = {index: strength for index, (strength, _count) in counts.items()}
        return Match(ratings=ratings, strengths=strengths)


def merge_values(values: dict[int, float], others: Mapping[int, float], factor: float) -> None:
    """Raise the values of terms to others' by a factor, where those are higher."""
    for index, other in others.items():
        if other * factor > values.get(index, 0.0):
            values[index] = other * factor


def _find_all(text: str, part: str) -> Iterator[int]:
    """Yield where a part stands in a text; the places do not overlap."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + len(part))


def _add_count(counts: dict[int, list[float]], index: int, strength: float) -> None:
    entry = counts.setdefault(index, [0.0, 0.0])
    entry[0] = max(entry[0], strength)
    entry[1] += 1


def _remove_count(counts: dict[int, list[float]], index: int) -> None:
    counts[index][1] -= 1
    if not counts[index][1]:
        del counts[index]
