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
# What only a user says of themselves or demands, and what only an assistant does.
_PERSONAL = re.compile(
    r"\A\W*(?:also\s+|then\s+|has\s+|hat\s+|auch\s+)?"
    r"(?:wants?|wanted|prefers?|preferred|likes?|lives?|"
    r"insist\w*|demand\w*|instruct\w*|forb\w+|order(?:s|ed)|works?\s+(?:at|for|as)|is\s+allergic|"
    r"wishes|wished|told\s+the\s+assistant|asked\s+the\s+assistant|requested|owns?|"
    r"möchte|will|wünscht|wollte|verlangt\w*|bevorzugt|wohnt|lebt|verbietet|verbot|bat|bittet|"
    r"fordert\w*|mag|arbeitet)\b",
    re.IGNORECASE,
)
_SERVING = re.compile(
    r"\A\W*(?:also\s+|then\s+|has\s+|hat\s+|auch\s+)?"
    r"(?:explain\w*|suggest\w*|recommend\w*|propos\w+|offer(?:s|ed)|answer\w*|"
    r"repl\w+|respond\w*|acknowledg\w*|found|searched|looked\s+up|"
    r"wrote|generated|implemented|fixed|apologi\w+|promised|"
    r"erklärt\w*|schlägt|schlug|empfiehlt|empfahl|antwortet\w*|bestätigt\w*|fand|suchte|"
    r"schrieb|erstellt\w*|behob|vorgeschlagen)\b",
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
CLEAR_LEAD = 0.3  # by which the other speaker's message matches better
UNLIKELY_LEAD = 0.0  # the same, where the act is unlikely for the speaker


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


def is_exchanged(speaker: Speaker, act: str, *, own_match: float, other_match: float) -> bool:
    """Return whether an act belongs to the other speaker.

    The matches are the shares of the sentence's words in the best message of each speaker. Where
    one repeats what the other said, as assistants do, the verb decides.
    """
    if other_match < CLEAR_MATCH:
        return False
    lead = other_match - own_match
    unlikely = _PERSONAL if speaker == "assistant" else _SERVING
    if unlikely.search(act):
        return lead > UNLIKELY_LEAD
    return lead >= CLEAR_LEAD
