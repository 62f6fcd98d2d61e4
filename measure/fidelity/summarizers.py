"""Summarizers whose loss is known: what they keep is decided by a hash, not by a model."""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from measure.fidelity.facts import Fact, normalize_text
from tests.support.scripted_wire import Reply

FILLER_SHARE = 0.02
MIN_FILLER = 3  # sentences, so that even a summary that loses everything is one
OPENING = "So far, in this conversation: "

_LIMIT = re.compile(r"(\d+) to (\d+) words")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class LossySummarizer:
    """Keeps each planted sentence of its source with probability `keep`, at each call anew.

    It reads the source from the request, keeps to the words that the request allows, and fills
    what is left with sentences of small talk. All else of the chat gets the same short answer.
    """

    def __init__(self, facts: Iterable[Fact], keep: float, seed: int) -> None:
        self.facts = list(facts)
        self.keep = keep
        self.seed = seed
        self.calls = 0

    def __call__(self, request: dict[str, Any]) -> Reply:
        prompt = read_summary_prompt(request)
        if prompt is None:
            return Reply(text="All right.")
        self.calls += 1
        return Reply(text=self.summarize(*prompt))

    def summarize(self, source: str, max_words: int) -> str:
        """Return the summary of a source."""
        text = normalize_text(source)
        places = [(text.find(normalize_text(fact.sentence)), fact) for fact in self.facts]
        present = [fact.sentence for place, fact in sorted(places, key=_get_place) if place >= 0]
        sentences = [each for each in present if self._draw(each) < self.keep]
        sentences += self._choose_filler(source, set(present))
        words = OPENING.split()
        for sentence in sentences:
            if len(words) + len(sentence.split()) <= max_words:
                words += sentence.split()
        return " ".join(words)

    def _choose_filler(self, source: str, present: set[str]) -> list[str]:
        sentences = [each for line in source.splitlines() for each in _SENTENCE.split(line)]
        candidates = [
            each
            for each in sentences
            if 4 < len(each.split()) < 30 and each[-1] == "." and each not in present
        ]
        chosen = [each for each in candidates if self._draw(each) < FILLER_SHARE]
        return chosen if len(chosen) >= MIN_FILLER else candidates[:MIN_FILLER]

    def _draw(self, sentence: str) -> float:
        digest = hashlib.sha256(f"{self.seed}/{self.calls}/{sentence}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64


def read_summary_prompt(request: dict[str, Any]) -> tuple[str, int] | None:
    """Return the source of a summary call and the most words it may have; None for the chat."""
    text = str(request["messages"][-1]["content"])
    if "<transcript>" not in text:
        return None
    source = text.split("<transcript>", 1)[1].split("</transcript>")[0]
    limit = _LIMIT.search(text.rsplit("</transcript>", 1)[-1])
    return source, int(limit[2]) if limit else 500


def _get_place(pair: tuple[int, Fact]) -> int:
    return pair[0]
