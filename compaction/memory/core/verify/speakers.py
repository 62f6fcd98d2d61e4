"""Who says and does what in a summary: the user, or the assistant."""

import re
from typing import Literal

from compaction.memory.core.verify.words import carries_meaning, split_words, stem_word

Speaker = Literal["user", "assistant"]

_USER = (
    r"(?:the\s+)?(?:user|customer)|(?:der|die)\s+(?:nutzer(?:in)?|benutzer(?:in)?|anwender(?:in)?)"
)
_ASSISTANT = (
    r"(?:the\s+)?(?:assistant|ai|model|chatbot)|"
    r"(?:der|die|das)\s+(?:assistent(?:in)?|ki|modell)"
)
_SUBJECT = re.compile(
    r"\A(?:[\"'(*_]*)"
    r"(?:(?:then|later|first|also|finally|next|zuerst|dann|später|außerdem)(?:\s*+,)?\s++)?"
    rf"(?:(?P<user>{_USER})|(?P<assistant>{_ASSISTANT}))\b(?!['’])",
    re.IGNORECASE,
)
# What only a user demands; an assistant never does.
_DEMAND = re.compile(
    r"\A\W*(?:has\s+|hat\s+)?(?:insist\w*|demand\w*|instruct\w*|forb\w+|order(?:s|ed)|prefers?"
    r"|preferred|verlangt\w*|bevorzugt\w*|verbietet|verbot|fordert\w*)\b",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"\A\W*(?:(?:has|have|had|is|was|were|be|been|also|then|already|will|hat|ist|wird|auch|dann|"
    r"bereits|schon)\s+)+",
    re.IGNORECASE,
)
_GERMAN_PERFECT = re.compile(r"\W*(?:hat|ist|wird)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|i['’](?:ve|m|ll|d)|we|ich|wir)\b[^.!?;\n]*", re.IGNORECASE)
_JOINT = re.compile(r"\A\s*(?:,|and\b|und\b|or\b|oder\b|,)", re.IGNORECASE)
_OTHER: dict[Speaker, Speaker] = {"user": "assistant", "assistant": "user"}
CLEAR_MATCH = 0.5  # of a sentence's words stand in one message of the other speaker


def find_speaker(sentence: str) -> tuple[Speaker, str] | None:
    """Return which speaker is the subject of a sentence, and its predicate; None if none is."""
    match = _SUBJECT.match(sentence)
    if match is None:
        return None
    act = sentence[match.end() :]
    if _JOINT.match(act):
        return None
    return ("user" if match["user"] else "assistant"), act


def get_other_speaker(speaker: Speaker) -> Speaker:
    """Return the other one of the two."""
    return _OTHER[speaker]


def list_verb_stems(act: str) -> set[str]:
    """Return the stem of what an act is: its first word, or in German the last one of the clause.

    It is empty for words of reporting, which say nothing of who else did it.
    """
    bare_act = _AUXILIARY.sub("", act)
    words = split_words(re.split(r"[,;:.!?(]", bare_act)[0])
    if not words:
        return set()
    verb = words[-1] if _GERMAN_PERFECT.match(act) else words[0]
    return {stem_word(verb)} if carries_meaning(verb) else set()


def claims_act(text: str, verb_stems: set[str]) -> bool:
    """Return whether a speaker says that they do this themselves."""
    return any(
        not verb_stems.isdisjoint(map(stem_word, split_words(clause)))
        for clause in _FIRST_PERSON.findall(text)
    )


def is_demand(act: str) -> bool:
    """Return whether an act is a request, which only a user makes."""
    return bool(_DEMAND.match(act))
