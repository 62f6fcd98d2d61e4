"""Summarizers whose loss is known: what they keep is decided by a hash, not by a model."""

import hashlib
import json
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


class NamingSummarizer(LossySummarizer):
    """Keeps nothing in its summaries, and names what lasts where it is asked to.

    It names the planted sentences. In a share of its lines it errs, each time in one of three ways:
    a changed word, a sentence of small talk, or the words of somebody else.
    """

    def __init__(self, facts: Iterable[Fact], errors: float, seed: int) -> None:
        super().__init__(facts, 0.0, seed)
        self.errors = errors
        self.named_tokens = 0

    def __call__(self, request: dict[str, Any]) -> Reply:
        """Answer a request with a summary and, where it is asked for, a block of lines."""
        reply = super().__call__(request)
        prompt = read_summary_prompt(request)
        if prompt is None or "```lasting" not in str(request["messages"][-1]["content"]):
            return reply
        block = "\n".join(self._name_lines(prompt[0]))
        self.named_tokens += len(block) // 4
        return Reply(text=f"{reply.text}\n\n```lasting\n{block}\n```")

    def _name_lines(self, source: str) -> Iterable[str]:
        text = normalize_text(source)
        others = [each for line in source.splitlines() for each in _SENTENCE.split(line)]
        others = [each for each in others if 4 < len(each.split()) < 30 and each[-1] in ".?"]
        for fact in self.facts:
            if normalize_text(fact.sentence) not in text:
                continue
            said = fact.sentence
            draw = self._draw(f"error {said}") / self.errors if self.errors else 1.0
            if draw < 1 / 3:
                words = said.split()
                said = " ".join([*words[:2], "certainly", *words[3:]])
            elif draw < 1:
                said = others[int(draw * 997) % len(others)]
            kind = "rule" if fact.kind == "rule" else "fact"
            yield json.dumps({"said": said, "kind": kind, "until": "always"}, ensure_ascii=False)


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
