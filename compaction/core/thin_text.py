"""Tell a summary from words that are none: "(no changes)", an apology, headings without contents.

No list of such words is needed, which would be of one language: a summary has a least size beside
what it replaces, speaks of the same things, and loses few names and numbers at once.
"""

import re
import zlib

# A shorter text needs no summary, so anything may be one.
MIN_SOURCE_BYTES = 2_000
MIN_BYTES = 40
# What repeats itself says less than this.
MIN_TOLD_BYTES = 500
# Of what the source says without its repetitions.
LEAST_SHARE = 0.01
MAX_LEAST_BYTES = 1_000
# Of an earlier summary that the new one continues.
KEPT_SHARE = 0.5
MIN_EARLIER_BYTES = 200
# Words that a summary has in common with its source, at least, where the source has many.
COMMON_WORDS = 3
SOURCE_WORDS_FOR_ONE = 10
MIN_FACTS = 4
KEPT_FACTS = 0.2
# A summary in another language than its source has no words in common with it; an apology in
# another language has not, either, but is shorter.
MIN_FOREIGN_BYTES = 400
FOREIGN_SHARE = 0.5  # of its short words, that the source has too
_SAMPLE_CHARS = 200_000

_WORD = re.compile(r"[^\W\d_]{4,}")
_SHORT_WORD = re.compile(r"\b[^\W\d_]{1,3}\b")
# Languages that write no spaces: pairs of their signs.
_PAIRS = re.compile(r"(?=([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}))")
_NUMBER = re.compile(r"\d[\d.,:/-]*\d")
_NAME = re.compile(r"(?<=[^\s.!?:#*>-] )[^\W\d_a-z]\w{2,}")


def find_thinness(
    summary: str, *, previous: str | None, source: str, may_shrink: bool
) -> str | None:
    """Return why a text is no summary of the source and the earlier summary; None if it is one.

    With `may_shrink` the model was told to shorten the earlier summary.
    """
    size = len(summary.encode())
    source_bytes = len(source.encode()) + len((previous or "").encode())
    if source_bytes < MIN_SOURCE_BYTES:
        return None
    told = zlib.compress(f"{previous or ''}{source}"[:_SAMPLE_CHARS].encode())
    least = min(MAX_LEAST_BYTES, LEAST_SHARE * len(told))
    if len(told) >= MIN_TOLD_BYTES:
        least = max(least, MIN_BYTES)
    if size < least:
        return "The summary says next to nothing of what it replaces."
    earlier_size = 0 if may_shrink else len((previous or "").encode())
    if earlier_size >= MIN_EARLIER_BYTES and size < KEPT_SHARE * earlier_size:
        return "The summary is much shorter than the earlier one, which it has to continue."
    if previous and _loses_facts(summary, previous):
        return "The names and numbers of the earlier summary are gone."
    if _speaks_of_other_things(summary, f"{previous or ''}\n{source}"):
        return "The summary does not speak of what it replaces."
    return None


def _loses_facts(summary: str, previous: str) -> bool:
    facts = {*_NUMBER.findall(previous), *_NAME.findall(previous)}
    if len(facts) < MIN_FACTS:
        return False
    text = summary.casefold()
    return sum(fact.casefold() in text for fact in facts) < KEPT_FACTS * len(facts)


def _speaks_of_other_things(summary: str, source: str) -> bool:
    if _is_spaced(summary) != _is_spaced(source):
        return False  # written in another script, so it has no word in common
    source_words = _collect_words(source[:_SAMPLE_CHARS])
    needed = min(COMMON_WORDS, len(source_words) // SOURCE_WORDS_FOR_ONE)
    if not needed:
        return False
    numbers = set(_NUMBER.findall(source)) & set(_NUMBER.findall(summary))
    common_words = _collect_words(summary) & source_words
    if len(common_words) + len(numbers) >= needed:
        return False
    return len(summary.encode()) < MIN_FOREIGN_BYTES or not _is_foreign(summary, source)


def _is_foreign(summary: str, source: str) -> bool:
    """Return whether a summary is written in another language than its source.

    Its articles, pronouns and the like are other ones then.
    """
    known_words = set(_SHORT_WORD.findall(source[:_SAMPLE_CHARS].casefold()))
    words = _SHORT_WORD.findall(summary.casefold())
    return sum(word in known_words for word in words) < FOREIGN_SHARE * len(words)


def _is_spaced(text: str) -> bool:
    """Return whether a text is written with spaces between its words, in most of its letters."""
    sample = text[:_SAMPLE_CHARS]
    return len(_PAIRS.findall(sample)) < sum(map(str.isalpha, sample)) / 2


def _collect_words(text: str) -> set[str]:
    """Return the words of a text, cut where endings begin."""
    text = text.casefold()
    return {word[:5] for word in _WORD.findall(text)} | set(_PAIRS.findall(text))
