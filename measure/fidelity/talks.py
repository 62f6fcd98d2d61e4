"""Build talks in the shape of public chats: short questions, long answers, lists, code, tools.

The lengths follow the means of LMSYS-Chat-1M, with the long tail that such talks have.
"""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from measure.fidelity.answers import make_word
from measure.fidelity.facts import Fact
from measure.fidelity.wording import Domain, load_filler

CHARS_PER_TOKEN = 4
USER_WORDS = (2.9, 0.9, 400)  # of a log-normal distribution: mu, sigma, and the most words
ASSISTANT_WORDS = (4.7, 0.7, 700)
TOOL_LINES = (2.8, 0.9, 160)
TOOL_SHARE = 0.15  # of the exchanges
LIST_SHARE = 0.3
CODE_SHARE = 0.12
SUBJECT_SHARE = 0.9  # of small talk about something; the others are distractions of other kinds


@dataclass
class Talk:
    """A talk as the import has it, and the facts with the index of the message that says each."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    facts: list[tuple[Fact, int]] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Return the size in tokens of four characters."""
        return sum(map(count_tokens, self.messages))

    def split_messages(self, parts: int) -> list[list[dict[str, Any]]]:
        """Return the messages in so many parts of about the same size, each of whole exchanges."""
        size = self.tokens / parts
        result: list[list[dict[str, Any]]] = [[]]
        total = 0
        for message in self.messages:
            is_full = total >= size * len(result)
            if is_full and message["role"] == "user" and len(result) < parts:
                result.append([])
            result[-1].append(message)
            total += count_tokens(message)
        return result


def count_tokens(message: dict[str, Any]) -> int:
    """Return the tokens of a message, four characters each."""
    return (
        len(message["content"]) + len(json.dumps(message.get("tool_calls", "")))
    ) // CHARS_PER_TOKEN


class TalkWriter:
    """Writes talks about some domains of one language."""

    def __init__(self, domains: Sequence[Domain], rng: random.Random) -> None:
        self.domains = domains
        self.rng = rng
        self.domain = domains[0]
        self.filler = load_filler(self.domain.language)
        self.calls = 0

    def write_talk(
        self,
        tokens: int,
        facts: Iterable[Fact] = (),
        *,
        place: tuple[float, float] = (0.0, 1.0),
        assistant_share: float = 0.0,
    ) -> Talk:
        """Return a talk of about so many tokens.

        The facts are said in the part of it that `place` names, a share of them by the assistant.
        """
        talk = Talk()
        size = 0
        while size < tokens:
            if self.rng.random() < 0.1:
                self.domain = self.rng.choice(self.domains)
            exchange = self._write_exchange()
            talk.messages += exchange
            size += sum(map(count_tokens, exchange))
        for fact in facts:
            role = "assistant" if self.rng.random() < assistant_share else "user"
            self._plant_fact(talk, fact, place, role)
        return talk

    def write_sentences(self, words: int, source: list[str]) -> list[str]:
        """Return sentences that say nothing, of at least so many words."""
        sentences: list[str] = []
        while sum(len(sentence.split()) for sentence in sentences) < words:
            sentences.append(self._fill_blanks(self.rng.choice(source)))
        return sentences

    def _write_exchange(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": self._write_question()}]
        if self.rng.random() < TOOL_SHARE:
            messages += self._write_tool_round()
        messages.append({"role": "assistant", "content": self._write_answer()})
        return messages

    def _write_question(self) -> str:
        return " ".join(self.write_sentences(self._draw(USER_WORDS), self.filler.user))

    def _write_answer(self) -> str:
        words = self._draw(ASSISTANT_WORDS)
        blocks: list[str] = []
        while words > 0:
            sentences = self.write_sentences(min(words, 60), self.filler.assistant)
            blocks.append(" ".join(sentences))
            words -= 60
            chance = self.rng.random()
            if chance < LIST_SHARE:
                blocks.append(self._write_list())
            elif chance < LIST_SHARE + CODE_SHARE:
                blocks.append(self._write_code())
        return "\n\n".join(blocks)

    def _write_list(self) -> str:
        items = [self._fill_blanks(self.rng.choice(self.filler.item)) for _ in range(4)]
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))

    def _write_code(self) -> str:
        words = [make_word(self.rng) for _ in range(4)]
        number = self.rng.randint(2, 900)
        return (
            f"```python\ndef {words[0]}({words[1]}, limit={number}):\n"
            f"    {words[2]} = [{words[3]} for {words[3]} in {words[1]}]\n"
            f"    return {words[2]}[:limit]\n```"
        )

    def _write_tool_round(self) -> list[dict[str, Any]]:
        self.calls += 1
        call_id = f"call_{self.calls}"
        arguments = {"query": self._fill_blanks("{n}"), "page": self.rng.randint(1, 9)}
        call = {"id": call_id, "name": "look_up", "arguments": arguments}
        lines = [
            f"{self.rng.randint(1_000, 99_999)}\t{make_word(self.rng)}\t{self._fill_blanks('{n}')}"
            f"\t{self.rng.random() * 900:.2f}"
            for _ in range(self._draw(TOOL_LINES))
        ]
        return [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": call_id,
                "tool_name": "look_up",
                "content": "\n".join(lines),
            },
        ]

    def _plant_fact(self, talk: Talk, fact: Fact, place: tuple[float, float], role: str) -> None:
        first, last = (int(share * (len(talk.messages) - 1)) for share in place)
        indexes = [
            index
            for index in range(first, last + 1)
            if talk.messages[index]["role"] == role and talk.messages[index]["content"]
        ]
        index = self.rng.choice(indexes)
        message = talk.messages[index]
        if role == "user":
            sentences = self.write_sentences(1, self.filler.user)
            message["content"] = " ".join([message["content"], fact.sentence, *sentences])
        else:
            message["content"] += f"\n\n{fact.sentence}"
        talk.facts.append((fact, index))

    def _fill_blanks(self, text: str) -> str:
        while "{" in text:
            text = text.replace("{n}", self.rng.choice(self.domain.nouns), 1)
            text = text.replace("{x}", self._choose_subject(), 1)
            text = text.replace("{k}", str(self.rng.randint(2, 60)), 1)
        return text

    def _choose_subject(self) -> str:
        """Return a subject that facts may be about, or something else that is talked about."""
        if self.rng.random() < SUBJECT_SHARE:
            return self.rng.choice(self.domain.subjects).name
        noun = self.rng.choice(self.domain.nouns)
        return f"the {noun}" if self.domain.language == "en" else noun

    def _draw(self, distribution: tuple[float, float, int]) -> int:
        mu, sigma, most = distribution
        return max(1, min(most, int(self.rng.lognormvariate(mu, sigma))))
