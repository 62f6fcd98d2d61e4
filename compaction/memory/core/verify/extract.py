"""Write a text of the messages' own sentences, for when no model writes a summary."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from compaction.memory.core.ledger.corrections import list_values
from compaction.memory.core.ledger.recognition import recognize_lines
from compaction.memory.core.ledger.removal import TakenBack, describe_correction
from compaction.memory.core.verify.sources import Role, Source
from compaction.memory.core.verify.words import list_stems
from textkit.calendar import describe_day
from textkit.sentences import split_sentences

EXTRACT_HEADING = "Extract of the earlier messages, word for word:"
SENTENCE_CHARS = 400  # longer ones are cut
CODE_CHARS = 2_000  # longer blocks of code are left out
PREVIOUS_SHARE = 2  # an earlier summary may take half of the room
# The text of a file counts as its message's: half of a fence would make the rest part of the file.
_FENCE = re.compile(r"^</?attached_file\b[^\n>]*>\n?", re.MULTILINE)
_KIND_RANKS = {"rule": 6.0, "decision": 5.0, "preference": 5.0, "commitment": 4.0, "value": 4.0}
_FIRST_RANKS: dict[Role, float] = {"user": 3.0, "assistant": 1.0, "tool": 0.0, "summary": 2.0}
_TITLES: dict[Role, str] = {
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
    "summary": "Earlier",
}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence that may stand in an extract."""

    text: str
    role: Role
    seq: int
    position: int
    rank: float
    day: date | None = None

    @property
    def line(self) -> str:
        place = f", message {self.seq}" if self.seq else ""
        place += f", {describe_day(self.day)}" if self.day else ""
        gap = "\n" if "\n" in self.text else " "
        return f"- {_TITLES[self.role]}{place}:{gap}{self.text}"


def write_extract(
    previous: str | None,
    sources: Sequence[Source],
    *,
    max_chars: int,
    taken_back: TakenBack | None = None,
) -> str:
    """Return the sentences of the sources that matter most, in order, and the earlier summary.

    Rules, decisions and exact values come first, then how the user begins a message, then what is
    said in rare words. The text has at most about `max_chars` characters. What the user wants
    forgotten is left out, and what is corrected stands behind its correction.
    """
    taken_back = taken_back or TakenBack()
    parts: list[str] = []
    if previous:
        bare_text = previous.replace(EXTRACT_HEADING, "").strip()
        bare_text = correct_text(taken_back.removal.clean(bare_text), taken_back)
        parts.append(_shorten_previous(bare_text, max_chars // PREVIOUS_SHARE))
    space = max_chars - sum(map(len, parts)) - len(EXTRACT_HEADING) - 2
    candidates = list(_correct_candidates(_list_candidates(sources), taken_back))
    lines = _choose_lines(candidates, space)
    if lines:
        parts.append("\n".join([EXTRACT_HEADING, *lines]))
    return "\n\n".join(parts)


def correct_text(text: str, taken_back: TakenBack) -> str:
    """Return a text in which each corrected statement stands behind its correction."""
    for old, new in taken_back.newer.items():
        if old.text in text and f"(was: “{old.text}”" not in text:
            text = text.replace(old.text, describe_correction(new, old), 1)
    return text


def _correct_candidates(
    candidates: Iterable[_Candidate], taken_back: TakenBack
) -> Iterator[_Candidate]:
    """Yield what may stand in an extract after all that the user took back."""
    newer = {(old.seq, old.text): (new, old) for old, new in taken_back.newer.items()}
    kept = [
        each
        for each in candidates
        if not taken_back.removal.says_forgotten(each.text, seq=each.seq, role=each.role)
    ]
    old_values = {value for old in taken_back.newer for value in list_values(old.text)}
    old_values -= {value for new in taken_back.newer.values() for value in list_values(new.text)}
    for candidate in kept:
        if candidate.role == "user" and (candidate.seq, candidate.text) in newer:
            new, old = newer[candidate.seq, candidate.text]
            text = describe_correction(new, old)
            rank = candidate.rank + _KIND_RANKS["decision"]
            yield replace(candidate, text=text, seq=new.seq, day=None, rank=rank)
        elif candidate.role == "user" or old_values.isdisjoint(list_values(candidate.text)):
            yield candidate


def _shorten_previous(text: str, space: int) -> str:
    if len(text) <= space:
        return text
    lines = _choose_lines(list(_list_candidates([Source("summary", text)])), space)
    return "\n".join(line.removeprefix("- Earlier:").lstrip(" \n") for line in lines)


def _choose_lines(candidates: Sequence[_Candidate], space: int) -> list[str]:
    selection: list[_Candidate] = []
    texts: set[str] = set()
    for candidate in sorted(candidates, key=lambda candidate: -candidate.rank):
        length = len(candidate.line) + 1
        if length > space or candidate.text in texts:
            continue
        space -= length
        texts.add(candidate.text)
        selection.append(candidate)
    return [
        candidate.line for candidate in sorted(selection, key=lambda candidate: candidate.position)
    ]


def _list_candidates(sources: Sequence[Source]) -> Iterator[_Candidate]:
    stem_counts = Counter(stem for source in sources for stem in list_stems(source.text[:2_000]))
    position = 0
    for source in sources:
        role = "user" if source.role == "summary" else source.role
        kinds = {
            line.text: _KIND_RANKS[line.kind]
            for line in recognize_lines(source.text, role=role, seq=source.seq)
        }
        for number, sentence in enumerate(split_sentences(_FENCE.sub("", source.text))):
            text = sentence.text
            if not sentence.is_code:
                text = " ".join(text.split())[:SENTENCE_CHARS]
            elif len(text) > CODE_CHARS:
                continue
            if sentence.is_heading or len(text) < 3:
                continue
            rank = max((kinds[line] for line in kinds if line in text or text in line), default=0.0)
            rank += _FIRST_RANKS[source.role] if number == 0 else 0.0
            rank += _measure_rarity(text, stem_counts)
            # Of two that are equal the newer one is of more use.
            rank += 0.000_001 * position
            yield _Candidate(text, source.role, source.seq, position, rank, source.day)
            position += 1


def _measure_rarity(text: str, stem_counts: Counter[str]) -> float:
    """Return how rare the words of a sentence are, from 0 to 1."""
    stems = list_stems(text)
    if not stems:
        return 0.0
    return sum(1 / max(1, stem_counts[stem]) for stem in stems) / len(stems)
