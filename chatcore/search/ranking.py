"""Rank the messages that may answer a question, the best first.

1. The indexes say which messages hold each term (postings.py). The newest ones of each are read, so
   what this takes does not grow with the history.
2. The candidates that hold the most, weighted by rarity, and their neighbours are read and rated
   (matching.py).
3. A message gets a part of its neighbours' ratings: a question is often answered one or two
   messages later. Who spoke and when are boosts, never conditions.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from chatcore.search import postings
from chatcore.search.matching import NO_MATCH, Match, Matcher, merge_values
from chatcore.search.question import WORD, Kind, Question, Term
from chatcore.search.rows import TextRow, load_file_texts, load_neighbours, load_texts
from chatcore.search.scope import Scope
from textkit.stems import fold_case, stem_german
from textkit.stop_words import STOP_WORDS

MAX_CANDIDATES = 120  # messages whose texts are read
MAX_CENTERS = 25  # of them whose neighbours are read too
MAX_FILES = 8  # messages whose files are read
RARE_COUNT = 20  # a word that fewer messages have is also looked for as a part of words
MAX_PART_LOOKUPS = 4
MAX_PAIRS = 3
# The part of a neighbour's rating that is added, by its distance.
NEIGHBOUR_FACTORS = {1: 0.3, 2: 0.15}
# What a neighbour's terms count for the share of a question that is answered.
SHARE_FACTORS = {1: 0.7, 2: 0.5}
ANSWER_FACTOR = 0.8  # what the words beside a date count more where a date is asked for
ROLE_BOOST = 1.1
PERIOD_BOOST = 1.3
LITERAL_BOOST = 1.5  # an identifier, a path or a number that stands as it was asked for


@dataclass(frozen=True, kw_only=True)
class RankedMessage:
    """A message, how well it answers the question, and where.

    `share` is that of the question's terms, weighted by rarity, that the message and its neighbours
    hold, from 0 to 1. `file_text` is the text of its files if they match better than its own.
    """

    row: TextRow
    score: float
    share: float
    match: Match
    file_text: str = ""


@dataclass(kw_only=True)
class _Candidates:
    """The ids that hold each term, and the ids whose files do.

    `is_cut` says of which terms there are more, and `parts` which may stand inside other words.
    """

    ids_by_term: list[list[int]]
    is_cut: list[bool]
    parts: set[int] = field(default_factory=set)
    file_ids: set[int] = field(default_factory=set)


def rank_messages(scope: Scope, question: Question) -> tuple[list[RankedMessage], Matcher]:
    """Return the messages that answer best, and the matcher that finds the places in their texts.

    Messages without any of the words are among them if their neighbours hold several.
    """
    candidates = _find_candidates(scope, question)
    held_ids = set().union(*candidates.ids_by_term)
    message_count = max(scope.count_messages(), len(held_ids))
    weights = _weigh_terms(question.terms, candidates, message_count)
    matcher = Matcher(question.terms, weights, candidates.parts, question.answer)
    first_scores = _score_ids(scope, question, candidates, weights)
    best_ids = heapq.nlargest(MAX_CANDIDATES, first_scores, key=lambda pk: (first_scores[pk], pk))
    rows = load_texts(scope, best_ids)
    centers = [(rows[pk].session_key, rows[pk].seq) for pk in best_ids[:MAX_CENTERS] if pk in rows]
    rows |= load_neighbours(scope, centers, max(NEIGHBOUR_FACTORS))
    file_ids = [pk for pk in best_ids if pk in candidates.file_ids][:MAX_FILES]
    ranked_messages = _rate_rows(rows, load_file_texts(file_ids), matcher, question, weights)
    return sorted(ranked_messages, key=_get_order, reverse=True), matcher


def _get_order(message: RankedMessage) -> tuple[float, object, int]:
    return message.score, message.row.created_at, message.row.seq


def _find_candidates(scope: Scope, question: Question) -> _Candidates:
    terms = question.terms
    ids_by_term = _find_terms(scope, terms)
    cut_count = postings.MAX_OWNER_POSTINGS if scope.session_id is None else postings.MAX_POSTINGS
    candidates = _Candidates(
        ids_by_term=ids_by_term, is_cut=[len(ids) >= cut_count for ids in ids_by_term]
    )
    _add_parts(scope, terms, candidates)
    grams = [index for index, term in enumerate(terms) if term.kind is Kind.GRAM]
    if grams:
        candidates.ids_by_term[grams[0]] = postings.find_grams(
            scope, [terms[index].spelling for index in grams]
        )
    if postings.has_files(scope):
        words_by_term = {
            index: WORD.findall(term.text)
            for index, term in enumerate(terms)
            if term.kind is not Kind.GRAM and WORD.search(term.text)
        }
        file_ids = postings.find_words(scope, list(words_by_term.values()), in_files=True)
        for index, ids in zip(words_by_term, file_ids, strict=True):
            candidates.file_ids.update(ids)
            candidates.ids_by_term[index] += ids
    return candidates


def _find_terms(scope: Scope, terms: Sequence[Term]) -> list[list[int]]:
    """Return the ids of the messages that hold each term."""
    ids_by_term: list[list[int]] = [[] for _ in terms]
    words_by_term: dict[int, list[str]] = {}
    for index, term in enumerate(terms):
        words = WORD.findall(term.text)
        if term.kind is Kind.GRAM:
            continue
        if not words or term.text in STOP_WORDS:  # PostgreSQL's index has no stop words
            ids_by_term[index] = postings.find_text(scope, term.spelling)
        else:
            words_by_term[index] = words
    _look_up(scope, words_by_term, ids_by_term)
    rare_words = {
        index: words
        for index, words in words_by_term.items()
        if len(ids_by_term[index]) < RARE_COUNT and any(stem_german(word) != word for word in words)
    }
    _look_up(scope, rare_words, ids_by_term, has_beginnings=True)
    return ids_by_term


def _look_up(
    scope: Scope,
    words_by_term: Mapping[int, Sequence[str]],
    ids_by_term: list[list[int]],
    *,
    has_beginnings: bool = False,
) -> None:
    word_lists = list(words_by_term.values())
    id_lists = postings.find_words(scope, word_lists, has_beginnings=has_beginnings)
    for index, ids in zip(words_by_term, id_lists, strict=True):
        ids_by_term[index] = ids


def _add_parts(scope: Scope, terms: Sequence[Term], candidates: _Candidates) -> None:
    """Add the messages that have a rare word as a part of words: `sword` in `swordfish`."""
    rare_indexes = [
        index
        for index, term in enumerate(terms)
        if term.kind is Kind.WORD
        and len(term.text) >= postings.PIECE_CHARS
        and len(candidates.ids_by_term[index]) < RARE_COUNT
    ]
    rare_indexes.sort(key=lambda index: len(candidates.ids_by_term[index]))
    for index in rare_indexes[:MAX_PART_LOOKUPS]:
        # `Löhne` is a part of `Lohnlauf`, and `Blutverdünner` has the letters as they are written.
        stems = {stem_german(terms[index].text), stem_german(terms[index].spelling.lower())}
        ids = [pk for stem in stems for pk in postings.find_text(scope, stem)]
        candidates.ids_by_term[index] = list({*candidates.ids_by_term[index], *ids})
        candidates.parts.add(index)


def _weigh_terms(terms: Sequence[Term], candidates: _Candidates, message_count: int) -> list[float]:
    """Return how much each term counts: the rarer, the more."""
    weights = []
    for term, ids in zip(terms, candidates.ids_by_term, strict=True):
        if term.kind is Kind.GRAM:
            weights.append(math.log(2))
            continue
        count = min(len(ids), message_count)
        weight = math.log(1 + (message_count - count + 0.5) / (count + 0.5))
        weights.append(weight * (LITERAL_BOOST if term.kind is Kind.LITERAL else 1))
    return weights


def _score_ids(
    scope: Scope, question: Question, candidates: _Candidates, weights: Sequence[float]
) -> dict[int, float]:
    """Return the sum of the weights of the terms that each candidate holds."""
    scores: dict[int, float] = defaultdict(float)
    for ids, weight in zip(candidates.ids_by_term, weights, strict=True):
        for pk in set(ids):
            scores[pk] += weight
    pairs = list(_list_pairs(question.terms, candidates))
    word_pairs = [[question.terms[index].text for index in pair] for pair in pairs]
    pair_ids = postings.find_words(scope, word_pairs)
    for (first, second), ids in zip(pairs, pair_ids, strict=True):
        for pk in ids:
            scores[pk] = max(scores[pk], weights[first] + weights[second])
    if question.phrases:
        return _require_phrases(scope, question.phrases, scores)
    return scores


def _list_pairs(terms: Sequence[Term], candidates: _Candidates) -> Iterable[tuple[int, int]]:
    """Return pairs of frequent words: only the newest messages of each were read.

    An older message that holds both is found by asking for both.
    """
    cut_indexes = [
        index
        for index, is_cut in enumerate(candidates.is_cut)
        if is_cut and terms[index].kind is Kind.WORD
    ]
    others = [
        index
        for index, term in enumerate(terms)
        if term.kind is Kind.WORD and not candidates.is_cut[index]
    ]
    if not cut_indexes:
        return []
    others.sort(key=lambda index: len(candidates.ids_by_term[index]))
    return list(combinations(others[:2] + cut_indexes, 2))[:MAX_PAIRS]


def _require_phrases(
    scope: Scope, phrases: Sequence[str], scores: Mapping[int, float]
) -> dict[int, float]:
    """Return the scores of the messages that may hold every phrase."""
    id_sets = [
        {*postings.find_text(scope, phrase), *_find_phrase_words(scope, phrase)}
        for phrase in phrases
    ]
    return {pk: scores.get(pk, 0.0) for pk in set.intersection(*id_sets)}


def _find_phrase_words(scope: Scope, phrase: str) -> list[int]:
    """Return messages with tool calls or files that may hold a phrase."""
    words = WORD.findall(fold_case(phrase))
    if not words:
        return []
    id_lists = postings.find_words(scope, [words])
    id_lists += postings.find_words(scope, [words], in_files=True)
    return [pk for ids in id_lists for pk in ids]


def _rate_rows(
    rows: Mapping[int, TextRow],
    file_texts: Mapping[int, str],
    matcher: Matcher,
    question: Question,
    weights: Sequence[float],
) -> list[RankedMessage]:
    matches: dict[tuple[object, int], Match] = {}
    matched_files: dict[int, str] = {}
    for pk, row in rows.items():
        match = matcher.match_text(row.text)
        file_match = matcher.match_text(file_texts[pk]) if pk in file_texts else NO_MATCH
        if file_match.rating > match.rating:
            match, matched_files[pk] = file_match, file_texts[pk]
        matches[row.session_key, row.seq] = match
    phrases = [fold_case(phrase) for phrase in question.phrases]
    ranked_messages = []
    for pk, row in rows.items():
        if phrases and not _holds_phrases(phrases, row.text, file_texts.get(pk, "")):
            continue
        score, share = _score_row(row, matches, weights)
        if score or phrases:
            ranked_messages.append(
                RankedMessage(
                    row=row,
                    score=score * _boost(row, question),
                    share=share,
                    match=matches[row.session_key, row.seq],
                    file_text=matched_files.get(pk, ""),
                )
            )
    return ranked_messages


def _score_row(
    row: TextRow, matches: Mapping[tuple[object, int], Match], weights: Sequence[float]
) -> tuple[float, float]:
    """Return the score of a message and its share, each with the part of its neighbours."""
    match = matches[row.session_key, row.seq]
    ratings, strengths = dict(match.ratings), dict(match.strengths)
    for distance, factor in NEIGHBOUR_FACTORS.items():
        for seq in (row.seq - distance, row.seq + distance):
            neighbour = matches.get((row.session_key, seq), NO_MATCH)
            merge_values(ratings, neighbour.ratings, factor)
            merge_values(strengths, neighbour.strengths, SHARE_FACTORS[distance])
    share = sum(weights[index] * strength for index, strength in strengths.items())
    score = sum(ratings.values()) + ANSWER_FACTOR * match.answer_rating
    return score, min(1.0, share / (sum(weights) or 1.0))


def _boost(row: TextRow, question: Question) -> float:
    boost = ROLE_BOOST if row.role == question.role else 1.0
    if any(period.start <= row.created_at < period.end for period in question.periods):
        boost *= PERIOD_BOOST
    return boost


def _holds_phrases(phrases: Collection[str], *texts: str) -> bool:
    spaced_text = " ".join(" ".join(fold_case(text).split()) for text in texts)
    return all(phrase in spaced_text for phrase in phrases)
