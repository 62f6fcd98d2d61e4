"""Texts of made-up words that occur as words do: few of them often, most of them seldom."""

import itertools
import random

TEXTS = 5_000
WORDS = 20_000
SHORTEST, LONGEST = 4, 40  # words of a text
SEED = 14
COMMON_RANK, SELDOM_RANK = 40, 2_500  # of the words that a question is made of

_BEGINNINGS = ["b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v"]
_MIDDLES = ["a", "e", "i", "o", "u", "ai", "au", "ei", "ou"]
_ENDS = ["b", "d", "k", "l", "m", "n", "p", "r", "t", "x"]


def build_words() -> list[str]:
    """Return WORDS different words, the most frequent first."""
    syllables = ["".join(parts) for parts in itertools.product(_BEGINNINGS, _MIDDLES, _ENDS)]
    words = ["".join(pair) for pair in itertools.product(syllables, repeat=2)]
    return random.Random(SEED).sample(words, WORDS)


def build_texts() -> list[str]:
    """Return TEXTS texts; how often a word occurs follows its rank (Zipf)."""
    chance = random.Random(SEED)
    words = build_words()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    return [
        " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(SHORTEST, LONGEST)))
        for _ in range(TEXTS)
    ]


def build_question() -> str:
    """Return a question of a common word and two seldom ones."""
    words = build_words()
    return " ".join((words[COMMON_RANK], words[SELDOM_RANK], words[2 * SELDOM_RANK]))


def build_phrase() -> str:
    """Return two words that stand side by side in a text, in quotation marks."""
    return '"{} {}"'.format(*build_texts()[TEXTS // 2].split()[:2])
